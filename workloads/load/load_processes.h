// LoadProcesses: LoadWorkers as forked processes over the same shared memory.
//
// A child dies with its parent (PR_SET_PDEATHSIG), keeps the parent's process group, so that who
// kills the group reaches it, and ends by _exit: nothing of the parent is flushed or destroyed
// twice. SIGCHLD is blocked while an object lives, and let through only where the owner waits.
//
// Thread safety: as LoadWorkers; of several objects, the one that was made last ends first.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "workloads/load/load_workers.h"

namespace pipeyard::load {

class LoadProcesses final : public LoadWorkers {
 public:
  LoadProcesses();
  LoadProcesses(const LoadProcesses&) = delete;
  LoadProcesses& operator=(const LoadProcesses&) = delete;
  // Kills and reaps what still runs.
  ~LoadProcesses() override;

  WorkerKind kind() const override { return WorkerKind::kProcesses; }
  Status Start(std::string name, std::function<void()> body) override;
  bool AwaitEnd(MonotonicTime deadline) override;
  void InterruptSystemCalls() override { SignalAll(kInterrupt); }
  bool Kill() override;
  Judgement Check() override;
  const sigset_t* wait_mask() const override { return &wait_mask_; }

 private:
  static const int kInterrupt;

  struct Child {
    pid_t pid = 0;
    std::string name;
    bool has_ended = false;
  };

  // Takes notice of every child that has ended or been stopped since.
  void Reap();
  void Note(Child& child, const siginfo_t& event);
  void SignalAll(int signal);

  sigset_t wait_mask_;
  sigset_t former_mask_;
  struct sigaction former_action_;
  std::vector<Child> children_;
  size_t num_running_ = 0;
  // The first death; the stop that was seen last.
  Judgement death_;
  Judgement stop_;
};

}  // namespace pipeyard::load
