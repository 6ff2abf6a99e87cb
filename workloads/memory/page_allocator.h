// PageAllocator: the engine's pages, in one arena per node with memory.
//
//   worker's list of the node ──empty: a batch──► PageNode: stack, buddy ──watermark──► next node
//   by distance ──► reclaim: lists, shrinkers ──► kNoPage
//             ▲──────── full: a batch ──────────────┘
//
// Each worker has a list per node that only it touches: no lock and no atomic read-modify-write
// while the list serves, as the kernel's per-CPU lists. A batch moves under the node's lock.
//
// What an allocation goes through, in this order: the gate of its path (fastpath.h), the task's
// policy (page_choice.h), the worker's list, the charge (memory_controller.h), then the walk. The
// cpuset filters always. Source: kernel-mechanisms.md B3, B4, D.
//
// Unlike the kernel's: there is no background reclaim, because nothing here fills up while nobody
// allocates; a page of a list is taken without a look at the node's watermark, which was looked at
// when the list was filled; and reclaim drains the lists of the worker that needs pages, not those
// of others (which hold at most half of a node, see ListHigh()).
//
// Thread safety: calls that take a PageWorker by the worker that owns it; different workers
// concurrently; OnlineNode() and SetCpuset() at any time by one caller; TakeCensus(), weights and
// shrinkers while no worker is inside. Ownership: state and pages live in the region; this handle,
// made before any fork, is valid in every process.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "workloads/memory/fastpath.h"
#include "workloads/memory/page_choice.h"
#include "workloads/memory/page_node.h"
#include "workloads/memory/page_source.h"
#include "workloads/memory/page_types.h"
#include "workloads/memory/region.h"
#include "workloads/numa/numa_kernel.h"
#include "workloads/numa/topology.h"

namespace pipeyard::memory {

// A node that may come online later: its arena is reserved, neither bound nor populated.
struct OfflineNode {
  numa::NodeId id = 0;
  uint64_t arena_bytes = 0;
};

struct PageAllocatorOptions {
  uint64_t page_bytes = 4096;  // a power of two, a multiple of the host's page
  // Per node with memory: what ordinary allocations can take. The reserve below the watermarks
  // comes on top, except on an emulated node, which has at most its memory_bytes in all.
  uint64_t arena_bytes = 0;
  std::vector<numa::CpuId> worker_cpus;  // of the topology; one per worker
  PageSource source = PageSource::kResident;
  MemoryControllerOptions accounting;
  FastpathSwitches fastpath;
  WeightTable weights;                     // the host's table
  std::vector<OfflineNode> offline_nodes;  // not in the topology, or without memory there
};

// Where every page is, at a moment when no worker is inside.
struct PageCensus {
  uint64_t total = 0;  // of nodes that are online
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
    uint64_t gates_offset = 0;
    uint64_t nodes_offset = 0;
    uint64_t lists_offset = 0;
    uint64_t counters_offset = 0;
    uint64_t controller_offset = 0;
    uint64_t stocks_offset = 0;
    uint64_t page_words_offset = 0;
    uint64_t links_offset = 0;
    uint64_t orders_offset = 0;
    std::vector<uint64_t> stack_offsets;
    std::vector<uint64_t> arena_pages;
    std::vector<numa::NodeId> node_ids;
    std::vector<Watermarks> watermarks;
    uint64_t pages_offset = 0;
    uint64_t num_pages = 0;
  };
  // Adds the allocator's metadata. Errors: kInvalidArgument for a page size, CPU or offline node
  // that cannot be; kOutOfRange for more pages than there are numbers.
  static Result<Plan> AddTo(RegionLayout& layout, const PageAllocatorOptions& options,
                            const numa::Topology& topology);
  // Adds the arenas, after every other part of the region, so that all metadata is one range before
  // them: its owner populates that.
  static void AddArenas(RegionLayout& layout, const PageAllocatorOptions& options, Plan& plan);
  // Binds each arena to its node where `topology` is real, then populates it (resident). All
  // borrowed objects outlive this one. Errors: kFailedPrecondition when a machine with several
  // memory nodes refuses to bind; kResourceExhausted.
  static Result<std::unique_ptr<PageAllocator>> Create(Region& region, const Plan& plan,
                                                       const PageAllocatorOptions& options,
                                                       const numa::Topology& topology,
                                                       numa::NumaKernel& kernel);
  // What a worker's list of a node of that many pages holds at most: kListHigh. Less where workers
  // share a CPU, whose one list they would share in the kernel (down to kSharedListHigh: pages that
  // lie idle in hundreds of lists are touched by hundreds of processes before they come again), and
  // less where the lists of all workers would hold more than half of the node.
  static uint32_t ListHigh(uint64_t num_pages, size_t num_workers, size_t num_cpus);

