// KernelSystem: the comparison's reference: pipe2(2) of the machine that it runs on.
//
// Thread safety: as PipeSystem. SIGPIPE is handled from the first object on, and counted by thread.
// Ownership: owns file descriptors; pipes end with them.
#pragma once

#include <sys/types.h>

#include <array>

#include "workloads/pipe/differential/pipe_system.h"

namespace pipeyard::pipe::differential {

class KernelSystem : public PipeSystem {
 public:
  KernelSystem();
  KernelSystem(const KernelSystem&) = delete;
  KernelSystem& operator=(const KernelSystem&) = delete;
  ~KernelSystem() override;

  // Whether pwritev2(2) knows RWF_NOSIGNAL for pipes (Linux 6.18): else nobody can write quietly.
  static bool CanWriteQuietly();
  // Where Interrupt() sends its signal.
  void RegisterActor(int actor, pid_t thread) { threads_[static_cast<size_t>(actor)] = thread; }
  pid_t ThreadOf(int actor) const { return threads_[static_cast<size_t>(actor)]; }

  Outcome Create(int actor, int read_file, int write_file, FileFlags flags) override;
  Outcome Open(int actor, int file, PipeEnd end, int new_file) override;
  Outcome Close(int actor, int file) override;
  Outcome Write(int actor, int file, const char* data, size_t size, bool is_quiet) override;
  Outcome Read(int actor, int file, char* data, size_t size) override;
  Outcome SetFlags(int actor, int file, FileFlags flags) override;
  Outcome Resize(int actor, int file, uint32_t bytes) override;
  Outcome Capacity(int actor, int file) override;
  Outcome QueuedBytes(int actor, int file) override;
  Outcome Poll(int actor, FileSet files, bool is_waiting, PollMasks& masks) override;
  Outcome Watch(int actor, int file) override;
  Outcome TakeReady(int actor, PollMasks& masks) override;
  void Interrupt(int actor) override;
  void Reset() override;

 private:
  int& Fd(int file) { return fds_[static_cast<size_t>(file)]; }

  std::array<int, kMaxFiles> fds_;
  std::array<int, kMaxActors> epolls_;
  std::array<pid_t, kMaxActors> threads_{};
};

}  // namespace pipeyard::pipe::differential
