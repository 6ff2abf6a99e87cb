// PageAllocator: the engine's pages, in one arena per node with memory, order 0.
//
//   worker's list of the node  ──empty: a batch──►  the node's free stack  ──empty──►  next node by
//   distance  ──►  kNoPage
//             ▲──────── full: a batch ──────────────────────┘
//
// Each worker has a list per node that only it touches: no lock and no atomic read-modify-write
// while the list serves, as the kernel's per-CPU lists. A batch moves under the node's lock. A
// node's stack is last in, first out, so pages that circulate between a writer and a reader stay in
// the caches.
//
// It is not a policy: the caller says which node is preferred and which are allowed; orders above
// 0, watermarks and reclaim have no place here yet because nothing asks for them. Thread safety:
// Allocate/Put by the worker that owns the PageWorker; different workers concurrently. TakeCensus()
// and the map while no worker is inside. Ownership: state and pages live in the region; this
// handle, made before any fork, is valid in every process.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "workloads/memory/counter_block.h"
#include "workloads/memory/region.h"
#include "workloads/memory/shared_mutex.h"
#include "workloads/numa/numa_kernel.h"
#include "workloads/numa/topology.h"

namespace pipeyard::memory {

// Pages are numbered from 0 over all arenas.
using PageId = uint32_t;
inline constexpr PageId kNoPage = UINT32_MAX;

// How many pages move between a worker's list and a node at a time, and how many a list holds at
// most before it gives a batch back. Source: the kernel's per-CPU batch is 63 on machines of this
// size; its high mark is at least twice that.
inline constexpr uint32_t kListBatch = 63;
inline constexpr uint32_t kListHigh = 126;

enum class PageCounter {
  kAllocated,
  kFreed,
  kFailed,
  kFallback,
  kRefills,
  kDrains,
  kCount,
};
// In the order of PageCounter.
extern const CounterDefinition kPageCounters[static_cast<size_t>(PageCounter::kCount)];

// SHARED. One worker's free pages of one node.
struct alignas(kCacheLine) PageList {
  uint32_t count;
  PageId pages[kListHigh];
};
PIPEYARD_CHECK_SHARED(PageList);

// SHARED. One node's free pages.
struct alignas(kCacheLine) NodePages {
  SharedMutex mutex;
  uint32_t num_free GUARDED_BY(mutex);
  // Constant after creation.
  PageId first_page;
  uint32_t num_pages;
  uint64_t stack_offset;  // of PageId[num_pages]; the first num_free of them are free
};
PIPEYARD_CHECK_SHARED(NodePages);

// Which pages an allocation may take.
struct PagePlacement {
  numa::NodeId preferred = 0;
  numa::NodeMask allowed;
};

// Test seam: allocations `first`, `first`+1, ... (counted from 1 over all workers) fail, `count` of
// them. Process-private.
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
  CounterBlock<PageCounter>* counters = nullptr;
  PagePlacement local;  // of this worker's CPU: its nearest memory, anywhere allowed
};

struct PageAllocatorOptions {
  uint64_t page_bytes = 4096;  // a power of two, a multiple of the host's page
  uint64_t arena_bytes = 0;  // per node with memory; an emulated node has at most its memory_bytes
  std::vector<numa::CpuId> worker_cpus;  // of the topology; one per worker
};

// Where every page is, at a moment when no worker is inside.
struct PageCensus {
  uint64_t total = 0;
  uint64_t free_on_nodes = 0;
  uint64_t free_on_lists = 0;
  // By page: true where neither a node nor a list holds it.
  std::vector<bool> is_allocated;
  uint64_t num_allocated = 0;
};

class PageAllocator {
 public:
  // Adds this allocator's parts to `layout`. Create() with the same options then uses them.
  struct Plan {
    uint64_t nodes_offset = 0;
    uint64_t lists_offset = 0;
    uint64_t counters_offset = 0;
    uint64_t references_offset = 0;
    uint64_t page_nodes_offset = 0;
    std::vector<uint64_t> stack_offsets;
    std::vector<uint64_t> arena_pages;
    uint64_t pages_offset = 0;
    uint64_t num_pages = 0;
  };
  // Errors: kInvalidArgument for a page size or CPU that cannot be.
  static Result<Plan> AddTo(RegionLayout& layout, const PageAllocatorOptions& options,
                            const numa::Topology& topology);
  // Binds each arena to its node where `topology` is real, then populates it. All borrowed objects
  // outlive this one. Errors: kFailedPrecondition when a machine with several memory nodes refuses
  // to bind; kResourceExhausted.
  static Result<std::unique_ptr<PageAllocator>> Create(Region& region, const Plan& plan,
                                                       const PageAllocatorOptions& options,
                                                       const numa::Topology& topology,
                                                       numa::NumaKernel& kernel);

