// LoadWorkers: the workers of one measurement, threads or processes, started and ended without ever
// hanging their owner.
//
// It is not an executor: workers run loops that live for the whole measurement. A body owns, or
// shares, everything that it uses, for a thread that will not end is left behind; what two workers
// share lies in a MAP_SHARED mapping, for processes share nothing else.
//
// Thread safety: confined to the owner's thread. Processes are forked: Start() is called while the
// process has one thread (style.md F7).
#pragma once

#include <signal.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "base/units.h"
#include "workloads/load/judgement.h"

namespace pipeyard::load {

enum class WorkerKind { kThreads, kProcesses };

// "threads", "processes". Anything else is a thread: settings have checked the word.
WorkerKind WorkerKindOf(std::string_view text);

// ok, or failed/no_thread, no_process: what LoadWorkers::Start() met.
Judgement JudgeStart(WorkerKind kind, const Status& started);

class LoadWorkers {
 public:
  static std::unique_ptr<LoadWorkers> Make(WorkerKind kind);
  // Abandons threads that have not ended; kills and reaps processes.
  virtual ~LoadWorkers() = default;

  virtual WorkerKind kind() const = 0;
  // Runs `body` as one more worker; `name` is for texts ("reader 1"). Errors: kUnavailable where
  // the system has no thread or process left.
  virtual Status Start(std::string name, std::function<void()> body) = 0;
  // True once every worker started has ended; false at `deadline`, or early where one died.
  virtual bool AwaitEnd(MonotonicTime deadline) = 0;
  // Makes a system call in which a worker sleeps return EINTR. A worker on its way into the call
  // misses it: repeat until AwaitEnd() says true.
  virtual void InterruptSystemCalls() = 0;
  // The last resort: ends what nothing else has ended. False where it cannot (threads).
  virtual bool Kill() = 0;
  // ok, or failed/worker_died: a worker ended otherwise than by the end of its body; void or
  // failed/worker_stopped: one was stopped by a signal. Does not wait. Threads always say ok.
  virtual Judgement Check() = 0;
  // To wait with (ppoll), so that the end of a worker interrupts the wait; nullptr: no matter.
  virtual const sigset_t* wait_mask() const { return nullptr; }
};

}  // namespace pipeyard::load
