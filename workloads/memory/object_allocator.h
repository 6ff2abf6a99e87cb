// ObjectAllocator: the engine's kmalloc. Objects up to two pages come from slabs, larger ones are
// blocks of pages.
//
//   form `sheaves` (kernel 7.x)                     form `cpu-slab` (kernel up to 6.x)
//   worker's main sheaf ⇄ spare sheaf               worker's active slab
//        ⇅ whole sheaves                                 │ empty
//   the node's barn                                      ▼
//        ⇅ objects                                  the node's partial list
//   the node's partial list                              │ empty
//        │ empty                                         ▼
//        ▼                                          other nodes' partial lists, through the gate
//   other nodes' partial lists, through the gate         │
//        │                                               ▼
//        ▼                                          new slab from the page allocator
//   new slab from the page allocator
//
// A request without a node takes what is on top, whatever node it is of. A request for another node
// than the worker's passes by the worker's own lists; one for the worker's node does so when the
// object on top is of another node, which stays there. A named node is a preference: partial list
// and new slab of that node, then anything. Objects of other nodes are freed to their slab at once.
// Source: kernel-mechanisms.md B1, B2.
//
// It is not a policy: it asks the task's policy only where the kernel's slab allocator does (the
// order in which the gate looks at nodes; strict-policy). The kernel's per-CPU list of partial
// slabs (cpu-slab form) is left out: it changes batching, not placement.
//
// Thread safety: Allocate/Free/Flush by the worker that owns the ObjectWorker; different workers
// concurrently, threads or processes; a free may come from another worker than the allocation.
// TakeCensus() while no worker is inside. The fast paths take no lock and make no atomic
// read-modify-write. Ownership: state and objects live in the region; this handle, made before any
// fork, is valid in every process. It registers with the page allocator as a shrinker and must be
// destroyed before it. The death of a worker inside a lock makes is_broken() true and later calls
// fail; it is not repaired.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "workloads/memory/counter_block.h"
#include "workloads/memory/page_allocator.h"
#include "workloads/memory/region.h"
#include "workloads/memory/slab_counters.h"
#include "workloads/memory/slab_lists.h"
#include "workloads/memory/slab_sheaf.h"
#include "workloads/numa/topology.h"

