// The page allocator's words: page numbers, a worker's lists, what an allocation may ask for.
//
// Thread safety: values, but for what says otherwise.
#pragma once

#include <atomic>
#include <cstdint>

#include "workloads/memory/interleave.h"
#include "workloads/memory/memory_controller.h"
#include "workloads/memory/page_counters.h"
#include "workloads/memory/policy.h"
#include "workloads/memory/shared.h"
#include "workloads/numa/node_mask.h"

namespace pipeyard::memory {

// Pages are numbered from 0 over all arenas.
using PageId = uint32_t;
inline constexpr PageId kNoPage = UINT32_MAX;

// Orders 0..10, as the kernel has them: blocks of 1 to 1024 pages.
inline constexpr unsigned kNumOrders = 11;
inline constexpr unsigned kMaxOrder = kNumOrders - 1;

// How many pages move between a worker's list and a node at a time, and how many a list holds at
// most before it gives a batch back. Source: the kernel's per-CPU batch is 63 on machines of this
// size; its high mark is at least twice that. Where many workers share a small node their lists are
// smaller (PageAllocator::ListHigh).
inline constexpr uint32_t kListBatch = 63;
inline constexpr uint32_t kListHigh = 126;
inline constexpr uint32_t kSharedListHigh = 8;

// SHARED. One worker's free pages of one node.
struct alignas(kCacheLine) PageList {
  uint32_t count;
  uint32_t high;                     // constant after creation, 2..kListHigh
  std::atomic<uint64_t> bulk_calls;  // of this worker to this node
  PageId pages[kListHigh];

  uint32_t batch() const { return high / 2; }
};
PIPEYARD_CHECK_SHARED(PageList);

// What the allocator knows of each page, in one word of shared memory: bits 0-15 references,
// 16-23 index of the node, then flags. A free page keeps one reference, so that allocation writes
// nothing.
inline constexpr uint32_t kPageReferences = 0xffff;
inline constexpr uint32_t kPageNodeShift = 16;
inline constexpr uint32_t kPageNodeBits = uint32_t{0xff} << kPageNodeShift;
inline constexpr uint32_t kPageUnaccounted = uint32_t{1} << 24;  // it was not charged
inline constexpr uint32_t kPageOnDemand = uint32_t{1} << 25;     // freed to the kernel, too

// Which pages an allocation may take.
struct PagePlacement {
  numa::NodeId preferred = 0;
  numa::NodeMask allowed;
};

struct AllocationFlags {
  bool this_node_only = false;  // no fallback
  bool no_wait = false;         // no direct reclaim
  bool is_accounted = true;     // charged to the memory controller, where accounting is on
};

struct BulkOptions {
  BulkAlgorithm algorithm = BulkAlgorithm::kSplitCarry;
  bool is_accounted = true;
  // __GFP_THISNODE: the page that a refused or empty call still gets comes from its node or not at
  // all. Without it that page comes from anywhere the policy allows, as the kernel has it.
  bool this_node_only = false;
};

// Test seam: allocations `first`, `first`+1, ... (counted from 1 over all workers) fail, `count` of
// them. Each page of a bulk call counts, a block counts once. Process-private.
struct AllocationFailures {
  uint64_t first = 0;
  uint64_t count = 1;
  std::atomic<uint64_t> num_allocations{0};

  bool IsNextToFail() {
    const uint64_t number = num_allocations.fetch_add(1, std::memory_order_relaxed) + 1;
    return number >= first && number - first < count;
  }
};

// A worker's view of the allocator. Process-private; used by one thread.
struct PageWorker {
  PageList* lists = nullptr;  // by the allocator's node index
  PageList* local_list = nullptr;
  CounterBlock<PageCounter>* counters = nullptr;
  ChargeStock* stock = nullptr;
  PagePlacement local;    // of this worker's CPU: its nearest memory, anywhere allowed
  TaskPolicy policy;      // its own to change, with policy.SetPolicy()
  PolicyContext context;  // `allowed` is what the cpuset was at the last allocation
};

// Gives pages back when the allocator runs short, from the allocating worker. Process-private;
// registered before any fork.
class Shrinker {
 public:
  virtual ~Shrinker() = default;
  // Frees pages into the allocator, about `wanted` of them, any node. Returns how many it freed.
  // It allocates nothing, and no lock of the allocator is held.
  virtual uint64_t Shrink(PageWorker& worker, uint64_t wanted) = 0;
};

}  // namespace pipeyard::memory
