// A second, slow statement of weighted interleave for tests: pages one by one, nodes by looking at
// each number in turn.
//
// Thread safety: pure functions.
#pragma once

#include <map>

#include "workloads/memory/interleave.h"

namespace pipeyard::memory {

inline numa::NodeId SlowStep(numa::NodeMask mask, const WeightTable& table, int& prev, int& carry) {
  if (carry == 0 || !mask.Contains(prev)) {
    do {
      prev = (prev + 1) % numa::kMaxNodes;
    } while (!mask.Contains(prev));
    carry = table[prev];
  }
  carry -= 1;
  return prev;
}

// Pages of a plan by node, without nodes that get none.
inline std::map<numa::NodeId, uint64_t> PagesPerNode(const BulkPlan& plan) {
  std::map<numa::NodeId, uint64_t> pages;
  for (const BulkCall& call : plan.Calls()) pages[call.node] += call.pages;
  return pages;
}

}  // namespace pipeyard::memory
