#include "workloads/memory/metadata_placement.h"

#include <bit>
#include <string>

#include "workloads/memory/interleave.h"

namespace pipeyard::memory {
namespace {

using numa::PolicyMode;

struct PlacementName {
  MetadataPlacement placement;
  std::string_view name;
};
constexpr PlacementName kNames[] = {
    {MetadataPlacement::kAnyNode, "any-node"},
    {MetadataPlacement::kPolicyNode, "policy-node"},
    {MetadataPlacement::kStrictPolicy, "strict-policy"},
};

// The nearest node to the CPU that the policy names; the local one where none is.
numa::NodeId NearestOf(numa::NodeMask nodes, const PolicyContext& context) {
  for (const numa::NodeId node : context.local_order) {
    if (nodes.Contains(node)) return node;
  }
  return context.local;
}

}  // namespace

Result<MetadataPlacement> ParseMetadataPlacement(std::string_view text) {
  for (const PlacementName& known : kNames) {
    if (known.name == text) return known.placement;
  }
  return InvalidArgument("'" + std::string(text.substr(0, 40)) +
                         "': not one of any-node, policy-node, strict-policy");
}

std::string_view MetadataPlacementName(MetadataPlacement placement) {
  for (const PlacementName& known : kNames) {
    if (known.placement == placement) return known.name;
  }
  return "";
}

numa::NodeId SlabNode(TaskPolicy& task, const PolicyContext& context) {
  const Policy& policy = task.policy;
  switch (policy.mode) {
    case PolicyMode::kDefault:
    case PolicyMode::kLocal:
      break;
    case PolicyMode::kPreferred:
      return std::countr_zero(policy.nodes.bits());
    case PolicyMode::kInterleave:
      return StepInterleave(UsableNodes(policy, context), task.state);
    case PolicyMode::kWeightedInterleave:
      return StepWeighted(UsableNodes(policy, context), WeightsOf(policy, *context.host_weights),
                          task.state);
    case PolicyMode::kBind:
    case PolicyMode::kPreferredMany:
      return NearestOf(UsableNodes(policy, context), context);
  }
  return context.local;
}

numa::NodeId StrictSlabNode(TaskPolicy& task, const PolicyContext& context,
                            numa::NodeMask memory_nodes) {
  const PolicyMode mode = task.policy.mode;
  if (mode == PolicyMode::kDefault || memory_nodes.Count() < 2) return numa::kNoNode;
  if (mode == PolicyMode::kBind && UsableNodes(task.policy, context).Contains(context.local))
    return numa::kNoNode;
  return SlabNode(task, context);
}

CreationRequest PlanCreation(MetadataPlacement placement, uint64_t slots, uint64_t page_bytes,
                             TaskPolicy& task, const PolicyContext& context) {
  CreationRequest request;
  if (placement == MetadataPlacement::kPolicyNode) {
    request.info.node = SlabNode(task, context);
    request.info.is_policy_queried = true;
  }
  if (slots > MaxSlabSlots(page_bytes)) {
    request.ring.source = ObjectRequest::Source::kPageBlock;
  } else {
    request.ring.node = request.info.node;
  }
  return request;
}

ObjectRequest PlanResize(MetadataPlacement placement, uint64_t slots, uint64_t page_bytes,
                         TaskPolicy& task, const PolicyContext& context) {
  ObjectRequest ring;
  if (slots > MaxSlabSlots(page_bytes)) {
    ring.source = ObjectRequest::Source::kPageBlock;
  } else if (placement == MetadataPlacement::kPolicyNode) {
    ring.node = SlabNode(task, context);
    ring.is_policy_queried = true;
  }
  return ring;
}

}  // namespace pipeyard::memory
