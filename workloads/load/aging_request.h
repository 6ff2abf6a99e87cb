// AgingRequest: what the parameter `allocator` asks for, in the workload's own sizes: which objects
// shall lie half freed on which node before the first pipe is made (kernel-mechanisms.md E8).
//
// Private to workloads/load. Thread safety: a value and a pure function.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/status.h"
#include "proto/settings/variant.h"
#include "workloads/numa/node_mask.h"

namespace pipeyard::load {

struct AgingRequest {
  numa::NodeId node = 0;
  // Free objects of each kind that the node shall have to give: what lives at once, and what the
  // lists of those that make pipes take in advance.
  uint64_t num_free = 0;
  // Slots of the rings that the pipes will have, those that are slab objects, ascending; a pipe's
  // first ring among them.
  std::vector<uint64_t> ring_slots;
};

// nullopt for `fresh`. `num_pipes` live at once, `num_makers` workers make them. Errors:
// kInvalidArgument for a word that is none.
Result<std::optional<AgingRequest>> AgingRequestOf(const settings::Variant& variant,
                                                   uint64_t num_pipes, uint64_t num_makers);

}  // namespace pipeyard::load
