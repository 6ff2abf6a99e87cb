// The lock that a trial holds, so that the agents of one machine alternate, whatever users they run
// as: flock on /run/lock/pipeyard-trial.
//
// The file is opened for reading only and never removed: flock needs no more, and a file that
// another user made in a sticky folder can be opened so.
#pragma once

#include <pthread.h>

#include <memory>
#include <string>

#include "base/mutex.h"
#include "base/status.h"

namespace pipeyard::runner {

// Held until destruction; and by a child that inherited fd() until that has ended too.
// Thread safety: immutable.
class TrialLock {
 public:
  explicit TrialLock(int fd) : fd_(fd) {}
  ~TrialLock();
  TrialLock(const TrialLock&) = delete;
  TrialLock& operator=(const TrialLock&) = delete;
  int fd() const { return fd_; }

 private:
  const int fd_;
};

// Opens the file, making it (mode 0644) where there is none. The caller owns the descriptor.
// Errors: as open(2); kInvalidArgument where it is no regular file.
Result<int> OpenTrialLockFile(const std::string& path);

// Waits for the lock; used for one wait.
// Thread safety: Thread-safe.
class TrialLockWait {
 public:
  TrialLockWait() = default;
  TrialLockWait(const TrialLockWait&) = delete;
  TrialLockWait& operator=(const TrialLockWait&) = delete;

  // Sleeps in the kernel until the lock is had: waiting costs nothing. SIGURG is used to wake it
  // and gets a handler for the whole process. Errors: kCancelled after Interrupt(), else those of
  // OpenTrialLockFile() and flock(2).
  Result<std::unique_ptr<TrialLock>> Acquire(const std::string& path) EXCLUDES(mutex_);
  // Ends the wait, also one that has not begun; returns when it has ended.
  void Interrupt() EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  CondVar ended_;
  bool is_interrupted_ GUARDED_BY(mutex_) = false;
  bool is_waiting_ GUARDED_BY(mutex_) = false;
  pthread_t waiter_ GUARDED_BY(mutex_) = {};
};

}  // namespace pipeyard::runner
