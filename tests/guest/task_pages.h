// What the kernel allocates for this task under its own policy, where the pages can be asked for.
//
// Thread safety: none is needed.
#pragma once

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <functional>
#include <semaphore>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/guest/machine.h"
#include "workloads/memory/policy.h"

namespace pipeyard {

// set_mempolicy(2) for this thread; its interleaving starts anew. Returns 0, or -1 with errno.
inline int SetTaskPolicy(const memory::Policy& policy) {
  const unsigned long nodes = policy.nodes.bits();
  return static_cast<int>(::syscall(SYS_set_mempolicy, static_cast<int>(policy.mode),
                                    policy.nodes.IsEmpty() ? nullptr : &nodes,
                                    policy.nodes.IsEmpty() ? 0 : numa::kMaxNodes + 1));
}

// The nodes of `pages` pages of the file from page `first` on, as the kernel answers; none where it
// does not.
inline std::vector<int> NodesOfFile(int fd, uint64_t first, uint64_t pages) {
  const uint64_t size = (first + pages) * HostPageBytes();
  void* const at = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return {};
  std::vector<void*> addresses;
  for (uint64_t i = 0; i < pages; ++i) {
    addresses.push_back(static_cast<std::byte*>(at) + (first + i) * HostPageBytes());
  }
  std::vector<int> nodes(pages, -1);
  numa::NumaKernel& kernel = numa::SystemNumaKernel();
  if (kernel.PopulateRead(at, size) != 0 || kernel.QueryNodes(addresses, nodes) != 0) nodes.clear();
  ::munmap(at, size);
  return nodes;
}

// A file on ramfs: its pages are allocated by alloc_page() under the policy of the task that writes
// them, as a pipe's are, and unlike a pipe's they can be asked for. Page 0 is there from the
// start, so that later pages cost no allocation but their own.
class RamfsFile {
 public:
  RamfsFile() {
    ::mkdir(kDir, 0755);
    ::mount("ramfs", kDir, "ramfs", 0, nullptr);
    fd_ = ::open((std::string(kDir) + "/file").c_str(), O_RDWR | O_CREAT | O_TRUNC, 0644);
    Write(0);
  }
  ~RamfsFile() {
    ::close(fd_);
    ::umount(kDir);
  }

  bool Write(uint64_t page) {
    return ::pwrite(fd_, "x", 1, static_cast<off_t>(page * HostPageBytes())) == 1;
  }
  // The nodes of pages 1 to `pages`.
  std::vector<int> Nodes(uint64_t pages) { return NodesOfFile(fd_, 1, pages); }

 private:
  static constexpr char kDir[] = "/tmp/ramfs";
  int fd_ = -1;
};

// Does one thing on a thread that is there beforehand. Starting a thread allocates for the task
// that starts it and under its policy (the new stack is up to four pages), which moves the task's
// interleaving by as many steps, or by none where the kernel has a stack at hand.
class ReadyThread {
 public:
  explicit ReadyThread(std::function<void()> body)
      : body_(std::move(body)), thread_([this] {
          is_wanted_.acquire();
          body_();
          is_done_.release();
        }) {}
  ~ReadyThread() { thread_.join(); }
  ReadyThread(const ReadyThread&) = delete;
  ReadyThread& operator=(const ReadyThread&) = delete;

  // Once, and before the end of this object's life.
  void Run() {
    is_wanted_.release();
    is_done_.acquire();
  }

 private:
  std::binary_semaphore is_wanted_{0};
  std::binary_semaphore is_done_{0};
  const std::function<void()> body_;
  std::thread thread_;  // the last: it uses the others
};

}  // namespace pipeyard