namespace pipeyard::memory {

enum class SlabForm { kSheaves, kCpuSlab };
// "sheaves", "cpu-slab". Errors: kInvalidArgument.
Result<SlabForm> ParseSlabForm(std::string_view text);
std::string_view SlabFormName(SlabForm form);

struct ObjectAllocatorOptions {
  SlabForm form = SlabForm::kSheaves;
  // metadata_placement: strict-policy: requests without a node ask the task's policy. Acts only
  // with several memory nodes, as the kernel's static key.
  bool is_strict_policy = false;
  int defrag_ratio = 100;  // 0..100; how often a miss may look at other nodes
  uint64_t seed = 1;       // of the gate's dice; each worker has its own sequence
};

// SHARED. What one worker owns of one class. In the cpu-slab form the sheaves hold no object ever,
// neither empty nor with room, so that the fast paths need not ask for the form.
struct WorkerClass {
  uint64_t main;  // offsets of sheaves; nobody else touches them
  uint64_t spare;
  uint32_t charge_bytes;  // of one object
  // Cpu-slab form: the active slab (kNoPage: none), the bytes of its objects (none: 0), and those
  // free ones that this worker has taken over.
  PageId active;
  ObjectRef active_begin;
  uint32_t active_bytes;
  FreeChain free;
};
PIPEYARD_CHECK_SHARED(WorkerClass);

// SHARED. What one worker owns.
struct alignas(kCacheLine) ObjectWorkerState {
  WorkerClass classes[kMaxSlabClasses];
  uint64_t random;  // state of the gate's dice
};
PIPEYARD_CHECK_SHARED(ObjectWorkerState);

// SHARED. Counted by whoever reclaims.
struct alignas(kCacheLine) ObjectReclaim {
  std::atomic<uint64_t> num_slabs;
};
PIPEYARD_CHECK_SHARED(ObjectReclaim);

// A worker's view of the allocator. Process-private; used by one thread. Borrows `pages`.
struct ObjectWorker {
  ObjectWorkerState* state = nullptr;
  CounterBlock<ObjectCounter>* counters = nullptr;
  ChargeStock* stock = nullptr;  // of `pages`
  PageWorker* pages = nullptr;
  numa::NodeId local = 0;    // the memory node of the worker's CPU
  uint32_t local_index = 0;  // its position in PageAllocator::arenas()
};

// Where every object is, at a moment when no worker is inside.
struct ObjectCensus {
  uint64_t num_objects = 0;  // of all slabs
  uint64_t free_in_slabs = 0;
  uint64_t free_in_sheaves = 0;  // the workers' main and spare
  uint64_t free_in_barns = 0;
  uint64_t free_in_active = 0;  // taken over by the workers whose active slab it is
  uint64_t num_live = 0;        // slab objects that are in none of these places
  uint64_t num_slabs = 0;
  uint64_t num_empty_slabs = 0;
  uint64_t num_blocks = 0;  // objects above two pages
  uint64_t num_pages = 0;   // of slabs and blocks
  // The placement histogram: live objects, blocks included, by the node of their first page.
  std::array<uint64_t, numa::kMaxNodes> live_by_node{};
  // By class as SlabClassIndex() numbers them.
  std::array<std::array<uint64_t, numa::kMaxNodes>, kMaxSlabClasses> live_by_class{};
  std::vector<ObjectRef> live;  // ascending
};

class ObjectAllocator {
 public:
  struct Plan {
    SlabLists::Plan lists;
    uint64_t workers_offset = 0;
    uint64_t counters_offset = 0;
    uint64_t barns_offset = 0;
    uint64_t reclaim_offset = 0;
    std::vector<uint64_t> sheaf_offsets;  // by class
  };
  // Adds this allocator's parts to `layout`; Create() with the same options then uses them.
  // Errors: kInvalidArgument for a defrag_ratio or a page size that cannot be.
  static Result<Plan> AddTo(RegionLayout& layout, const ObjectAllocatorOptions& options,
                            const PageAllocator::Plan& pages_plan,
                            const PageAllocatorOptions& pages_options);
  // All borrowed objects outlive this one. Errors: kResourceExhausted.
  static Result<std::unique_ptr<ObjectAllocator>> Create(Region& region, const Plan& plan,
                                                         const ObjectAllocatorOptions& options,
                                                         PageAllocator& pages,
                                                         const numa::Topology& topology);
  ~ObjectAllocator();

  ObjectAllocator(const ObjectAllocator&) = delete;
  ObjectAllocator& operator=(const ObjectAllocator&) = delete;

  // The handle of worker `index`, whose pages are `pages`.
  ObjectWorker MakeWorker(int index, PageWorker& pages) const;

  // An object of at least `size_bytes` > 0, aligned as its class (see ClassBytes) permits, at least
  // to 32 bytes; its content is undefined. kNoObject when there is none: no memory, over the limit,
  // or is_broken(). `node`: kNoNode, or the preferred one.
  ObjectRef Allocate(ObjectWorker& worker, uint32_t size_bytes, numa::NodeId node = numa::kNoNode) {
    if (node == numa::kNoNode && !is_strict_ && IsSlabSize(size_bytes)) [[likely]] {
      WorkerClass& mine = worker.state->classes[SlabClassIndex(size_bytes)];
      Sheaf& sheaf = SheafAt(mine.main);
      const uint32_t size = sheaf.size;
      if (size != 0 && worker.stock->TryTake(mine.charge_bytes)) [[likely]] {
        sheaf.size = size - 1;
        worker.counters->Add(ObjectCounter::kFastAllocations);
        return sheaf.objects()[size - 1];
      }
    }
    return AllocateSlowly(worker, size_bytes, node);
  }

  // `size_bytes` as it was allocated. kNoObject is not allowed.
  void Free(ObjectWorker& worker, ObjectRef object, uint32_t size_bytes) {
    if (IsSlabSize(size_bytes)) [[likely]] {
      WorkerClass& mine = worker.state->classes[SlabClassIndex(size_bytes)];
      Sheaf& sheaf = SheafAt(mine.main);
      const uint32_t size = sheaf.size;
      if (size != sheaf.capacity && IsLocal(worker, object) &&
          worker.stock->TryGive(mine.charge_bytes)) [[likely]] {
        sheaf.size = size + 1;
        worker.counters->Add(ObjectCounter::kFastFrees);
        sheaf.objects()[size] = object;
        return;
      }
    }
    FreeSlowly(worker, object, size_bytes);
  }

