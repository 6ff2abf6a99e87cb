// Who owns pipes and how many slots each user may have: the accounts and the limits of
// kernel-mechanisms.md A6, as pure rules over a number in shared memory.
//
// Thread safety: PipeUser: thread-safe; everything else: values and pure functions.
#pragma once

#include <atomic>
#include <cstdint>

#include "workloads/memory/shared.h"

namespace pipeyard::pipe {

inline constexpr uint32_t kDefaultSlots = 16;
// What a user over the soft limit still gets. Source: PIPE_MIN_DEF_BUFFERS, since Linux 5.14.
inline constexpr uint32_t kMinDefaultSlots = 2;
// F_SETPIPE_SZ refuses more than 2^31 bytes.
inline constexpr uint64_t kMaxPipeBytes = uint64_t{1} << 31;

// The sysctls fs.pipe-max-size, fs.pipe-user-pages-soft and -hard. 0 pages: unlimited.
struct PipeLimits {
  uint64_t max_bytes = 1 << 20;
  uint64_t user_pages_soft = 16384;
  uint64_t user_pages_hard = 0;
};

// Of a worker: CAP_SYS_RESOURCE and CAP_SYS_ADMIN. The kernel asks for either where it counts a
// user's pages, but for the first alone where it compares with pipe-max-size.
struct Capabilities {
  bool sys_resource = true;
  bool sys_admin = true;

  bool ignores_user_limits() const { return sys_resource || sys_admin; }
};

struct PipeIdentity {
  uint32_t user = 0;  // below EngineSetup::num_users
  Capabilities capabilities;
};

// SHARED. One user's account.
struct alignas(memory::kCacheLine) PipeUser {
  std::atomic<uint64_t> slots;  // charged for all its pipes

  // Replaces a charge of `from` slots by one of `to`; returns the user's sum.
  uint64_t Charge(uint64_t from, uint64_t to) {
    return slots.fetch_add(to - from, std::memory_order_relaxed) + (to - from);
  }
};
PIPEYARD_CHECK_SHARED(PipeUser);

// Reaching a limit is not being over it.
inline bool IsOverSoft(const PipeLimits& limits, uint64_t user_slots) {
  return limits.user_pages_soft != 0 && user_slots > limits.user_pages_soft;
}
inline bool IsOverHard(const PipeLimits& limits, uint64_t user_slots) {
  return limits.user_pages_hard != 0 && user_slots > limits.user_pages_hard;
}

// Slots of a pipe of `bytes`, which F_SETPIPE_SZ rounds up to a power of two pages; 0 where it
// says EINVAL.
uint32_t SlotsForSize(uint64_t bytes, uint64_t page_bytes);

// Slots of a new pipe before its user's account has been looked at.
uint32_t SlotsAtCreation(const PipeLimits& limits, const Capabilities& capabilities,
                         uint64_t page_bytes);

// Charges a new pipe of `slots` to `user`: 2 slots where the user is over the soft limit. Returns
// how many it may have, or 0 (nothing charged) where it is over the hard limit.
uint32_t ChargeNewPipe(const PipeLimits& limits, const Capabilities& capabilities, PipeUser& user,
                       uint32_t slots);

// The checks before a ring is replaced, in their order: pipe-max-size, then the user's account,
// which is charged with `slots` instead of `accounted`. Returns 0, or EPERM with nothing changed.
// Only growth is checked: shrinking is always permitted.
int ChargeResize(const PipeLimits& limits, const Capabilities& capabilities, PipeUser& user,
                 uint32_t max_usage, uint32_t accounted, uint32_t slots, uint64_t page_bytes);

}  // namespace pipeyard::pipe
