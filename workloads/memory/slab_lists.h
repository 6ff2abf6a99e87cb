// SlabLists: slabs, and per class and node the list of those with free objects (the kernel's
// partial lists).
//
//   slab = block of pages: object 0 | object 1 | ... ; a free object begins with the place of the
//          next free one, in units of 32 bytes: every class is a multiple of them
//   node's list of a class: head ⇄ slab ⇄ slab ⇄ tail; full slabs are on no list
//
// It takes no page and gives none back: who adds a slab brings the block, and slabs that became
// superfluous are handed to the caller. A slab is described outside its pages, one entry a page,
// as the kernel's struct page does it.
//
// Thread safety: thread-safe, from several processes; one lock per class and node guards the list
// and the slabs of that class and node. Ownership: all state lives in the region; this handle, made
// before any fork, is valid in every process. A worker that died inside a lock leaves a list that
// nobody may use: is_broken() says so, and every call on that list does nothing from then on.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_annotations.h"
#include "workloads/memory/page_allocator.h"
#include "workloads/memory/region.h"
#include "workloads/memory/shared_mutex.h"
#include "workloads/memory/slab_classes.h"
#include "workloads/numa/node_mask.h"

namespace pipeyard::memory {

// An object's offset from the region's start. The region's header is at 0, so 0 is none.
using ObjectRef = uint64_t;
inline constexpr ObjectRef kNoObject = 0;

enum class SlabState : uint8_t {
  kNone,     // no slab and no block of this room
  kPartial,  // on its node's list
  kFull,     // on no list: all objects are out
  kActive,   // on no list: a worker allocates from it (cpu-slab)
  kBlock,    // an object above MaxSlabBytes()
};

// Free objects of one slab, linked through themselves.
struct FreeChain {
  uint16_t first;  // in units from the slab's start; kNoUnit: none
  uint16_t count;
};
inline constexpr uint16_t kNoUnit = UINT16_MAX;
inline constexpr FreeChain kNoFreeObjects = {kNoUnit, 0};
inline constexpr uint32_t kUnitBytes = 32;

// SHARED. What a page is to this room; all but `first` is said at the first page of a slab or
// block. Guarded by the lock of the slab's list.
struct SlabPage {
  PageId next;
  PageId previous;
  PageId first;    // page of the slab
  FreeChain free;  // an active slab's are those that its worker has not taken over
  uint16_t num_objects;
  uint8_t class_index;
  uint8_t order;
  SlabState state;
  uint8_t reserved[11];
};
PIPEYARD_CHECK_SHARED(SlabPage);
static_assert(sizeof(SlabPage) == 32);

// SHARED. The slabs of one class on one node that have free objects.
struct alignas(kCacheLine) PartialList {
  SharedMutex mutex;
  PageId head GUARDED_BY(mutex);
  PageId tail GUARDED_BY(mutex);
  // Written under the lock, read without it by those who decide whether to come here.
  std::atomic<uint32_t> num_slabs;
};
PIPEYARD_CHECK_SHARED(PartialList);

// Slabs that left the lists, linked by SlabPage::next; the holder gives their blocks back.
struct SurplusSlabs {
  PageId first = kNoPage;
};

class SlabLists {
 public:
  struct Plan {
    uint64_t lists_offset = 0;
    uint64_t pages_offset = 0;
    uint64_t broken_offset = 0;
  };
  static Plan AddTo(RegionLayout& layout, const PageAllocator::Plan& pages, uint64_t page_bytes);
  // Borrows region and pages. `num_cpus`: see SlabOrder().
  SlabLists(Region& region, const Plan& plan, PageAllocator& pages, int num_cpus);

  SlabLists(const SlabLists&) = delete;
  SlabLists& operator=(const SlabLists&) = delete;

  const SlabClass& slab_class(uint32_t index) const { return classes_[index]; }
  uint32_t num_classes() const { return static_cast<uint32_t>(classes_.size()); }
  // Nodes that have an arena, those that are offline still included.
  const std::vector<numa::NodeId>& nodes() const { return nodes_; }
  bool HasMemory(numa::NodeId node) const {
    return node >= 0 && node < numa::kMaxNodes && memory_nodes_.Contains(node);
  }
  // Position in nodes(). Precondition: HasMemory(node).
  uint32_t NodeIndex(numa::NodeId node) const { return node_index_[node]; }

  // Whether a worker died inside one of the locks.
  bool is_broken() const { return broken_->load(std::memory_order_relaxed) != 0; }
  void MarkBroken() { broken_->store(1, std::memory_order_relaxed); }

  uint32_t NumPartial(uint32_t class_index, numa::NodeId node) const {
    return List(class_index, node).num_slabs.load(std::memory_order_relaxed);
  }
  const SlabPage& page(PageId id) const { return slabs_[id]; }

