#include "workloads/pipe/pipe_user.h"

#include <errno.h>

#include <algorithm>
#include <bit>

namespace pipeyard::pipe {

uint32_t SlotsForSize(uint64_t bytes, uint64_t page_bytes) {
  if (bytes > kMaxPipeBytes) return 0;
  if (bytes <= page_bytes) return 1;
  return static_cast<uint32_t>(std::bit_ceil(bytes) / page_bytes);
}

uint32_t SlotsAtCreation(const PipeLimits& limits, const Capabilities& capabilities,
                         uint64_t page_bytes) {
  if (kDefaultSlots * page_bytes <= limits.max_bytes || capabilities.sys_resource) {
    return kDefaultSlots;
  }
  return std::max<uint32_t>(1, static_cast<uint32_t>(limits.max_bytes / page_bytes));
}

uint32_t ChargeNewPipe(const PipeLimits& limits, const Capabilities& capabilities, PipeUser& user,
                       uint32_t slots) {
  uint64_t user_slots = user.Charge(0, slots);
  if (IsOverSoft(limits, user_slots) && !capabilities.ignores_user_limits()) {
    user_slots = user.Charge(slots, kMinDefaultSlots);
    slots = kMinDefaultSlots;
  }
  if (IsOverHard(limits, user_slots) && !capabilities.ignores_user_limits()) {
    user.Charge(slots, 0);
    return 0;
  }
  return slots;
}

int ChargeResize(const PipeLimits& limits, const Capabilities& capabilities, PipeUser& user,
                 uint32_t max_usage, uint32_t accounted, uint32_t slots, uint64_t page_bytes) {
  const bool is_growth = slots > max_usage;
  if (is_growth && slots * page_bytes > limits.max_bytes && !capabilities.sys_resource) {
    return EPERM;
  }
  const uint64_t user_slots = user.Charge(accounted, slots);
  if (is_growth && (IsOverHard(limits, user_slots) || IsOverSoft(limits, user_slots)) &&
      !capabilities.ignores_user_limits()) {
    user.Charge(slots, accounted);
    return EPERM;
  }
  return 0;
}

}  // namespace pipeyard::pipe
