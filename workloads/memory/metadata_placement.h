// Where a pipe's objects are asked for: change 1 (`metadata_placement`) as a pure decision, and the
// node that the policy gives to slab objects.
//
// It allocates nothing: the pipe hands the decision to the object allocator (a slab) or to the page
// allocator (a block), which may still fall back to another node.
// Source: kernel-mechanisms.md A8, B1, B2. Thread safety: pure but for the task's state that is
// handed in.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "workloads/memory/policy.h"
#include "workloads/numa/node_mask.h"

namespace pipeyard::memory {

enum class MetadataPlacement {
  kAnyNode,       // whatever the CPU's lists hold
  kPolicyNode,    // change 1: the pipe asks the policy and names the node
  kStrictPolicy,  // slab_strict_numa: the slab allocator asks the policy at every allocation
};

// "any-node", "policy-node", "strict-policy". Errors: kInvalidArgument.
Result<MetadataPlacement> ParseMetadataPlacement(std::string_view text);
std::string_view MetadataPlacementName(MetadataPlacement placement);

// Bytes of one ring slot; of the pipe's info object. Source: kernel-mechanisms.md A8.
inline constexpr uint64_t kSlotBytes = 40;
inline constexpr uint64_t kPipeInfoBytes = 168;

// Objects above this come from the page allocator: two pages. Source: KMALLOC_MAX_CACHE_SIZE.
constexpr uint64_t MaxSlabBytes(uint64_t page_bytes) { return 2 * page_bytes; }
// The largest ring that is a slab object: 204 slots at 4 KiB pages, so of rings, which are powers
// of two, those of up to 128.
constexpr uint64_t MaxSlabSlots(uint64_t page_bytes) {
  return MaxSlabBytes(page_bytes) / kSlotBytes;
}

// The node that the policy gives to a slab object (mempolicy_slab_node). Never kNoNode. Both
// interleaving modes move the task's state on, whether or not an object is taken.
numa::NodeId SlabNode(TaskPolicy& task, const PolicyContext& context);

// What the slab allocator makes of a request for no node in particular under kStrictPolicy: kNoNode
// on a machine with one node (`memory_nodes`: those with memory, whatever the cpuset; the kernel's
// static key is off there), for a task without a policy, and for a binding that allows the local
// node (the policy is not asked in any of these), else SlabNode().
numa::NodeId StrictSlabNode(TaskPolicy& task, const PolicyContext& context,
                            numa::NodeMask memory_nodes);

// How one object is to be allocated.
struct ObjectRequest {
  enum class Source {
    kSlab,
    kPageBlock,  // the page allocator; with kNoNode it obeys the task's policy itself
  };
  Source source = Source::kSlab;
  numa::NodeId node = numa::kNoNode;
  // The pipe asked the policy for this object. The slab allocator's own questions under
  // kStrictPolicy and the page allocator's are not counted here: they have not happened yet.
  bool is_policy_queried = false;
};

struct CreationRequest {
  ObjectRequest info;
  ObjectRequest ring;  // under kPolicyNode of the node that info's query gave: one query for both
};

// At the creation of a pipe with `slots` slots.
CreationRequest PlanCreation(MetadataPlacement placement, uint64_t slots, uint64_t page_bytes,
                             TaskPolicy& task, const PolicyContext& context);

// The new ring when a pipe is resized to `slots` slots. A ring too large for a slab asks nobody:
// the page allocator obeys the policy, moves interleaving on by one page itself, and keeps a bound
// task inside its nodes, which a named node would not.
ObjectRequest PlanResize(MetadataPlacement placement, uint64_t slots, uint64_t page_bytes,
                         TaskPolicy& task, const PolicyContext& context);

}  // namespace pipeyard::memory