  template <typename T = std::byte>
  T* Address(ObjectRef object) const {
    return reinterpret_cast<T*>(base_ + object);
  }
  // The node of the object's first page.
  numa::NodeId NodeOf(ObjectRef object) const { return pages_->NodeOf(pages_->PageAt(object)); }

  // What an object of `size_bytes` takes: 64, 96, 128, 192, 256, 512, 1k, ... up to two pages, then
  // blocks of 2^n pages.
  static uint64_t ClassBytes(uint32_t size_bytes, uint64_t page_bytes);

  // Gives everything that the worker's sheaves or active slabs hold back to the slabs, as a CPU
  // that goes offline does.
  void Flush(ObjectWorker& worker);
  // Gives the full sheaves of the node's barns back to the slabs, as shrinking a cache does.
  // Precondition: HasMemory(node).
  void FlushBarns(ObjectWorker& worker, numa::NodeId node);

  // Whether a worker died inside one of the locks.
  bool is_broken() const { return lists_.is_broken(); }
  SlabForm form() const { return uses_sheaves_ ? SlabForm::kSheaves : SlabForm::kCpuSlab; }
  const SlabClass& slab_class(uint32_t index) const { return lists_.slab_class(index); }
  uint32_t num_classes() const { return lists_.num_classes(); }
  PageAllocator& pages() const { return *pages_; }
  bool HasMemory(numa::NodeId node) const { return lists_.HasMemory(node); }
  // Slabs with free objects of the class that serves `size_bytes`, on `node`.
  uint32_t NumPartialSlabs(uint32_t size_bytes, numa::NodeId node) const;

  // Errors: kInternal when an object is in two places, or a worker died inside a lock.
  Result<ObjectCensus> TakeCensus() const;
  // Sums over workers, in the order of ObjectCounter.
  std::vector<CounterValue> Counters() const;

  // For tests that hold a lock, or die in there.
  SlabLists& lists_for_test() { return lists_; }
  SharedMutex& barn_lock_for_test(uint32_t class_index, numa::NodeId node) {
    return BarnOf(class_index, node).mutex;
  }

 private:
  class EmptySlabs;  // the shrinker
  enum class NewSlabReason { kRefill, kLocal, kThisNode, kAnywhere };
  using Wait = SlabLists::Wait;

  ObjectAllocator(Region& region, const Plan& plan, const ObjectAllocatorOptions& options,
                  PageAllocator& pages, const numa::Topology& topology);

  // Pages are never smaller than 4 KiB, so that a constant size is mostly known to be small.
  bool IsSlabSize(uint32_t size_bytes) const {
    return size_bytes <= MaxSlabBytes(4096) || size_bytes <= max_slab_bytes_;
  }
  bool IsLocal(const ObjectWorker& worker, ObjectRef object) const {
    return pages_->NodeIndexOf(pages_->PageAt(object)) == worker.local_index;
  }
  Sheaf& SheafAt(uint64_t offset) const { return *reinterpret_cast<Sheaf*>(base_ + offset); }
  Barn& BarnOf(uint32_t class_index, numa::NodeId node) const;

  ObjectRef AllocateSlowly(ObjectWorker& worker, uint32_t size_bytes, numa::NodeId node);
  void FreeSlowly(ObjectWorker& worker, ObjectRef object, uint32_t size_bytes);
  ObjectRef AllocateLarge(ObjectWorker& worker, uint32_t size_bytes, numa::NodeId node);
  void FreeLarge(ObjectWorker& worker, ObjectRef object);
  // The node to ask for under strict-policy.
  numa::NodeId AskStrictPolicy(ObjectWorker& worker);

