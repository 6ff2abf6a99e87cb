// Annotated mutex, lock and condition variable over the standard ones: std::mutex carries no
// capability attribute, so clang's analysis warns wrongly about correct code that uses it directly.
//
// Thread safety: Thread-safe. Process-private; locks in shared memory belong to workloads/memory.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "base/thread_annotations.h"
#include "base/units.h"

namespace pipeyard {

class CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ACQUIRE() { mutex_.lock(); }
  void Unlock() RELEASE() { mutex_.unlock(); }
  // Tells the analysis that the caller holds the lock; checks nothing at run time.
  void AssertHeld() const ASSERT_CAPABILITY(this) {}

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.Lock(); }
  ~MutexLock() RELEASE() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

class CondVar {
 public:
  // The caller holds `mutex`; it is released while waiting. May wake spuriously: wait in a loop on
  // the condition.
  void Wait(Mutex& mutex) REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  // Returns false when `timeout` ran out first.
  bool WaitFor(Mutex& mutex, Nanos timeout) REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const bool signaled = condition_.wait_for(lock, std::chrono::nanoseconds(timeout.count())) ==
                          std::cv_status::no_timeout;
    lock.release();
    return signaled;
  }
  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

// A capability that stands for "running on this executor's thread", so that clang checks
// confinement as it checks locks. Members are GUARDED_BY(role), methods REQUIRES(role), posted
// lambdas begin with role.AssertHeld().
class CAPABILITY("role") ThreadRole {
 public:
  ThreadRole() = default;
  ThreadRole(const ThreadRole&) = delete;
  ThreadRole& operator=(const ThreadRole&) = delete;
  void AssertHeld() const ASSERT_CAPABILITY(this) {}
};

}  // namespace pipeyard
