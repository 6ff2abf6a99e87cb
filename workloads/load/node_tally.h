// NodeTally: what one task counts by node while it runs.
//
// Thread safety: the task alone adds; anybody may read meanwhile. Ownership: lives in shared
// memory; all zero bytes is nothing counted.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "workloads/load/phase.h"
#include "workloads/memory/shared.h"
#include "workloads/numa/node_mask.h"

namespace pipeyard::load {

// SHARED
struct alignas(kFalseSharingRange) NodeTally {
  std::atomic<uint64_t> counts[numa::kMaxNodes];

  // Precondition: 0 <= node < kMaxNodes.
  void Add(numa::NodeId node, uint64_t amount) {
    std::atomic<uint64_t>& count = counts[node];
    count.store(count.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
};
PIPEYARD_CHECK_SHARED(NodeTally);

// Of all tasks.
inline uint64_t SumOf(std::span<const NodeTally> tallies, numa::NodeId node) {
  uint64_t sum = 0;
  for (const NodeTally& tally : tallies) {
    sum += tally.counts[node].load(std::memory_order_relaxed);
  }
  return sum;
}

}  // namespace pipeyard::load
