// Child processes by posix_spawn and pidfd. The daemons link gRPC and therefore never fork().
//
// Thread safety: a Process is used by one thread at a time, except Kill(), which may be called from
// any thread while the object lives. Ownership: destroying a running Process kills its process
// group and reaps it.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "base/units.h"

namespace pipeyard {

struct SpawnOptions {
  std::vector<std::string> argv;         // argv[0] is the path of the program; no search in PATH
  std::vector<std::string> environment;  // "NAME=value"; the child sees these only
  std::string stdout_path;               // created or truncated, mode 0640; "" = /dev/null
  std::string stderr_path;               // likewise
  std::string working_directory;         // "" = the parent's
  bool new_process_group = true;         // so that Kill() reaches grandchildren
  // A descriptor of the parent that the child gets as 3, such as one that holds a flock which must
  // not be free while the child lives; -1: none.
  int inherited_fd = -1;
};

struct ExitStatus {
  int exit_code = 0;  // meaningful when signal == 0
  int signal = 0;     // the signal that ended it, 0 where it exited by itself
  Nanos user_time{0};
  Nanos system_time{0};
  bool ok() const { return signal == 0 && exit_code == 0; }
  // "exit status 3", "killed by SIGKILL".
  std::string ToString() const;
};

class Process {
 public:
  // All file descriptors but 0, 1, 2 (and 3, see inherited_fd) are closed in the child; signals
  // have their default actions there. Errors: as posix_spawn; the message names the program.
  static Result<std::unique_ptr<Process>> Spawn(const SpawnOptions& options);

  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();

  pid_t pid() const { return pid_; }
  // Becomes readable when the process has ended; for poll(2). Owned by this object.
  int pidfd() const { return pidfd_; }

  // Waits for the end, at most `timeout`; nullopt where it still runs then. Once an ExitStatus was
  // returned, it is returned again.
  Result<std::optional<ExitStatus>> Wait(Nanos timeout);
  // Sends `signal` to the process group (or the process, without new_process_group). OK where it
  // has ended already.
  Status Kill(int signal);

 private:
  Process(pid_t pid, int pidfd, bool owns_group)
      : pid_(pid), pidfd_(pidfd), owns_group_(owns_group) {}

  const pid_t pid_;
  const int pidfd_;
  const bool owns_group_;

  // Guarded by mutex_: a number that was reaped is never signaled.
  Mutex mutex_;
  std::optional<ExitStatus> exit_status_ GUARDED_BY(mutex_);
};

// Kills the process group `pgid` with SIGKILL if its leader is the very process that began at
// `start_ticks` (field 22 of /proc/PID/stat), so that a reused pid is never hit. For what an
// earlier life of a daemon left behind. OK where there is none.
Status KillLeftoverGroup(pid_t pgid, uint64_t start_ticks);
// Field 22 of /proc/PID/stat. Errors: kNotFound where there is no such process.
Result<uint64_t> ProcessStartTicks(pid_t pid);
// Absolute path of the running program's folder (from /proc/self/exe), where its sibling programs
// lie.
Result<std::string> ProgramDir();

}  // namespace pipeyard
