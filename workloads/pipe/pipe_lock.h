// PipeLock: holds a pipe's mutex for a part of a call, and counts what that cost.
//
// Thread safety: a local of one call.
#pragma once

#include <errno.h>

#include "base/thread_annotations.h"
#include "workloads/memory/monotonic.h"
#include "workloads/memory/wait_queue.h"
#include "workloads/pipe/environment.h"
#include "workloads/pipe/pipe_info.h"
#include "workloads/pipe/worker.h"

namespace pipeyard::pipe {

class SCOPED_CAPABILITY PipeLock {
 public:
  PipeLock(PipeInfo& info, Worker& worker) ACQUIRE(info.mutex) : info_(info), worker_(worker) {
    Take();
  }
  ~PipeLock() RELEASE() {
    if (is_held_) Give();
  }
  PipeLock(const PipeLock&) = delete;
  PipeLock& operator=(const PipeLock&) = delete;

  void Release() RELEASE() { Give(); }
  void Retake() ACQUIRE() { Take(); }
  // Makes the wake-up calls that are owed, now that the woken can have the mutex.
  void ReleaseThenWake(memory::PendingWakes& wakes) RELEASE() {
    Give();
    if (const int calls = wakes.Flush(); calls != 0) worker_.Count(Counter::kWakeCalls, calls);
  }
  // Where the owner is dead: lets everybody find out. Returns EOWNERDEAD.
  int GiveUp(const PipeEnvironment& environment) RELEASE() {
    Give();
    SpreadOwnerDeath(environment);
    return EOWNERDEAD;
  }

  // A worker died holding it: the pipe's state may be half written and must not be used.
  bool is_owner_dead() const { return is_owner_dead_; }

 private:
  void Take() NO_THREAD_SAFETY_ANALYSIS {
    const memory::LockOutcome outcome = info_.mutex.Lock();
    is_held_ = true;
    is_owner_dead_ = outcome.is_owner_dead;
    if constexpr (memory::kCountersEnabled) {
      worker_.Count(Counter::kMutexAcquisitions);
      if (outcome.was_contended) worker_.Count(Counter::kMutexContended);
      held_since_ns_ = worker_.IsHoldSampled() ? memory::MonotonicNanos() : 0;
    }
  }

  void Give() NO_THREAD_SAFETY_ANALYSIS {
    const int64_t held_until_ns = held_since_ns_ != 0 ? memory::MonotonicNanos() : 0;
    info_.mutex.Unlock();
    is_held_ = false;
    if (held_until_ns != 0) [[unlikely]] {
      const auto held_ns = static_cast<uint64_t>(held_until_ns - held_since_ns_);
      worker_.Count(Counter::kMutexHoldSamples);
      worker_.Count(Counter::kMutexHoldSampled, held_ns);
      worker_.counters().Max(Counter::kMutexHoldMax, held_ns);
    }
  }

  PipeInfo& info_;
  Worker& worker_;
  bool is_held_ = false;
  bool is_owner_dead_ = false;
  int64_t held_since_ns_ = 0;
};

}  // namespace pipeyard::pipe
