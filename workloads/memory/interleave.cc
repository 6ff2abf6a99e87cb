#include "workloads/memory/interleave.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace pipeyard::memory {
namespace {

struct Division {
  uint64_t rounds;
  uint64_t rest;
};

// A division of 64-bit numbers costs several times one of 32-bit numbers on the CPUs met here, and
// a request is never larger than the latter.
Division Divide(uint64_t pages, uint32_t by) {
  if (pages <= std::numeric_limits<uint32_t>::max()) {
    const uint32_t small = static_cast<uint32_t>(pages);
    return {small / by, small % by};
  }
  return {pages / by, pages % by};
}

uint32_t TotalWeight(numa::NodeMask mask, const WeightTable& table) {
  uint32_t total = 0;
  for (uint64_t bits = mask.bits(); bits != 0; bits &= bits - 1)
    total += table[std::countr_zero(bits)];
  return total;
}

InterleaveState State(numa::NodeId node, uint64_t carry) {
  return {.prev = static_cast<uint8_t>(node), .carry = static_cast<uint8_t>(carry)};
}

void AddCall(BulkPlan& plan, numa::NodeId node, uint64_t pages) {
  plan.calls[plan.num_calls] = {node, pages};
  plan.num_calls += 1;
}

// The nodes of a mask in interleaving order, from the one after `prev`.
class Cycle {
 public:
  Cycle(numa::NodeMask mask, numa::NodeId prev)
      : above_(mask.bits() & (~uint64_t{1} << prev)), below_(mask.bits() & ~above_) {
    if (above_ == 0) std::swap(above_, below_);
  }
  bool IsDone() const { return above_ == 0; }
  numa::NodeId Next() {
    const numa::NodeId node = std::countr_zero(above_);
    above_ &= above_ - 1;
    if (above_ == 0) std::swap(above_, below_);
    return node;
  }

 private:
  uint64_t above_;
  uint64_t below_;
};

// kernel-mechanisms.md C2. `rest` pages after the carry; `prev` is where the cycle starts behind.
void PlanSplit(numa::NodeMask mask, const WeightTable& table, numa::NodeId prev, uint64_t rest,
               BulkPlan& plan) {
  const Division share = Divide(rest, TotalWeight(mask, table));
  const numa::NodeId first = NextNode(mask, prev);
  plan.end = State(first, table[first]);
  uint64_t delta = share.rest;
  for (Cycle cycle(mask, prev); !cycle.IsDone();) {
    const numa::NodeId node = cycle.Next();
    const uint64_t weight = table[node];
    uint64_t pages = weight * share.rounds;
    if (delta > weight) {
      pages += weight;
      delta -= weight;
    } else if (delta > 0) {
      pages += delta;
      plan.end = State(node, weight - delta);
      delta = 0;
    }
    if (pages == 0) return;
    AddCall(plan, node, pages);
  }
}

// kernel-mechanisms.md C4: the carry joins the share of its node, which is the last of the cycle
// but is asked first.
void PlanFolded(numa::NodeMask mask, const WeightTable& table, numa::NodeId prev, uint64_t carry,
                uint64_t rest, BulkPlan& plan) {
  const Division share = Divide(rest, TotalWeight(mask, table));
  uint64_t delta = share.rest;
  // Where no node takes the last page of a part of a round, the last node of the cycle did.
  const bool is_whole_rounds = delta == 0;
  const int carried_call = carry > 0 ? plan.num_calls : -1;
  if (carry > 0) AddCall(plan, prev, carry);
  for (Cycle cycle(mask, prev); !cycle.IsDone();) {
    const numa::NodeId node = cycle.Next();
    const uint64_t weight = table[node];
    const uint64_t part = std::min(delta, weight);
    const uint64_t pages = weight * share.rounds + part;
    delta -= part;
    if (is_whole_rounds) {
      plan.end = State(node, 0);
    } else if (part > 0 && delta == 0) {
      plan.end = State(node, weight - part);
    }
    if (pages == 0) return;
    if (carried_call >= 0 && node == prev) {
      plan.calls[carried_call].pages += pages;
    } else {
      AddCall(plan, node, pages);
    }
  }
}

// kernel-mechanisms.md C3, without its undefined behaviour: the carry's node leads the cycle and
// takes the first share of the part of a round, and a part that ends on a node's boundary leaves
// the state at the first node.
void PlanPosted(numa::NodeMask mask, const WeightTable& table, numa::NodeId prev, uint64_t carry,
                uint64_t rest, BulkPlan& plan) {
  const Division share = Divide(rest, TotalWeight(mask, table));
  const numa::NodeId resume = NextNode(mask, prev);
  plan.end = State(resume, table[resume]);
  uint64_t delta = share.rest;
  uint64_t left = carry + rest;
  numa::NodeId node = carry > 0 ? prev : resume;
  for (int i = 0; i < mask.Count() && left > 0; ++i) {
    const uint64_t weight = table[node];
    uint64_t pages = weight * share.rounds + (i == 0 ? carry : 0);
    if (delta >= weight) {
      pages += weight;
      delta -= weight;
    } else if (delta > 0) {
      pages += delta;
      plan.end = State(node, weight - delta);
      delta = 0;
    }
    if (pages == 0) return;
    AddCall(plan, node, pages);
    left -= pages;
    node = NextNode(mask, node);
  }
}

struct AlgorithmName {
  BulkAlgorithm algorithm;
  std::string_view name;
};
constexpr AlgorithmName kNames[] = {
    {BulkAlgorithm::kSplitCarry, "split-carry"},
    {BulkAlgorithm::kSingleStep, "single-step"},
    {BulkAlgorithm::kFoldedCarry, "folded-carry"},
    {BulkAlgorithm::kPostedPatch, "posted-patch"},
};

}  // namespace