  // slab_sheaf.cc: sheaves and barns.
  ObjectRef AllocateFromSheaf(ObjectWorker& worker, uint32_t class_index, numa::NodeId node);
  bool ReplaceEmptyMain(ObjectWorker& worker, uint32_t class_index);
  void RefillSheaf(ObjectWorker& worker, uint32_t class_index, Sheaf& sheaf);
  void ReplaceFullMain(ObjectWorker& worker, uint32_t class_index);
  void FlushSheaf(ObjectWorker& worker, uint32_t class_index, Sheaf& sheaf);
  bool LockBarn(Barn& barn) TRY_ACQUIRE(true, barn.mutex);

  // slab_active.cc: the cpu-slab form.
  // Precondition: the worker has taken over a free object.
  ObjectRef PopActive(WorkerClass& mine) {
    const ObjectRef object = mine.active_begin + uint64_t{mine.free.first} * kUnitBytes;
    mine.free = {lists_.NextFree(object), static_cast<uint16_t>(mine.free.count - 1)};
    return object;
  }
  // Precondition: it is of the active slab.
  void PushActive(ObjectWorker& worker, WorkerClass& mine, ObjectRef object) {
    lists_.NextFree(object) = mine.free.first;
    mine.free = {static_cast<uint16_t>((object - mine.active_begin) / kUnitBytes),
                 static_cast<uint16_t>(mine.free.count + 1)};
    worker.counters->Add(ObjectCounter::kFastFrees);
  }
  ObjectRef AllocateFromActive(ObjectWorker& worker, uint32_t class_index, numa::NodeId node);
  void DeactivateSlab(ObjectWorker& worker, uint32_t class_index);
  void SetActive(WorkerClass& mine, PageId first, FreeChain free);
  bool FindActive(ObjectWorker& worker, uint32_t class_index, numa::NodeId node);

  // slab_source.cc: partial lists, the gate, new slabs.
  // One object past the worker's own lists.
  ObjectRef AllocateOne(ObjectWorker& worker, uint32_t class_index, numa::NodeId node);
  uint32_t TakePartial(ObjectWorker& worker, uint32_t class_index, numa::NodeId node,
                       std::span<ObjectRef> out, Wait wait);
  uint32_t TakeFromAnyNode(ObjectWorker& worker, uint32_t class_index, std::span<ObjectRef> out,
                           Wait wait);
  // Whether this miss may look at other nodes; throws the worker's dice.
  bool IsGateOpen(ObjectWorker& worker);
  // The nodes that may be taken from through an open gate, nearest to the policy's node first.
  // Returns how many. Asks the policy.
  size_t ReusableNodes(ObjectWorker& worker, uint32_t class_index,
                       std::array<numa::NodeId, numa::kMaxNodes>& nodes);
  PageId NewSlabPages(ObjectWorker& worker, uint32_t class_index, numa::NodeId node,
                      NewSlabReason reason, uint32_t& order);
  uint32_t TakeFromNewSlab(ObjectWorker& worker, uint32_t class_index, numa::NodeId node,
                           NewSlabReason reason, std::span<ObjectRef> out);
  void GiveToSlabs(ObjectWorker& worker, uint32_t class_index, std::span<const ObjectRef> objects);
  // Gives them back to the page allocator; returns how many pages that were.
  uint64_t FreeSurplus(PageWorker& pages, SurplusSlabs& surplus, uint64_t& num_slabs);
  void FreeSurplus(ObjectWorker& worker, SurplusSlabs& surplus);
  // Of the shrinker: pages given back.
  uint64_t Shrink(PageWorker& pages, uint64_t wanted);
  // Gives the barn's objects to their slabs; returns those that nobody needs.
  SurplusSlabs EmptyBarn(uint32_t class_index, Barn& barn);

  // Constant after creation.
  std::byte* const base_;
  PageAllocator* const pages_;
  SlabLists lists_;
  uint64_t max_slab_bytes_;
  bool uses_sheaves_;
  bool is_strict_;
  uint32_t gate_ratio_;
  int num_workers_;
  ObjectWorkerState* workers_;
  CounterBlock<ObjectCounter>* counters_;
  Barn* barns_;  // class-major
  ObjectReclaim* reclaim_;
  std::unique_ptr<EmptySlabs> shrinker_;
};

}  // namespace pipeyard::memory