  // The handle of worker `index` (its position in worker_cpus), under the default policy.
  PageWorker MakeWorker(int index) const;

  // alloc_page(): one page with one reference under the task's policy; kNoPage when no node that it
  // allows has one, or the memory controller refuses. `kWithPolicy` false: the same without any
  // policy, for comparison.
  template <bool kWithPolicy = kPolicyCompiled>
  PageId Allocate(PageWorker& worker) {
    constexpr auto kReasons = static_cast<uint8_t>(kWithPolicy ? 0xff : ~kPolicyDecides);
    if ((gates_->Of(AllocationPath::kPage) & kReasons) == 0) [[likely]] {
      PageList& list = *worker.local_list;
      if (list.count != 0 && worker.stock->TryTake(page_bytes_)) [[likely]] {
        worker.counters->Add(PageCounter::kFastpathPage);
        return list.pages[--list.count];
      }
      return AllocateShort(worker);
    }
    return kWithPolicy ? AllocateByPolicy(worker) : AllocateShort(worker);
  }
  // One page for an explicit request, whatever the task's policy.
  PageId Allocate(PageWorker& worker, const PagePlacement& placement);
  // One page for a fault at page `index` of a mapping with `policy`: the mapping's index decides
  // where interleaving goes, the task's state is neither read nor moved.
  PageId AllocateForFault(PageWorker& worker, const Policy& policy, uint64_t index);

  // Fills `out` from its start, under the task's policy; returns how many pages it got. As the
  // kernel's bulk allocator it does not insist: a call for one node that falls short is not retried
  // elsewhere, the other nodes are still asked, `out` stays dense, and interleaving moves on as
  // planned. A call that asks for one page, or whose node is below its low watermark, gets at most
  // one, from anywhere the policy allows (but see BulkOptions::this_node_only). An accounted
  // request gets at most one page in all.
  uint32_t AllocateBulk(PageWorker& worker, std::span<PageId> out, const BulkOptions& options);

  // 2^order pages, one reference for all, kept by the first page; kNoPage as in Allocate().
  // `node`: numa::kNoNode asks the task's policy; a node is tried first, without any policy.
  PageId AllocateBlock(PageWorker& worker, unsigned order, numa::NodeId node,
                       AllocationFlags flags);
  // Frees what AllocateBlock() with the same order returned.
  void FreeBlock(PageWorker& worker, PageId first, unsigned order);

  // Gives up one reference; the last one frees the page.
  void Put(PageWorker& worker, PageId page) {
    const uint32_t word = page_words_[page].load(std::memory_order_acquire);
    PageList& list = worker.lists[word >> kPageNodeShift & 0xff];
    if ((word & ~kPageNodeBits) == 1 && list.count < list.high &&
        worker.stock->TryGive(page_bytes_)) [[likely]] {
      worker.counters->Add(PageCounter::kFreed);
      list.pages[list.count++] = page;
      return;
    }
    PutSlowly(worker, page);
  }
  // Put() of each.
  void FreeBulk(PageWorker& worker, std::span<const PageId> pages);

  // A second holder of an allocated page.
  void AddReference(PageId page) { page_words_[page].fetch_add(1, std::memory_order_relaxed); }
  // True where the caller's reference is the only one.
  bool IsUnshared(PageId page) const {
    return (page_words_[page].load(std::memory_order_acquire) & kPageReferences) == 1;
  }

  // Charges bytes that are not pages (slab objects) to the attempt's controller, after reclaim
  // where that is needed. False: over the limit; nothing was charged.
  bool Charge(PageWorker& worker, uint64_t bytes) {
    return worker.stock->TryTake(static_cast<int64_t>(bytes)) ||
           ChargeSlowly(worker, static_cast<int64_t>(bytes));
  }
  void Uncharge(PageWorker& worker, uint64_t bytes) {
    controller_.Uncharge(*worker.stock, static_cast<int64_t>(bytes));
  }
  const MemoryController& controller() const { return controller_; }

