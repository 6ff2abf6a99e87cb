// Interleaving, one page at a time and many at once, as the kernel computes it and as change 3
// would.
//
// A bulk plan says how many pages each node is asked for, in which order; it takes none. A plan
// groups its pages by node where single steps alternate: equal are the pages of each node and the
// state afterwards, not the order of the pages.
// Source: kernel-mechanisms.md C1-C4. Thread safety: pure functions.
//
// Precondition throughout: the mask is not empty, weights are 1..255.
#pragma once

#include <bit>
#include <cassert>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "workloads/memory/policy.h"
#include "workloads/numa/node_mask.h"

namespace pipeyard::memory {

// The next node of `mask` above `prev`, else its lowest.
inline numa::NodeId NextNode(numa::NodeMask mask, numa::NodeId prev) {
  const uint64_t above = mask.bits() & (~uint64_t{1} << prev);
  return std::countr_zero(above != 0 ? above : mask.bits());
}

// The node of the next page under plain interleave; `state` moves on.
inline numa::NodeId StepInterleave(numa::NodeMask mask, InterleaveState& state) {
  const numa::NodeId node = NextNode(mask, state.prev);
  state.prev = static_cast<uint8_t>(node);
  return node;
}

// The node of the next page under weighted interleave; `state` moves on. A node's weight is read
// when the node is entered, so that a change of the table acts from the next node on.
inline numa::NodeId StepWeighted(numa::NodeMask mask, const WeightTable& table,
                                 InterleaveState& state) {
  if (state.carry == 0 || !mask.Contains(state.prev)) {
    const numa::NodeId node = NextNode(mask, state.prev);
    state.prev = static_cast<uint8_t>(node);
    state.carry = table[node];
  }
  state.carry -= 1;
  return state.prev;
}

// The same state in the form (node of the next page, pages still due to it): two states with equal
// canonical forms behave alike until mask or weights change.
inline InterleaveState Canonical(numa::NodeMask mask, const WeightTable& table,
                                 InterleaveState state) {
  if (state.carry != 0 && mask.Contains(state.prev)) return state;
  const numa::NodeId next = NextNode(mask, state.prev);
  return {.prev = static_cast<uint8_t>(next), .carry = table[next]};
}

enum class BulkAlgorithm {
  kSplitCarry,   // upstream: what is left of the current node is a call of its own
  kSingleStep,   // page by page
  kFoldedCarry,  // change 3 as it should be: each node at most once
  kPostedPatch,  // change 3 as it was posted: wrong counts; for unit tests only
};

// "split-carry", "single-step", "folded-carry". Errors: kInvalidArgument for everything else,
// `posted-patch` included.
Result<BulkAlgorithm> ParseBulkAlgorithm(std::string_view text);
std::string_view BulkAlgorithmName(BulkAlgorithm algorithm);

struct BulkCall {
  numa::NodeId node;
  uint64_t pages;

  friend bool operator==(const BulkCall&, const BulkCall&) = default;
};

// Left uninitialised beyond `num_calls`: a plan is made on every bulk allocation.
struct BulkPlan {
  static constexpr int kMaxCalls = numa::kMaxNodes + 1;

  BulkCall calls[kMaxCalls];
  int num_calls;
  InterleaveState end;  // the task's state once the calls were made, also where some fell short

  std::span<const BulkCall> Calls() const { return {calls, static_cast<size_t>(num_calls)}; }

  BulkPlan() : num_calls(0) {}  // NOLINT: `calls` stay uninitialised by intent
};

// Plans `pages` pages of weighted interleave that starts in `start`. No allocation, no system call;
// cost grows with the nodes of the mask, not with the pages. 0 pages: no calls, state unchanged.
// Precondition: not kSingleStep, whose calls are as many as the pages (ForEachBulkCall has it).
void PlanBulk(BulkAlgorithm algorithm, numa::NodeMask mask, const WeightTable& table,
              InterleaveState start, uint64_t pages, BulkPlan& plan);

// Plans `pages` pages of plain interleave as the kernel does: every node once in turn, the first
// ones with one page more. Calls for no page are left out, but `end` is that of a whole round
// whatever the number of pages; single steps would end elsewhere.
void PlanInterleave(numa::NodeMask mask, InterleaveState start, uint64_t pages, BulkPlan& plan);

// Moves `state` on and calls visit(node, pages) for each call of weighted interleave, kSingleStep
// included. `state` is that after the call (kSingleStep) or after all of them (the others) when
// visit runs. Under kSingleStep a visit that returns false ends it; elsewhere the kernel asks the
// other nodes after a short call, and the answer is not looked at.
template <typename Visit>
void ForEachBulkCall(BulkAlgorithm algorithm, numa::NodeMask mask, const WeightTable& table,
                     InterleaveState& state, uint64_t pages, Visit&& visit) {
  if (algorithm == BulkAlgorithm::kSingleStep) {
    for (uint64_t i = 0; i < pages; ++i) {
      if (!visit(StepWeighted(mask, table, state), uint64_t{1})) return;
    }
    return;
  }
  BulkPlan plan;
  PlanBulk(algorithm, mask, table, state, pages, plan);
  state = plan.end;
  for (const BulkCall& call : plan.Calls()) visit(call.node, call.pages);
}

// Interleave of page faults: the page's index in its mapping decides, no task state is read or
// moved. `mode` is kInterleave or kWeightedInterleave. Source: kernel-mechanisms.md B4.
numa::NodeId InterleaveByIndex(numa::PolicyMode mode, numa::NodeMask mask, const WeightTable& table,
                               uint64_t index);

}  // namespace pipeyard::memory