  // For tests that hold its lock. Precondition: HasMemory(node).
  PartialList& List(uint32_t class_index, numa::NodeId node) const {
    return lists_[class_index * nodes_.size() + node_index_[node]];
  }

  enum class Wait { kYes, kTryOnly };
  // Takes up to out.size() free objects of `node`'s list; returns how many. kTryOnly: none when
  // somebody holds the lock (`is_busy` says so).
  uint32_t Take(uint32_t class_index, numa::NodeId node, std::span<ObjectRef> out, Wait wait,
                bool* is_busy = nullptr);

  // Gives objects of one class back to their slabs. A slab that thereby becomes empty leaves the
  // list where its node keeps `min_partial` others.
  void Give(uint32_t class_index, std::span<const ObjectRef> objects, SurplusSlabs& surplus);

  // Makes a slab of the block at `first`, takes up to out.size() of its objects, and puts it on its
  // node's list if any are left. Returns how many were taken; where the list is broken, none, and
  // `is_added` is false: the block stays the caller's.
  uint32_t Add(uint32_t class_index, PageId first, uint32_t order, std::span<ObjectRef> out,
               bool& is_added);

  // Takes all empty slabs of `node`'s list off it.
  void TakeEmpty(uint32_t class_index, numa::NodeId node, SurplusSlabs& surplus);
  // Takes the next one out of `surplus`; kNoPage at the end. `order` is that of its block.
  PageId NextSurplus(SurplusSlabs& surplus, uint32_t& order);

  // An active slab (cpu-slab form) is on no list, and its worker takes its free objects over as a
  // whole.
  //
  // The first slab of the list becomes active; kNoPage when there is none. Empty-handed also when
  // kTryOnly found the lock taken.
  PageId TakeActive(uint32_t class_index, numa::NodeId node, Wait wait, FreeChain& free,
                    bool* is_busy = nullptr);
  // Makes an active slab of the block at `first`, on no list yet.
  FreeChain AddActive(uint32_t class_index, PageId first, uint32_t order);
  // Takes over what others have freed into `active` meanwhile.
  FreeChain TakeOver(PageId active);
  // `active` is active no longer: it gets `free` back and goes on the list, is superfluous,
  // or is full.
  void Deactivate(PageId active, FreeChain free, SurplusSlabs& surplus);

  // Errors: kInternal when a list does not hold exactly the slabs that say so, or a worker died
  // inside. While nobody is inside.
  Status CheckLists() const;

  // A block that is one object above MaxSlabBytes().
  void MarkBlock(PageId first, uint32_t order);
  void UnmarkBlock(PageId first);

  // The object at that place of the slab at `first`, and the other way round.
  ObjectRef ObjectAt(PageId first, uint16_t unit) const {
    return pages_->OffsetOf(first) + uint64_t{unit} * kUnitBytes;
  }
  uint16_t UnitOf(PageId first, ObjectRef object) const {
    return static_cast<uint16_t>((object - pages_->OffsetOf(first)) / kUnitBytes);
  }
  // The link of a free object.
  uint16_t& NextFree(ObjectRef object) const { return *region_->At<uint16_t>(object); }

 private:
  PartialList& ListOf(const SlabPage& slab, PageId first) const {
    return List(slab.class_index, pages_->NodeOf(first));
  }
  // False, without the lock, when a worker died holding it.
  bool Lock(PartialList& list) TRY_ACQUIRE(true, list.mutex);
  bool TryLock(PartialList& list) TRY_ACQUIRE(true, list.mutex);
  bool Acquire(PartialList& list, Wait wait, bool* is_busy) TRY_ACQUIRE(true, list.mutex);

  void InsertHead(PartialList& list, PageId first) REQUIRES(list.mutex);
  void InsertTail(PartialList& list, PageId first) REQUIRES(list.mutex);
  void Remove(PartialList& list, PageId first) REQUIRES(list.mutex);
  // Takes up to out.size() of a slab's free objects.
  uint32_t TakeFrom(PageId first, std::span<ObjectRef> out);
  void GiveOne(PartialList& list, PageId first, ObjectRef object, SurplusSlabs& surplus)
      REQUIRES(list.mutex);
  void Form(uint32_t class_index, PageId first, uint32_t order);
  void AddSurplus(PageId first, SurplusSlabs& surplus);

  // Constant after creation.
  Region* const region_;
  PageAllocator* const pages_;
  PartialList* const lists_;  // class-major
  SlabPage* const slabs_;     // by page
  std::atomic<uint32_t>* const broken_;
  std::vector<SlabClass> classes_;
  std::vector<numa::NodeId> nodes_;
  numa::NodeMask memory_nodes_;
  uint32_t node_index_[numa::kMaxNodes] = {};
};

}  // namespace pipeyard::memory