  std::byte* Address(PageId page) const {
    return pages_ + (static_cast<uint64_t>(page) << page_shift_);
  }
  // From the region's start.
  uint64_t OffsetOf(PageId page) const {
    return pages_offset_ + (static_cast<uint64_t>(page) << page_shift_);
  }
  // Precondition: `offset` lies in a page.
  PageId PageAt(uint64_t offset) const {
    return static_cast<PageId>((offset - pages_offset_) >> page_shift_);
  }
  numa::NodeId NodeOf(PageId page) const {
    return node_ids_[page_words_[page].load(std::memory_order_relaxed) >> kPageNodeShift & 0xff];
  }
  // The node's position in arenas(): cheaper to compare than NodeOf().
  uint32_t NodeIndexOf(PageId page) const {
    return page_words_[page].load(std::memory_order_relaxed) >> kPageNodeShift & 0xff;
  }
  uint64_t page_bytes() const { return static_cast<uint64_t>(page_bytes_); }
  uint64_t num_pages() const { return num_pages_; }
  int num_workers() const { return num_workers_; }
  // One per node with memory, in the order of page numbers; nodes that are offline still, too.
  const std::vector<numa::PageRange>& arenas() const { return arenas_; }
  // False where nothing was bound: an emulated topology, or a single memory node that refused.
  bool is_bound() const { return is_bound_; }
  // By node index, the order of arenas().
  const PageNode& node(size_t index) const { return nodes_[index]; }
  // Whether a worker died inside the lock of a node, whose free pages are lost.
  bool is_broken() const {
    for (const PageNode& node : nodes_) {
      if (node.is_broken()) return true;
    }
    return false;
  }

  // Nodes with memory that the cpuset allows and that are online.
  numa::NodeMask AllowedNodes() const {
    return numa::NodeMask::FromBits(gates_->memory_nodes.load(std::memory_order_relaxed) &
                                    gates_->cpuset_nodes.load(std::memory_order_relaxed));
  }
  // The nodes that an allocation at `node` tries, in order. `node` is any below kMaxNodes.
  std::span<const numa::NodeId> FallbackOrder(numa::NodeId node) const {
    return fallback_ids_[static_cast<size_t>(node)];
  }
  // What the worker's policy decides by, with the cpuset as it is now.
  const PolicyContext& ContextOf(PageWorker& worker) const {
    worker.context.allowed = AllowedNodes();
    return worker.context;
  }
  // Restricts every later allocation, of all workers and processes.
  void SetCpuset(numa::NodeMask mems_allowed);
  bool IsFastpathOn(AllocationPath path) const { return gates_->IsFastpathOn(path); }
  const AllocationGates& gates() const { return *gates_; }
  // Another node with memory is there. Fastpaths are off for good when this returns, in every
  // process; no allocation that starts later passes its policy by. A node of `offline_nodes` is
  // bound, populated and gives pages from now on; of any other it is only known that it exists.
  // Errors: kFailedPrecondition, kResourceExhausted when the arena cannot be used; fastpaths are
  // off then, too.
  Status OnlineNode(numa::NodeId node);
  // The host's weights.
  const WeightTable& weights() const { return weights_; }
  void SetWeights(const WeightTable& weights) { weights_ = weights; }

  // Asked in the order of registration, before any fork. Borrowed.
  void RegisterShrinker(Shrinker* shrinker) { shrinkers_.push_back(shrinker); }
  // Gives the pages of this worker's lists back to their nodes; returns how many.
  uint64_t DrainLists(PageWorker& worker);
  // One direct reclaim: drains this worker's lists, then asks shrinkers until `wanted` pages came
  // back. Returns how many did.
  uint64_t Reclaim(PageWorker& worker, uint64_t wanted);

  // nullptr ends it. Borrowed. Set while no worker is inside.
  void InjectFailures(AllocationFailures* failures);

  // Errors: kInternal when a page is free twice or an owner died inside.
  Result<PageCensus> TakeCensus() const;
  // Sums over workers, in the order of PageCounter.
  std::vector<CounterValue> Counters() const;
  // One of them as workers counted it, without what Counters() adds up.
  uint64_t Count(PageCounter counter) const {
    return ReduceCounter(counters_, num_workers_, counter,
                         kPageCounters[static_cast<size_t>(counter)].reduction);
  }
  // Bulk calls to each node, in the order of arenas().
  std::vector<uint64_t> BulkCallsByNode() const;

 private:
  // Where an allocation may go: nodes in the fallback order of `node`, those of `allowed`.
  struct Walk {
    numa::NodeId node;
    numa::NodeMask allowed;
    bool may_reclaim = true;
  };

  PageAllocator() = default;
  // Binds and populates the arena of a node, as its source and topology want it.
  Status PrepareArena(size_t index, bool must_bind);
  void BuildFallback(const numa::Topology& topology);

  bool IsToFail() { return failures_ != nullptr && failures_->IsNextToFail(); }
  PageId Fail(PageWorker& worker) {
    worker.counters->Add(PageCounter::kFailed);
    return kNoPage;
  }
  uint32_t IndexOf(numa::NodeId node) const { return node_index_[static_cast<size_t>(node)]; }

