// Pipe: the kernel's pipe in user space, with its semantics (kernel-mechanisms.md A1 to A4): a ring
// of page slots under one mutex, merging of short writes, atomic writes up to PIPE_BUF, exclusive
// and chained wake-ups.
//
// It has no file descriptors and raises no signal: whether an operation is nonblocking is said at
// each call, and IoResult says where the kernel would have sent SIGPIPE.
//
//   IoResult result = pipe.Write(worker, buffer, size);
//   if (result.error != 0) ...
//
// Thread safety: any number of workers at once, each worker in one call at a time; in threads or
// processes. Ownership: the Engine owns it; buffers are borrowed for the call.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/units.h"
#include "workloads/pipe/engine_config.h"
#include "workloads/pipe/pipe_info.h"
#include "workloads/pipe/worker.h"

namespace pipeyard::pipe {

// POSIX's and Linux's, whatever the page size.
inline constexpr size_t kPipeBuf = 4096;
inline constexpr uint32_t kDefaultSlots = 16;

// What a call returned. Errors are errno values: EAGAIN, EPIPE, ENOMEM, EINTR (interrupted before
// anything was moved), EOWNERDEAD (a worker died inside this pipe; every later call says so too).
struct IoResult {
  int64_t bytes = 0;  // moved; 0 where error != 0, and at end of file
  int error = 0;
  bool is_sigpipe = false;  // the kernel would have sent SIGPIPE; bytes may be above 0 all the same

  bool ok() const { return error == 0; }
};

enum class IoMode { kBlocking, kNonblocking };

class PipeLock;

class Pipe {
 public:
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  IoResult Write(Worker& worker, const void* data, size_t size, IoMode mode = IoMode::kBlocking);
  // Returns as soon as anything was read; 0 bytes without error is the end of file.
  IoResult Read(Worker& worker, void* data, size_t size, IoMode mode = IoMode::kBlocking);

  // A pipe begins with one reader and one writer. The last close of one side wakes everybody; the
  // last of both gives its pages back. Precondition of the closes: that end is open. Returns 0, or
  // EOWNERDEAD.
  int OpenReader(Worker& worker);
  int OpenWriter(Worker& worker);
  int CloseReader(Worker& worker);
  int CloseWriter(Worker& worker);

  // FIONREAD: bytes in the pipe, or -EOWNERDEAD.
  int64_t QueuedBytes(Worker& worker);

  // F_GETPIPE_SZ.
  uint64_t capacity_bytes() const;
  uint32_t ring_slots() const;
  // Without the mutex: slots in use at this moment.
  uint32_t Occupancy() const;
  // How many workers are queued to sleep; for tests and displays.
  int CountWaitingReaders();
  int CountWaitingWriters();
  // The locked state itself; for the engine's accounts and for tests.
  PipeInfo& info() { return *info_; }

 private:
  friend class Engine;

  // The engine's, shared by its pipes; constant after creation.
  struct Environment {
    std::byte* region = nullptr;
    memory::PageAllocator* pages = nullptr;
    memory::WaitNode* wait_nodes = nullptr;  // of all workers
    int num_workers = 0;
    PageCache page_cache = PageCache::kTwoPage;
    Nanos wait_spin{0};
  };

  Pipe(const Environment& environment, PipeInfo* info) : env_(environment), info_(info) {}

  template <typename Cache>
  IoResult WriteWith(Worker& worker, const std::byte* data, size_t size, IoMode mode);
  template <typename Cache>
  IoResult ReadWith(Worker& worker, std::byte* data, size_t size, IoMode mode);
  // Puts the first bytes behind those of the last slot where the rule allows; returns how many.
  size_t Merge(const std::byte* data, size_t size, HeadTail ends) REQUIRES(info_->mutex);
  // Waits until the pipe looks readable (writable) or `worker` is interrupted; true where looking
  // was enough. Without the mutex.
  bool SpinUntil(bool is_reader, Worker& worker) const;
  // Sleeps in the queue; the mutex is free meanwhile.
  void Sleep(PipeLock& lock, bool is_reader, Worker& worker, memory::PendingWakes& wakes)
      REQUIRES(info_->mutex);
  // A worker died holding the mutex: ends every wait, so that everybody finds out.
  void SpreadOwnerDeath();
  int ChangeEnds(Worker& worker, int readers, int writers);
  void ReleasePages(Worker& worker) REQUIRES(info_->mutex);

  HeadTail Ends() const {
    return HeadTail::Unpack(info_->head_tail.load(std::memory_order_acquire));
  }
  // Release pairs with the acquire in Ends() of those who look without the mutex.
  void Publish(HeadTail ends) { info_->head_tail.store(ends.Pack(), std::memory_order_release); }
  Slot& SlotAt(uint32_t position) REQUIRES(info_->mutex);

  const Environment& env_;
  PipeInfo* const info_;
};

}  // namespace pipeyard::pipe
