#include "base/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/clock.h"

namespace pipeyard {
namespace {

Nanos FromTimeval(const timeval& value) {
  return Seconds(value.tv_sec) + Microseconds(value.tv_usec);
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// posix_spawn's action and attribute objects need their destroy calls on every path.
class SpawnPlan {
 public:
  SpawnPlan() {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
  }
  ~SpawnPlan() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  void Redirect(int fd, const std::string& path) {
    const char* target = path.empty() ? "/dev/null" : path.c_str();
    ::posix_spawn_file_actions_addopen(&actions_, fd, target, O_WRONLY | O_CREAT | O_TRUNC, 0640);
  }
  posix_spawn_file_actions_t* actions() { return &actions_; }
  posix_spawnattr_t* attributes() { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

}  // namespace

std::string ExitStatus::ToString() const {
  if (signal == 0) return fmt::format("exit status {}", exit_code);
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? fmt::format("killed by SIG{}", name)
                         : fmt::format("killed by signal {}", signal);
}

Result<std::unique_ptr<Process>> Process::Spawn(const SpawnOptions& options) {
  if (options.argv.empty()) return InvalidArgument("spawn: no program given");
  SpawnPlan plan;
  ::posix_spawn_file_actions_addopen(plan.actions(), STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  plan.Redirect(STDOUT_FILENO, options.stdout_path);
  plan.Redirect(STDERR_FILENO, options.stderr_path);
  int first_closed = STDERR_FILENO + 1;
  if (options.inherited_fd >= 0) {
    ::posix_spawn_file_actions_adddup2(plan.actions(), options.inherited_fd, first_closed++);
  }
  ::posix_spawn_file_actions_addclosefrom_np(plan.actions(), first_closed);
  if (!options.working_directory.empty()) {
    ::posix_spawn_file_actions_addchdir_np(plan.actions(), options.working_directory.c_str());
  }
  short flags = POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK;
  if (options.new_process_group) {
    flags |= POSIX_SPAWN_SETPGROUP;
    ::posix_spawnattr_setpgroup(plan.attributes(), 0);
  }
  sigset_t all_signals;
  sigset_t no_signals;
  ::sigfillset(&all_signals);
  ::sigemptyset(&no_signals);
  ::posix_spawnattr_setsigdefault(plan.attributes(), &all_signals);
  ::posix_spawnattr_setsigmask(plan.attributes(), &no_signals);
  ::posix_spawnattr_setflags(plan.attributes(), flags);

  pid_t pid = -1;
  const std::vector<char*> argv = Pointers(options.argv);
  const std::vector<char*> environment = Pointers(options.environment);
  const int error = ::posix_spawn(&pid, options.argv[0].c_str(), plan.actions(), plan.attributes(),
                                  argv.data(), environment.data());
  if (error != 0) return ErrnoStatus(fmt::format("spawn {}", options.argv[0]), error);
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (pidfd < 0) {
    const int open_error = errno;
    ::kill(options.new_process_group ? -pid : pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return ErrnoStatus("pidfd_open", open_error);
  }
  ::fcntl(pidfd, F_SETFD, FD_CLOEXEC);
  return std::unique_ptr<Process>(new Process(pid, pidfd, options.new_process_group));
}

Process::~Process() {
  (void)Kill(SIGKILL);
  (void)Wait(Seconds(10));
  ::close(pidfd_);
}

Result<std::optional<ExitStatus>> Process::Wait(Nanos timeout) {
  {
    MutexLock lock(mutex_);
    if (exit_status_) return exit_status_;
  }
  const MonotonicTime deadline = SystemClock().Now() + timeout;
  pollfd poll_fd{pidfd_, POLLIN, 0};
  for (;;) {
    const Nanos left = std::max(Nanos(0), deadline - SystemClock().Now());
    const timespec wait{left.count() / 1'000'000'000, left.count() % 1'000'000'000};
    const int ready = ::ppoll(&poll_fd, 1, &wait, nullptr);
    if (ready > 0) break;
    if (ready == 0) return std::optional<ExitStatus>();
    if (errno != EINTR) return ErrnoStatus("wait for a child process", errno);
  }
  MutexLock lock(mutex_);
  // What the leader left in its group must not outlive it. Before it is reaped, for its number may
  // be another's afterwards.
  if (owns_group_) ::kill(-pid_, SIGKILL);
  int status = 0;
  rusage usage{};
  if (::wait4(pid_, &status, 0, &usage) != pid_) return ErrnoStatus("wait4", errno);
  ExitStatus exit;
  if (WIFSIGNALED(status)) exit.signal = WTERMSIG(status);
  if (WIFEXITED(status)) exit.exit_code = WEXITSTATUS(status);
  exit.user_time = FromTimeval(usage.ru_utime);
  exit.system_time = FromTimeval(usage.ru_stime);
  exit_status_ = exit;
  return exit_status_;
}

Status Process::Kill(int signal) {
  // The pidfd pins the leader: once it is reaped its number may belong to another process, so only
  // an unreaped one is signaled.
  MutexLock lock(mutex_);
  if (exit_status_) return Status::Ok();
  const int result =
      owns_group_ ? ::kill(-pid_, signal)
                  : static_cast<int>(::syscall(SYS_pidfd_send_signal, pidfd_, signal, nullptr, 0));
  if (result != 0 && errno != ESRCH) return ErrnoStatus("signal a child process", errno);
  return Status::Ok();
}

Result<uint64_t> ProcessStartTicks(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  if (!std::getline(file, line)) return NotFound(fmt::format("no process {}", pid));
  // The name in field 2 may hold spaces and brackets; what follows its last bracket is regular.
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos)
    return Internal(fmt::format("/proc/{}/stat is malformed", pid));
  std::istringstream fields(line.substr(name_end + 1));
  std::string field;
  for (int number = 3; number <= 22; ++number) {
    if (!(fields >> field)) return Internal(fmt::format("/proc/{}/stat is malformed", pid));
  }
  return std::strtoull(field.c_str(), nullptr, 10);
}

Status KillLeftoverGroup(pid_t pgid, uint64_t start_ticks) {
  const Result<uint64_t> ticks = ProcessStartTicks(pgid);
  if (!ticks.ok() || *ticks != start_ticks) return Status::Ok();
  if (::kill(-pgid, SIGKILL) != 0 && errno != ESRCH)
    return ErrnoStatus(fmt::format("kill process group {}", pgid), errno);
  return Status::Ok();
}

Result<std::string> ProgramDir() {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return ErrnoStatus("readlink /proc/self/exe", error.value());
  return path.parent_path().string();
}

}  // namespace pipeyard
