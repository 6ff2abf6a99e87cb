#include "agent/runner/trial_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace pipeyard::runner {
namespace {

constexpr int kWakeSignal = SIGURG;
// A signal that arrives just before flock() goes to sleep wakes nobody: it is sent again.
constexpr Nanos kWakeInterval = Milliseconds(5);

// Without SA_RESTART a blocking flock() returns EINTR once the handler has run.
void PrepareWakeSignal() {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  ::sigaction(kWakeSignal, &action, nullptr);
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, kWakeSignal);
  ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

}  // namespace

TrialLock::~TrialLock() { ::close(fd_); }

Result<int> OpenTrialLockFile(const std::string& path) {
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  const std::string what = fmt::format("open {}", path);
  int fd = ::open(path.c_str(), kFlags);
  if (fd < 0 && errno == ENOENT) {
    // O_EXCL: opening another user's file with O_CREAT is refused in sticky folders
    // (fs.protected_regular).
    fd = ::open(path.c_str(), kFlags | O_CREAT | O_EXCL, 0644);
    if (fd >= 0) {
      ::fchmod(fd, 0644);  // whatever the umask
    } else if (errno == EEXIST) {
      fd = ::open(path.c_str(), kFlags);
    }
  }
  if (fd < 0) return ErrnoStatus(what, errno);
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    return InvalidArgument(what + ": not a regular file");
  }
  return fd;
}

Result<std::unique_ptr<TrialLock>> TrialLockWait::Acquire(const std::string& path) {
  PIPEYARD_ASSIGN_OR_RETURN(const int fd, OpenTrialLockFile(path));
  auto lock = std::make_unique<TrialLock>(fd);
  PrepareWakeSignal();
  {
    MutexLock guard(mutex_);
    waiter_ = ::pthread_self();
    is_waiting_ = true;
  }
  Status status;
  for (;;) {
    {
      MutexLock guard(mutex_);
      if (is_interrupted_) status = Cancelled("the wait for the trial lock was ended");
    }
    if (!status.ok() || ::flock(fd, LOCK_EX) == 0) break;
    if (errno != EINTR) status = ErrnoStatus(fmt::format("flock {}", path), errno);
  }
  MutexLock guard(mutex_);
  is_waiting_ = false;
  ended_.NotifyAll();
  if (!status.ok()) return status;
  return lock;
}

void TrialLockWait::Interrupt() {
  MutexLock guard(mutex_);
  is_interrupted_ = true;
  while (is_waiting_) {
    ::pthread_kill(waiter_, kWakeSignal);
    ended_.WaitFor(mutex_, kWakeInterval);
  }
}

}  // namespace pipeyard::runner
