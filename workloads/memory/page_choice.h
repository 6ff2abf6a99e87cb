// The page allocator's choice of nodes under a policy: which node is tried first and which may be
// used at all.
//
// It walks no list: a walk starts at `node`, goes on in that node's fallback order, and takes only
// nodes of `allowed`. Source: kernel-mechanisms.md B4. Thread safety: pure but for the task's state
// that is handed in.
#pragma once

#include <bit>

#include "workloads/memory/interleave.h"
#include "workloads/memory/policy.h"

namespace pipeyard::memory {

struct PageChoice {
  numa::NodeId node;  // tried first; need not be in `allowed`
  numa::NodeMask allowed;
  // preferred-many: `allowed` is tried first without direct reclaim, then everything of the cpuset.
  bool is_first_pass = false;
};

// Every mode but the interleaving ones, which need to know where they stand.
inline PageChoice ChooseWithoutState(const Policy& policy, const PolicyContext& context) {
  switch (policy.mode) {
    case numa::PolicyMode::kPreferred:
      return {std::countr_zero(policy.nodes.bits()), context.allowed};
    case numa::PolicyMode::kPreferredMany:
      return {context.local, UsableNodes(policy, context), true};
    case numa::PolicyMode::kBind:
      return {context.local, UsableNodes(policy, context)};
    case numa::PolicyMode::kDefault:
    case numa::PolicyMode::kLocal:
    case numa::PolicyMode::kInterleave:
    case numa::PolicyMode::kWeightedInterleave:
      break;
  }
  return {context.local, context.allowed};
}

// A page of the task (alloc_page(), pipes). Interleaving moves on by one page.
inline PageChoice ChoosePage(TaskPolicy& task, const PolicyContext& context) {
  const Policy& policy = task.policy;
  if (policy.mode == numa::PolicyMode::kInterleave)
    return {StepInterleave(UsableNodes(policy, context), task.state), context.allowed};
  if (policy.mode == numa::PolicyMode::kWeightedInterleave) {
    const WeightTable& weights = WeightsOf(policy, *context.host_weights);
    return {StepWeighted(UsableNodes(policy, context), weights, task.state), context.allowed};
  }
  return ChooseWithoutState(policy, context);
}

// A page fault of a mapping with `policy`, at page `index` of the mapping. No task state is read or
// moved.
inline PageChoice ChooseFault(const Policy& policy, const PolicyContext& context, uint64_t index) {
  if (policy.mode == numa::PolicyMode::kInterleave ||
      policy.mode == numa::PolicyMode::kWeightedInterleave) {
    const WeightTable& weights = WeightsOf(policy, *context.host_weights);
    return {InterleaveByIndex(policy.mode, UsableNodes(policy, context), weights, index),
            context.allowed};
  }
  return ChooseWithoutState(policy, context);
}

}  // namespace pipeyard::memory
