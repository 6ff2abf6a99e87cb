// Memory policies as a task carries them: mode, nodes, weights, and the place where interleaving
// stands.
//
// They choose nodes (interleave.h, page_choice.h, metadata_placement.h); they take no page and set
// nothing in the host's kernel. Source: kernel-mechanisms.md B2, B4, C1.
// Thread safety: values.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "workloads/numa/node_mask.h"
#include "workloads/numa/numa_kernel.h"

namespace pipeyard::memory {

// Pages in a row that each node gets under weighted interleave, by node id. A node that nobody gave
// a weight has 1, as the kernel has it without a table.
struct WeightTable {
  std::array<uint8_t, numa::kMaxNodes> weights;

  constexpr WeightTable() { weights.fill(1); }
  // Precondition: 0 <= node < kMaxNodes.
  constexpr uint8_t operator[](numa::NodeId node) const {
    return weights[static_cast<size_t>(node)];
  }
  constexpr uint8_t& operator[](numa::NodeId node) { return weights[static_cast<size_t>(node)]; }

  friend bool operator==(const WeightTable&, const WeightTable&) = default;
};

// What a user sets. Precondition of everything that takes one: `nodes` is not empty unless the mode
// is kDefault or kLocal, and has one node under kPreferred; ParsePolicy() makes no other.
struct Policy {
  numa::PolicyMode mode = numa::PolicyMode::kDefault;
  numa::NodeMask nodes;  // empty for kDefault and kLocal
  // Weights written in the setting (then every node of `nodes` has one, 1..255); false: the table
  // of the host decides.
  bool has_weights = false;
  WeightTable weights;

  friend bool operator==(const Policy&, const Policy&) = default;
};

// Reads `engine.policy`:
//   default | local | preferred:1 | preferred-many:0,1 | bind:0-1 | interleave:0,1
//   weighted-interleave:0=3,1=1 (weights 1..255) | weighted-interleave:0,1 (the host's table)
// Whether the nodes exist is for the topology to say (Topology::CheckMemoryMask).
// Errors: kInvalidArgument says what was meant.
Result<Policy> ParsePolicy(std::string_view text);
// The shortest text that ParsePolicy() reads back.
std::string FormatPolicy(const Policy& policy);

// Reads "0=3,1=1": node=weight, comma separated, each node once, weights 1..255.
struct NodeWeights {
  numa::NodeMask nodes;
  WeightTable weights;  // 1 outside `nodes`
};
Result<NodeWeights> ParseNodeWeights(std::string_view text);

// The table that weighted interleave obeys: the policy's own, else the host's.
inline const WeightTable& WeightsOf(const Policy& policy, const WeightTable& host) {
  return policy.has_weights ? policy.weights : host;
}

// Where a task's interleaving stands: the kernel's il_prev and il_weight. `carry` pages are still
// due to `prev`, where that is in the policy's mask. A fresh task is (63, 0).
struct InterleaveState {
  uint8_t prev = numa::kMaxNodes - 1;
  uint8_t carry = 0;

  friend bool operator==(const InterleaveState&, const InterleaveState&) = default;
};

// A task's policy and state. SetPolicy() starts interleaving anew, as the kernel does.
struct TaskPolicy {
  Policy policy;
  InterleaveState state;

  void SetPolicy(const Policy& wanted) {
    policy = wanted;
    state = InterleaveState{};
  }
};

// What a choice needs to know beside the task's policy. Everything pointed to outlives it.
struct PolicyContext {
  numa::NodeId local = 0;  // the memory node of the worker's CPU (Topology::LocalMemoryNode)
  // Nodes with memory in the order in which an allocation at `local` tries them
  // (Topology::FallbackOrder); never empty.
  std::span<const numa::NodeId> local_order;
  numa::NodeMask allowed;                     // the cpuset's
  const WeightTable* host_weights = nullptr;  // never null
};

// The policy's nodes that the cpuset leaves; where it leaves none, the cpuset's, as the kernel's
// rebinding does.
inline numa::NodeMask UsableNodes(const Policy& policy, const PolicyContext& context) {
  const uint64_t bits = policy.nodes.bits() & context.allowed.bits();
  return bits != 0 ? numa::NodeMask::FromBits(bits) : context.allowed;
}

}  // namespace pipeyard::memory
