// The single-node fastpath: per allocation path one byte in shared memory that says why the short
// path must not be taken.
//
//   0           take the page from the list of the only node: no policy is looked at
//   otherwise   the long way, which looks at every reason
//
// So the policy's removal costs the short path nothing beyond the test that it needs anyway: the
// other reasons share the byte. It models the kernel's static key by a predicted branch on
// read-mostly memory, which processes share as threads do.
//
// Rules (kernel-mechanisms.md D): enabled only where exactly one node has memory, the topology is
// real and the switch of the path is on (F1); off for good before OnlineNode() returns (F2); the
// state of interleaving is left as it is while a path is on (F3).
// Thread safety: thread-safe. Ownership: lives in the region.
#pragma once

#include <atomic>
#include <cstdint>

#include "workloads/memory/shared.h"

namespace pipeyard::memory {

// What was built without policies measures what looking at them costs (bench).
#if defined(PIPEYARD_NO_POLICY)
inline constexpr bool kPolicyCompiled = false;
#else
inline constexpr bool kPolicyCompiled = true;
#endif

enum class AllocationPath { kFault, kPage, kBulk, kSlab, kCount };
inline constexpr size_t kNumAllocationPaths = static_cast<size_t>(AllocationPath::kCount);

// Which paths are asked for (settings `fastpath` and `fastpath_{fault,page,bulk,slab}`).
struct FastpathSwitches {
  bool fault = false;
  bool page = false;
  bool bulk = false;
  bool slab = false;

  bool Of(AllocationPath path) const {
    const bool by_path[kNumAllocationPaths] = {fault, page, bulk, slab};
    return by_path[static_cast<size_t>(path)];
  }
  static FastpathSwitches All() { return {true, true, true, true}; }
};

// Reasons, one bit each.
inline constexpr uint8_t kPolicyDecides = 1;     // the fastpath of this path is off
inline constexpr uint8_t kFailuresInjected = 2;  // a test's
inline constexpr uint8_t kPagesOnDemand = 4;     // a page must be touched when it is allocated
inline constexpr uint8_t kCpusetExcludes = 8;    // the cpuset lacks a node that has memory

// SHARED
struct alignas(kCacheLine) AllocationGates {
  std::atomic<uint8_t> reasons[kNumAllocationPaths];
  // Nodes with memory, and those of them that the cpuset allows, as NodeMask bits.
  std::atomic<uint64_t> memory_nodes;
  std::atomic<uint64_t> cpuset_nodes;
  std::atomic<uint32_t> num_flips;  // how often OnlineNode() turned fastpaths off

  uint8_t Of(AllocationPath path) const {
    return reasons[static_cast<size_t>(path)].load(std::memory_order_relaxed);
  }
  bool IsFastpathOn(AllocationPath path) const { return (Of(path) & kPolicyDecides) == 0; }
  // Ordered before whatever follows: who learns of that takes the long way.
  void Add(AllocationPath path, uint8_t reason) {
    reasons[static_cast<size_t>(path)].fetch_or(reason, std::memory_order_seq_cst);
  }
  void Remove(AllocationPath path, uint8_t reason) {
    reasons[static_cast<size_t>(path)].fetch_and(static_cast<uint8_t>(~reason),
                                                 std::memory_order_seq_cst);
  }
};
PIPEYARD_CHECK_SHARED(AllocationGates);

}  // namespace pipeyard::memory
