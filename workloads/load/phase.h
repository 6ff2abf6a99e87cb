// PhaseGate: where a measurement stands, and who has arrived there.
//
// Workers read the phase once per operation (one relaxed load of a line that changes four times in
// all); the owner moves it.
//
// Thread safety: thread-safe.
#pragma once

#include <atomic>

#include "base/clock.h"
#include "base/mutex.h"

namespace pipeyard::load {

enum class Phase : int {
  kSetUp,    // workers prepare and arrive
  kWarmUp,   // the load runs, nothing is kept
  kMeasure,  // operations that end now are kept
  kStop,     // writers end after their operation, readers at end of file
  kAbort,    // everybody ends at once
};

class PhaseGate {
 public:
  // Memory order: relaxed. A worker that sees a phase late counts one operation more or less; what
  // it counted is published by its end.
  Phase Current() const { return phase_.load(std::memory_order_relaxed); }
  // Never goes back: once a failing worker entered kAbort, it stays.
  void Enter(Phase phase) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (phase > Current()) phase_.store(phase, std::memory_order_relaxed);
    changed_.NotifyAll();
  }
  // Waits until `deadline`; returns early, and true, where a worker failed.
  bool IsAbortedBefore(MonotonicTime deadline) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (Current() != Phase::kAbort) {
      const Nanos left = deadline - SystemClock().Now();
      if (left <= Nanos(0)) return false;
      changed_.WaitFor(mutex_, left);
    }
    return true;
  }
  // Called by a worker that is ready; returns once the owner has left kSetUp.
  void ArriveAndWait() EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    ++arrived_;
    changed_.NotifyAll();
    while (Current() == Phase::kSetUp) changed_.Wait(mutex_);
  }
  // Called by a worker that is ready and does not wait for the others.
  void Arrive() EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    ++arrived_;
    changed_.NotifyAll();
  }
  // False where fewer than `count` arrived within `timeout`.
  bool AwaitArrivals(int count, Nanos timeout) EXCLUDES(mutex_) {
    const MonotonicTime deadline = SystemClock().Now() + timeout;
    MutexLock lock(mutex_);
    while (arrived_ < count) {
      const Nanos left = deadline - SystemClock().Now();
      if (left <= Nanos(0)) return false;
      changed_.WaitFor(mutex_, left);
    }
    return true;
  }

 private:
  std::atomic<Phase> phase_{Phase::kSetUp};
  Mutex mutex_;
  CondVar changed_;
  int arrived_ GUARDED_BY(mutex_) = 0;
};

}  // namespace pipeyard::load