  // Of Allocate(): without policy, where the short path does not serve.
  PageId AllocateShort(PageWorker& worker);
  PageId AllocateByPolicy(PageWorker& worker);
  PageChoice LocalChoice(const PageWorker& worker) const {
    return {worker.local.preferred, AllowedNodes(), false};
  }
  // As the task's policy has it. A cpuset without memory leaves nothing to choose from: the
  // policies take a non-empty set.
  PageChoice ChooseForTask(PageWorker& worker) const {
    const PolicyContext& context = ContextOf(worker);
    if (context.allowed.IsEmpty()) [[unlikely]]
      return {context.local, context.allowed, false};
    return ChoosePage(worker.policy, context);
  }
  // One page or block of that choice; counts failures and fallbacks, not the pages.
  PageId AllocateChosen(PageWorker& worker, const PageChoice& choice, unsigned order,
                        AllocationFlags flags);
  // Index of the node that the walk takes from while it has pages; num_nodes_: it may take from
  // none.
  uint32_t FirstOf(const Walk& walk) const;
  PageId WalkNodes(PageWorker& worker, const Walk& walk, unsigned order);
  PageId WalkOnce(PageWorker& worker, const Walk& walk, unsigned order, Mark mark);
  // Moves a batch from the node to `list`; false when the node has none above `mark`.
  bool Refill(PageWorker& worker, uint32_t node_index, Mark mark);
  void Drain(PageWorker& worker, uint32_t node_index);
  void PutSlowly(PageWorker& worker, PageId page);
  // The page's last reference is gone: charge and memory go back, as its word says.
  void ReleasePage(PageWorker& worker, PageId page, uint32_t word);
  // The caller is the only holder, so that no read-modify-write is needed.
  void MarkUnaccounted(PageId page) {
    std::atomic<uint32_t>& word = page_words_[page];
    word.store(word.load(std::memory_order_relaxed) | kPageUnaccounted, std::memory_order_relaxed);
  }
  void MarkRunUnaccounted(std::span<const PageId> pages, uint32_t node_index);
  // True when the caller's was the last reference.
  bool DropReference(PageId page);
  bool ChargeSlowly(PageWorker& worker, int64_t bytes);
  void MakePresent(PageWorker& worker, PageId first, unsigned order);
  void GiveBack(PageWorker& worker, PageId first, unsigned order);

  // Of FreeBulk(): pages that all have this word.
  void FreeRun(PageWorker& worker, std::span<const PageId> pages, uint32_t word);
  // Of AllocateBulk(): one call of the kernel's bulk allocator.
  uint32_t BulkCallOn(PageWorker& worker, const Walk& walk, std::span<PageId> out,
                      const BulkOptions& options);
  // Pages of the first node of the walk only, and only while it stays above its low watermark.
  uint32_t TakeRun(PageWorker& worker, const Walk& walk, std::span<PageId> out);

  // Constant after creation, but for failures_, shrinkers_ and weights_.
  Region* region_ = nullptr;
  AllocationGates* gates_ = nullptr;
  int64_t page_bytes_ = 4096;
  std::atomic<uint32_t>* page_words_ = nullptr;
  std::byte* pages_ = nullptr;
  uint64_t pages_offset_ = 0;
  uint32_t page_shift_ = 12;
  uint32_t num_nodes_ = 0;
  uint64_t num_pages_ = 0;
  int num_workers_ = 0;
  bool is_bound_ = false;
  bool is_emulated_ = false;
  PageSource source_ = PageSource::kResident;
  mutable std::vector<PageNode> nodes_;  // by node index; handles of what is in the region
  PageList* lists_ = nullptr;            // worker-major
  CounterBlock<PageCounter>* counters_ = nullptr;
  ChargeStock* stocks_ = nullptr;
  MemoryController controller_;
  std::vector<numa::PageRange> arenas_;
  // NodeId -> index; nodes without an arena: of the nearest that has one.
  uint32_t node_index_[numa::kMaxNodes] = {};
  numa::NodeId node_ids_[numa::kMaxNodes] = {};
  // By NodeId: what a walk tries, as ids and as node indices.
  std::vector<std::vector<numa::NodeId>> fallback_ids_;
  std::vector<std::vector<uint32_t>> fallback_;
  std::vector<PagePlacement> worker_placements_;
  WeightTable weights_;
  std::vector<Shrinker*> shrinkers_;
  numa::NumaKernel* kernel_ = nullptr;
  AllocationFailures* failures_ = nullptr;
};

}  // namespace pipeyard::memory