Result<BulkAlgorithm> ParseBulkAlgorithm(std::string_view text) {
  for (const AlgorithmName& known : kNames) {
    if (known.name != text) continue;
    if (known.algorithm != BulkAlgorithm::kPostedPatch) return known.algorithm;
    return InvalidArgument(
        "'posted-patch' computes wrong per-node counts and exists for unit tests only; "
        "folded-carry is the correct form");
  }
  return InvalidArgument("'" + std::string(text.substr(0, 40)) +
                         "': not one of split-carry, single-step, folded-carry");
}

std::string_view BulkAlgorithmName(BulkAlgorithm algorithm) {
  for (const AlgorithmName& known : kNames) {
    if (known.algorithm == algorithm) return known.name;
  }
  return "";
}

void PlanBulk(BulkAlgorithm algorithm, numa::NodeMask mask, const WeightTable& table,
              InterleaveState start, uint64_t pages, BulkPlan& plan) {
  assert(algorithm != BulkAlgorithm::kSingleStep && !mask.IsEmpty());
  plan.num_calls = 0;
  plan.end = start;
  if (pages == 0) return;
  const uint64_t carry = mask.Contains(start.prev) ? start.carry : 0;
  if (pages <= carry) {
    AddCall(plan, start.prev, pages);
    plan.end = State(start.prev, carry - pages);
    return;
  }
  const uint64_t rest = pages - carry;
  switch (algorithm) {
    case BulkAlgorithm::kFoldedCarry:
      return PlanFolded(mask, table, start.prev, carry, rest, plan);
    case BulkAlgorithm::kPostedPatch:
      return PlanPosted(mask, table, start.prev, carry, rest, plan);
    case BulkAlgorithm::kSplitCarry:
    case BulkAlgorithm::kSingleStep:
      if (carry > 0) AddCall(plan, start.prev, carry);
      return PlanSplit(mask, table, start.prev, rest, plan);
  }
}

void PlanInterleave(numa::NodeMask mask, InterleaveState start, uint64_t pages, BulkPlan& plan) {
  plan.num_calls = 0;
  plan.end = start;
  if (pages == 0) return;
  const Division share = Divide(pages, static_cast<uint32_t>(mask.Count()));
  uint64_t extra = share.rest;
  for (Cycle cycle(mask, start.prev); !cycle.IsDone();) {
    const numa::NodeId node = cycle.Next();
    plan.end.prev = static_cast<uint8_t>(node);
    const uint64_t node_pages = share.rounds + (extra > 0 ? 1 : 0);
    if (extra > 0) extra -= 1;
    if (node_pages > 0) AddCall(plan, node, node_pages);
  }
}

numa::NodeId InterleaveByIndex(numa::PolicyMode mode, numa::NodeMask mask, const WeightTable& table,
                               uint64_t index) {
  uint64_t bits = mask.bits();
  if (mode != numa::PolicyMode::kWeightedInterleave) {
    uint64_t place = index % static_cast<uint64_t>(mask.Count());
    for (; place > 0; --place) bits &= bits - 1;
    return std::countr_zero(bits);
  }
  uint64_t place = index % TotalWeight(mask, table);
  for (;; bits &= bits - 1) {
    const numa::NodeId node = std::countr_zero(bits);
    if (place < table[node]) return node;
    place -= table[node];
  }
}

}  // namespace pipeyard::memory