  // The handle of worker `index` (its position in worker_cpus).
  PageWorker MakeWorker(int index) const;

  // One page with one reference, from the preferred node or the nearest allowed one with a free
  // page; kNoPage when there is none.
  PageId Allocate(PageWorker& worker, const PagePlacement& placement) {
    if (failures_ != nullptr && failures_->IsNextToFail()) [[unlikely]]
      return FailAllocation(worker);
    PageList& list = worker.lists[node_index_[static_cast<size_t>(placement.preferred)]];
    if (list.count != 0 && placement.allowed.Contains(placement.preferred)) [[likely]] {
      worker.counters->Add(PageCounter::kAllocated);
      return list.pages[--list.count];
    }
    return AllocateSlowly(worker, placement);
  }
  PageId Allocate(PageWorker& worker) { return Allocate(worker, worker.local); }

  // Gives up one reference; the last one frees the page.
  void Put(PageWorker& worker, PageId page) {
    if (!IsUnshared(page) && !DropReference(page)) return;
    PageList& list = worker.lists[node_index_[page_nodes_[page]]];
    worker.counters->Add(PageCounter::kFreed);
    if (list.count == kListHigh) [[unlikely]]
      Drain(worker, list, node_index_[page_nodes_[page]]);
    list.pages[list.count++] = page;
  }
  // A second holder of an allocated page.
  void AddReference(PageId page) { references_[page].fetch_add(1, std::memory_order_relaxed); }
  // True where the caller's reference is the only one.
  bool IsUnshared(PageId page) const {
    return references_[page].load(std::memory_order_acquire) == 1;
  }

  std::byte* Address(PageId page) const {
    return pages_ + (static_cast<uint64_t>(page) << page_shift_);
  }
  numa::NodeId NodeOf(PageId page) const { return page_nodes_[page]; }
  uint64_t page_bytes() const { return uint64_t{1} << page_shift_; }
  uint64_t num_pages() const { return num_pages_; }
  int num_workers() const { return num_workers_; }
  // One per node with memory, in the order of page numbers.
  const std::vector<numa::PageRange>& arenas() const { return arenas_; }
  // False where nothing was bound: an emulated topology, or a single memory node that refused.
  bool is_bound() const { return is_bound_; }

  // nullptr ends it. Borrowed. Set while no worker is inside.
  void InjectFailures(AllocationFailures* failures) { failures_ = failures; }

  // Errors: kInternal when a page is free twice or an owner died inside.
  Result<PageCensus> TakeCensus() const;
  // Sums over workers, in the order of PageCounter.
  std::vector<CounterValue> Counters() const;

 private:
  PageAllocator() = default;
  PageId FailAllocation(PageWorker& worker);
  PageId AllocateSlowly(PageWorker& worker, const PagePlacement& placement);
  // Moves a batch from the node's stack to `list`; false when the node has none.
  bool Refill(PageWorker& worker, PageList& list, uint32_t node_index);
  void Drain(PageWorker& worker, PageList& list, uint32_t node_index);
  // True when the caller's was the last reference.
  bool DropReference(PageId page);

  // Constant after creation, but for failures_.
  Region* region_ = nullptr;
  std::byte* pages_ = nullptr;
  uint32_t page_shift_ = 12;
  uint32_t num_nodes_ = 0;
  uint64_t num_pages_ = 0;
  int num_workers_ = 0;
  bool is_bound_ = false;
  NodePages* nodes_ = nullptr;  // by node index
  PageList* lists_ = nullptr;   // worker-major
  CounterBlock<PageCounter>* counters_ = nullptr;
  std::atomic<uint16_t>* references_ =
      nullptr;                     // by page; a free page keeps 1, so allocation writes nothing
  uint8_t* page_nodes_ = nullptr;  // by page
  std::vector<numa::PageRange> arenas_;
  uint32_t node_index_[numa::kMaxNodes] =
      {};  // NodeId -> index; nodes without memory: of the nearest that has some
  numa::NodeId node_ids_[numa::kMaxNodes] = {};
  std::vector<std::vector<uint32_t>> fallback_;  // by NodeId, node indices
  std::vector<PagePlacement> worker_placements_;
  AllocationFailures* failures_ = nullptr;
};

}  // namespace pipeyard::memory
