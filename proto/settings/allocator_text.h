// The words of the parameter `allocator`: in which state the allocator is when a workload begins.
//
// Thread safety: pure functions.
#pragma once

#include <optional>
#include <string_view>

#include "base/status.h"

namespace pipeyard::settings {

// The node of "aged:1"; nothing for "fresh". Errors: as CheckAllocatorText().
Result<std::optional<int>> ReadAgedNode(std::string_view text);

// "fresh", or "aged:NODE" with a node of 0 to 63. Errors: kInvalidArgument.
Status CheckAllocatorText(std::string_view text);

}  // namespace pipeyard::settings
