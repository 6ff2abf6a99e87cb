#include "workloads/pipe/differential/ballast.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "workloads/pipe/differential/privilege.h"

namespace pipeyard::pipe::differential {

uint32_t CountBallastPipes(const PipeLimits& limits, uint64_t page_bytes) {
  // 127 pipes are 254 file descriptors, of 1024 that a process usually has.
  constexpr uint64_t kMaxPipes = 127;
  if (!HasUserOfItsOwn() || EffectiveCapabilities().ignores_user_limits()) return 0;
  if (limits.user_pages_soft < kSlotsLeft || kBallastSlots * page_bytes > limits.max_bytes) {
    return 0;
  }
  const uint64_t pipes = (limits.user_pages_soft - kSlotsLeft) / kBallastSlots;
  return pipes > kMaxPipes ? 0 : static_cast<uint32_t>(pipes);
}

KernelBallast::~KernelBallast() {
  for (const int fd : fds_) ::close(fd);
}

Status KernelBallast::Hold() {
  PIPEYARD_ASSIGN_OR_RETURN(const PipeLimits limits, KernelPipeLimits());
  const auto page_bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uint32_t num_pipes = CountBallastPipes(limits, page_bytes);
  for (uint32_t i = 0; i < num_pipes; ++i) {
    int fds[2];
    if (::pipe2(fds, O_CLOEXEC) != 0) return ErrnoStatus("ballast: pipe2", errno);
    fds_.push_back(fds[0]);
    fds_.push_back(fds[1]);
    if (::fcntl(fds[0], F_SETPIPE_SZ, static_cast<int>(kBallastSlots * page_bytes)) < 0) {
      return ErrnoStatus("ballast: F_SETPIPE_SZ", errno);
    }
  }
  return Status::Ok();
}

}  // namespace pipeyard::pipe::differential
