// Pipes that a user holds beside those of the programs, so that the soft limit on the pages of its
// pipes is near and programs run into it.
//
// Thread safety: thread-compatible. Ownership: the object holds the kernel's pipes.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "workloads/pipe/engine.h"
#include "workloads/pipe/pipe_user.h"

namespace pipeyard::pipe::differential {

// How many slots are left to programs below the soft limit.
inline constexpr uint64_t kSlotsLeft = 256;
inline constexpr uint32_t kBallastSlots = 256;  // of each pipe

// 0 where the limit does not bind this process or is too far away, or its user has other processes.
uint32_t CountBallastPipes(const PipeLimits& limits, uint64_t page_bytes);

class KernelBallast {
 public:
  KernelBallast() = default;
  KernelBallast(const KernelBallast&) = delete;
  KernelBallast& operator=(const KernelBallast&) = delete;
  ~KernelBallast();

  // CountBallastPipes() pipes by this machine's limits: before anything is compared, on the side of
  // the kernel, as the engine's side does by itself.
  Status Hold();

 private:
  std::vector<int> fds_;
};

}  // namespace pipeyard::pipe::differential
