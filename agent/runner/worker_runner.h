// Runs attempts, one at a time: takes the machine's trial lock, spawns pipeyard-worker, watches it,
// and turns what it left into frames. It decides nothing about which attempt is run
// (AttemptTracker), and stores no frames (spool).
//
// Its thread sleeps in the kernel while an attempt waits or runs: no timer, no polling.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/paths.h"
#include "agent/runner/judge.h"
#include "agent/runner/kernel_log.h"
#include "agent/runner/trial_lock.h"
#include "base/clock.h"
#include "base/env.h"
#include "base/executor.h"
#include "base/mutex.h"
#include "base/process.h"
#include "pipeyard/v1/agent.pb.h"
#include "pipeyard/v1/worker.pb.h"
#include "workloads/commands/command_folder.h"

namespace pipeyard::runner {

// An attempt that ended: frames for Spool::Append(), the last one final.
struct EndedAttempt {
  std::string attempt_id;
  std::vector<v1::Frame> frames;
};

// What the agent needs of a runner; a fake stands in for it in tests.
class AttemptRunner {
 public:
  // Called on a thread of the runner's; they only post.
  struct Events {
    std::function<void(const std::string& attempt_id)> on_started;  // the worker was spawned
    std::function<void(EndedAttempt)> on_ended;                     // exactly once for each Run()
  };

  virtual ~AttemptRunner() = default;
  // Queues the attempt. Precondition: it is in the spool, and was not run before.
  virtual void Run(const v1::Assign& assign) = 0;
  // Ends the attempt where it waits or runs, killing its worker; nothing where it is not known.
  virtual void Stop(const std::string& attempt_id, StopReason reason, const std::string& text) = 0;
};

struct WorkerRunnerOptions {
  std::string worker_program;  // path of pipeyard-worker
  std::string trial_lock_path = agent::kTrialLockPath;
  std::string attempts_folder;
  std::string boot_id;
  // The newest output of each stream that is kept.
  uint64_t max_output_bytes = 64 << 10;
  // A result file over this is not read. An attempt of `transfer` has some 100 KiB.
  uint64_t max_result_bytes = 16 << 20;
  // Borrowed; what workload `command` may run; nullptr: nothing.
  const commands::CommandFolder* commands = nullptr;
};

// Thread safety: Thread-safe. Ownership: env and clock are borrowed and outlive this. Destroying it
// kills a running worker and calls on_ended for everything queued.
class WorkerRunner final : public AttemptRunner {
 public:
  WorkerRunner(Env& env, const Clock& clock, WorkerRunnerOptions options, Events events);
  ~WorkerRunner() override;

  void Run(const v1::Assign& assign) override;
  void Stop(const std::string& attempt_id, StopReason reason, const std::string& text) override
      EXCLUDES(mutex_);

 private:
  // The attempts that were queued and have not ended.
  struct Current {
    StopReason stop_reason = StopReason::kNone;
    std::string stop_text;
    // Set while it waits; owned by the runner's thread.
    TrialLockWait* lock_wait = nullptr;
    // Set while it runs; likewise.
    Process* process = nullptr;
  };

  void RunOnThread(const v1::Assign& assign) EXCLUDES(mutex_);
  // Fills in everything of `evidence` that Judge() needs, and `request` as the worker gets it.
  void Execute(const v1::Assign& assign, v1::WorkerRequest& request,
               std::optional<KernelLog>& kernel_log, Evidence& evidence) EXCLUDES(mutex_);
  // Of workload `command`: resolves it. False where the attempt ends by that.
  bool AddCommand(const v1::Assign& assign, const agent::AttemptPaths& paths,
                  v1::WorkerRequest& request, Evidence& evidence);
  Result<std::unique_ptr<TrialLock>> TakeLock(const std::string& attempt_id) EXCLUDES(mutex_);
  Status Watch(Process& process, Evidence& evidence) EXCLUDES(mutex_);
  void CollectResult(const agent::AttemptPaths& paths, Evidence& evidence);
  bool IsStopped(const std::string& attempt_id) EXCLUDES(mutex_);

  // Constant after construction.
  Env& env_;
  const Clock& clock_;
  const WorkerRunnerOptions options_;
  const Events events_;

  Mutex mutex_;
  std::map<std::string, Current> attempts_ GUARDED_BY(mutex_);

  // Last, so that it ends first.
  SerialExecutor executor_;
};

}  // namespace pipeyard::runner
