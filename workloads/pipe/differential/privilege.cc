#include "workloads/pipe/differential/privilege.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace pipeyard::pipe::differential {
namespace {

bool IsInitialUserNamespace() {
  std::ifstream file("/proc/self/uid_map");
  uint64_t inside = 1;
  uint64_t outside = 1;
  uint64_t count = 0;
  file >> inside >> outside >> count;
  return inside == 0 && outside == 0 && count == UINT32_MAX;
}

Status ReadNumber(const char* path, uint64_t& number) {
  std::ifstream file(path);
  if (!(file >> number)) return NotFound(std::string("read ") + path);
  return Status::Ok();
}

// Ids that distributions leave alone.
constexpr uid_t kFirstOwnId = 1'500'000'000;
constexpr uid_t kNumOwnIds = 100'000;
// Exit status of a child that could not take its role.
constexpr int kMayNot = 3;

// Takes `capabilities` (bits) out of the effective ones.
Status DropCapabilities(uint64_t capabilities) {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (::syscall(SYS_capget, &header, data) != 0) return ErrnoStatus("capget", errno);
  data[0].effective &= ~static_cast<uint32_t>(capabilities);
  data[1].effective &= ~static_cast<uint32_t>(capabilities >> 32);
  if (::syscall(SYS_capset, &header, data) != 0) return ErrnoStatus("capset", errno);
  return Status::Ok();
}

// A user id of its own is root's to choose, and root in a container may lack the capability. The
// kernel judges a pipe's user by capabilities alone, so without those root is as good as anybody.
Status BecomeUnprivileged() {
  // By process, so that tests that run at once do not share.
  const uid_t id = kFirstOwnId + static_cast<uid_t>(::getpid()) % kNumOwnIds;
  if (::geteuid() == 0 && ::setgroups(0, nullptr) == 0 && ::setresgid(id, id, id) == 0) {
    static_cast<void>(::setresuid(id, id, id));
  }
  PIPEYARD_RETURN_IF_ERROR(DropCapabilities(UINT64_MAX));
  // Else /proc/self belongs to root, and so does each file under fd/.
  if (::prctl(PR_SET_DUMPABLE, 1) != 0) return ErrnoStatus("prctl PR_SET_DUMPABLE", errno);
  return Status::Ok();
}

Status Become(Role role) {
  switch (role) {
    case Role::kAsIs:
      break;
    case Role::kUnprivileged:
      return BecomeUnprivileged();
    case Role::kWithoutResource:
      return DropCapabilities(uint64_t{1} << CAP_SYS_RESOURCE);
  }
  return Status::Ok();
}

bool SendAll(int fd, const std::string& text) {
  size_t sent = 0;
  while (sent < text.size()) {
    const ssize_t written = ::write(fd, text.data() + sent, text.size() - sent);
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) sent += static_cast<size_t>(written);
  }
  return true;
}

}  // namespace

Capabilities EffectiveCapabilities() {
  std::ifstream file("/proc/self/status");
  std::string line;
  uint64_t bits = 0;
  while (std::getline(file, line)) {
    if (line.rfind("CapEff:", 0) == 0) std::istringstream(line.substr(7)) >> std::hex >> bits;
  }
  if (!IsInitialUserNamespace()) bits = 0;
  return {.sys_resource = (bits >> CAP_SYS_RESOURCE & 1) != 0,
          .sys_admin = (bits >> CAP_SYS_ADMIN & 1) != 0};
}

Result<PipeLimits> KernelPipeLimits() {
  PipeLimits limits;
  PIPEYARD_RETURN_IF_ERROR(ReadNumber("/proc/sys/fs/pipe-max-size", limits.max_bytes));
  PIPEYARD_RETURN_IF_ERROR(ReadNumber("/proc/sys/fs/pipe-user-pages-soft", limits.user_pages_soft));
  PIPEYARD_RETURN_IF_ERROR(ReadNumber("/proc/sys/fs/pipe-user-pages-hard", limits.user_pages_hard));
  return limits;
}

bool HasUserOfItsOwn() {
  return ::geteuid() >= kFirstOwnId && ::geteuid() < kFirstOwnId + kNumOwnIds;
}

Result<std::string> RunAs(Role role, const std::function<std::string()>& body) {
  if (role == Role::kAsIs) return body();
  int fds[2];
  if (::pipe(fds) != 0) return ErrnoStatus("pipe", errno);
  const pid_t child = ::fork();
  if (child < 0) return ErrnoStatus("fork", errno);
  if (child == 0) {
    ::close(fds[0]);
    const Status status = Become(role);
    if (!status.ok()) {
      SendAll(fds[1], status.ToString());
      ::_exit(kMayNot);
    }
    ::_exit(SendAll(fds[1], body()) ? 0 : 1);
  }
  ::close(fds[1]);
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t size = ::read(fds[0], buffer, sizeof(buffer));
    if (size > 0) text.append(buffer, static_cast<size_t>(size));
    if (size == 0 || (size < 0 && errno != EINTR)) break;
  }
  ::close(fds[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return text;
  if (WIFEXITED(status) && WEXITSTATUS(status) == kMayNot) {
    return FailedPrecondition("this process may not give up its privileges: " + text);
  }
  return FailedPrecondition("the child in another role ended with status " +
                            std::to_string(status));
}

}  // namespace pipeyard::pipe::differential
