#include "workloads/memory/slab_lists.h"

#include <utility>

namespace pipeyard::memory {

SlabLists::Plan SlabLists::AddTo(RegionLayout& layout, const PageAllocator::Plan& pages,
                                 uint64_t page_bytes) {
  Plan plan;
  plan.lists_offset = layout.Add(
      sizeof(PartialList) * NumSlabClasses(page_bytes) * pages.node_ids.size(), kCacheLine);
  plan.pages_offset = layout.Add(sizeof(SlabPage) * pages.num_pages, kCacheLine);
  plan.broken_offset = layout.Add(sizeof(std::atomic<uint32_t>), kCacheLine);
  return plan;
}

SlabLists::SlabLists(Region& region, const Plan& plan, PageAllocator& pages, int num_cpus)
    : region_(&region),
      pages_(&pages),
      lists_(region.At<PartialList>(plan.lists_offset)),
      slabs_(region.At<SlabPage>(plan.pages_offset)),
      broken_(region.At<std::atomic<uint32_t>>(plan.broken_offset)) {
  const uint32_t num_classes = NumSlabClasses(pages.page_bytes());
  for (uint32_t i = 0; i < num_classes; ++i) {
    classes_.push_back(MakeSlabClass(i, pages.page_bytes(), num_cpus));
  }
  for (const numa::PageRange& arena : pages.arenas()) {
    node_index_[arena.node] = static_cast<uint32_t>(nodes_.size());
    nodes_.push_back(arena.node);
    memory_nodes_.Add(arena.node);
  }
  for (size_t i = 0; i < num_classes * nodes_.size(); ++i) {
    PartialList& list = lists_[i];
    static_cast<void>(list.mutex.Lock());
    list.head = kNoPage;
    list.tail = kNoPage;
    list.mutex.Unlock();
  }
}

bool SlabLists::Lock(PartialList& list) {
  if (!list.mutex.Lock().is_owner_dead) [[likely]]
    return true;
  list.mutex.Unlock();
  MarkBroken();
  return false;
}

bool SlabLists::TryLock(PartialList& list) {
  LockOutcome outcome;
  if (!list.mutex.TryLock(outcome)) return false;
  if (!outcome.is_owner_dead) [[likely]]
    return true;
  list.mutex.Unlock();
  MarkBroken();
  return false;
}

bool SlabLists::Acquire(PartialList& list, Wait wait, bool* is_busy) {
  if (wait == Wait::kYes) return Lock(list);
  if (TryLock(list)) return true;
  if (is_busy != nullptr) *is_busy = true;
  return false;
}

uint32_t SlabLists::Take(uint32_t class_index, numa::NodeId node, std::span<ObjectRef> out,
                         Wait wait, bool* is_busy) {
  PartialList& list = List(class_index, node);
  // Most refills of a young engine find nothing; they should not pay for a lock.
  if (list.num_slabs.load(std::memory_order_relaxed) == 0) return 0;
  if (!Acquire(list, wait, is_busy)) return 0;
  uint32_t taken = 0;
  while (taken < out.size() && list.head != kNoPage) {
    const PageId first = list.head;
    taken += TakeFrom(first, out.subspan(taken));
    if (slabs_[first].free.count == 0) {
      Remove(list, first);
      slabs_[first].state = SlabState::kFull;
    }
  }
  list.mutex.Unlock();
  return taken;
}

void SlabLists::Give(uint32_t class_index, std::span<const ObjectRef> objects,
                     SurplusSlabs& surplus) {
  // A sheaf's objects are mostly of one node: the lock is kept from one to the next.
  for (size_t i = 0; i < objects.size();) {
    const numa::NodeId node = pages_->NodeOf(pages_->PageAt(objects[i]));
    PartialList& list = List(class_index, node);
    size_t end = i + 1;
    while (end < objects.size() && pages_->NodeOf(pages_->PageAt(objects[end])) == node) ++end;
    if (Lock(list)) {
      for (size_t j = i; j < end; ++j) {
        GiveOne(list, slabs_[pages_->PageAt(objects[j])].first, objects[j], surplus);
      }
      list.mutex.Unlock();
    }
    i = end;
  }
}

void SlabLists::GiveOne(PartialList& list, PageId first, ObjectRef object, SurplusSlabs& surplus) {
  SlabPage& slab = slabs_[first];
  const SlabClass& slab_class = classes_[slab.class_index];
  NextFree(object) = slab.free.first;
  slab.free = {UnitOf(first, object), static_cast<uint16_t>(slab.free.count + 1)};
  if (slab.state == SlabState::kActive) return;
  // The kernel's order: a full slab is judged before it is on the list and counts not, a partial
  // one counts itself.
  const bool is_surplus = slab.free.count == slab.num_objects &&
                          list.num_slabs.load(std::memory_order_relaxed) >= slab_class.min_partial;
  if (slab.state == SlabState::kPartial) {
    if (!is_surplus) return;
    Remove(list, first);
    AddSurplus(first, surplus);
  } else if (is_surplus) {
    AddSurplus(first, surplus);
  } else {
    slab.state = SlabState::kPartial;
    InsertTail(list, first);
  }
}

uint32_t SlabLists::TakeFrom(PageId first, std::span<ObjectRef> out) {
  FreeChain& free = slabs_[first].free;
  uint32_t taken = 0;
  uint16_t unit = free.first;
  while (taken < out.size() && unit != kNoUnit) {
    const ObjectRef object = ObjectAt(first, unit);
    out[taken++] = object;
    unit = NextFree(object);
  }
  free = {unit, static_cast<uint16_t>(free.count - taken)};
  return taken;
}

void SlabLists::Form(uint32_t class_index, PageId first, uint32_t order) {
  const uint32_t object_bytes = classes_[class_index].bytes;
  const auto num_objects = static_cast<uint16_t>((pages_->page_bytes() << order) / object_bytes);
  const uint32_t units = object_bytes / kUnitBytes;
  for (PageId i = 0; i < PageId{1} << order; ++i) slabs_[first + i].first = first;
  for (uint16_t i = 0; i < num_objects; ++i) {
    NextFree(ObjectAt(first, static_cast<uint16_t>(i * units))) =
        i + 1 < num_objects ? static_cast<uint16_t>((i + 1) * units) : kNoUnit;
  }
  SlabPage& slab = slabs_[first];
  slab.next = kNoPage;
  slab.previous = kNoPage;
  slab.free = {0, num_objects};
  slab.num_objects = num_objects;
  slab.class_index = static_cast<uint8_t>(class_index);
  slab.order = static_cast<uint8_t>(order);
}

uint32_t SlabLists::Add(uint32_t class_index, PageId first, uint32_t order,
                        std::span<ObjectRef> out, bool& is_added) {
  Form(class_index, first, order);
  // Nobody else knows the slab yet.
  const uint32_t taken = TakeFrom(first, out);
  is_added = true;
  if (slabs_[first].free.count == 0) {
    slabs_[first].state = SlabState::kFull;
    return taken;
  }
  PartialList& list = List(class_index, pages_->NodeOf(first));
  if (!Lock(list)) {
    is_added = false;
    return 0;
  }
  slabs_[first].state = SlabState::kPartial;
  InsertHead(list, first);
  list.mutex.Unlock();
  return taken;
}

void SlabLists::TakeEmpty(uint32_t class_index, numa::NodeId node, SurplusSlabs& surplus) {
  PartialList& list = List(class_index, node);
  if (list.num_slabs.load(std::memory_order_relaxed) == 0 || !Lock(list)) return;
  for (PageId first = list.head; first != kNoPage;) {
    const PageId next = slabs_[first].next;
    if (slabs_[first].free.count == slabs_[first].num_objects) {
      Remove(list, first);
      AddSurplus(first, surplus);
    }
    first = next;
  }
  list.mutex.Unlock();
}

void SlabLists::AddSurplus(PageId first, SurplusSlabs& surplus) {
  slabs_[first].state = SlabState::kNone;
  slabs_[first].next = surplus.first;
  surplus.first = first;
}

PageId SlabLists::NextSurplus(SurplusSlabs& surplus, uint32_t& order) {
  const PageId first = surplus.first;
  if (first == kNoPage) return kNoPage;
  surplus.first = slabs_[first].next;
  order = slabs_[first].order;
  return first;
}

PageId SlabLists::TakeActive(uint32_t class_index, numa::NodeId node, Wait wait, FreeChain& free,
                             bool* is_busy) {
  PartialList& list = List(class_index, node);
  if (list.num_slabs.load(std::memory_order_relaxed) == 0) return kNoPage;
  if (!Acquire(list, wait, is_busy)) return kNoPage;
  const PageId first = list.head;
  if (first != kNoPage) {
    Remove(list, first);
    slabs_[first].state = SlabState::kActive;
    free = std::exchange(slabs_[first].free, kNoFreeObjects);
  }
  list.mutex.Unlock();
  return first;
}

FreeChain SlabLists::AddActive(uint32_t class_index, PageId first, uint32_t order) {
  Form(class_index, first, order);
  slabs_[first].state = SlabState::kActive;
  return std::exchange(slabs_[first].free, kNoFreeObjects);
}

FreeChain SlabLists::TakeOver(PageId active) {
  SlabPage& slab = slabs_[active];
  PartialList& list = ListOf(slab, active);
  if (!Lock(list)) return kNoFreeObjects;
  const FreeChain free = std::exchange(slab.free, kNoFreeObjects);
  list.mutex.Unlock();
  return free;
}

void SlabLists::Deactivate(PageId active, FreeChain free, SurplusSlabs& surplus) {
  SlabPage& slab = slabs_[active];
  PartialList& list = ListOf(slab, active);
  if (!Lock(list)) return;
  slab.free.count += free.count;
  for (uint16_t unit = free.first; unit != kNoUnit;) {
    uint16_t& link = NextFree(ObjectAt(active, unit));
    const uint16_t next = std::exchange(link, slab.free.first);
    slab.free.first = unit;
    unit = next;
  }
  if (slab.free.count == 0) {
    slab.state = SlabState::kFull;
  } else if (slab.free.count == slab.num_objects &&
             list.num_slabs.load(std::memory_order_relaxed) >=
                 classes_[slab.class_index].min_partial) {
    AddSurplus(active, surplus);
  } else {
    slab.state = SlabState::kPartial;
    InsertTail(list, active);
  }
  list.mutex.Unlock();
}

void SlabLists::MarkBlock(PageId first, uint32_t order) {
  for (PageId i = 0; i < PageId{1} << order; ++i) slabs_[first + i].first = first;
  slabs_[first].order = static_cast<uint8_t>(order);
  slabs_[first].state = SlabState::kBlock;
}

void SlabLists::UnmarkBlock(PageId first) { slabs_[first].state = SlabState::kNone; }

Status SlabLists::CheckLists() const {
  uint64_t num_listed = 0;
  for (size_t i = 0; i < classes_.size() * nodes_.size(); ++i) {
    PartialList& list = lists_[i];
    const bool is_owner_dead = list.mutex.Lock().is_owner_dead;
    const uint32_t num_slabs = list.num_slabs.load(std::memory_order_relaxed);
    uint32_t count = 0;
    bool is_sound = true;
    for (PageId first = list.head; is_sound && first != kNoPage && count <= num_slabs; ++count) {
      const SlabPage& slab = slabs_[first];
      is_sound = slab.state == SlabState::kPartial && slab.free.count != 0 &&
                 &ListOf(slab, first) == &list;
      first = slab.next;
    }
    list.mutex.Unlock();
    if (is_owner_dead)
      return Internal("object census: a worker died holding the lock of a partial list");
    if (!is_sound || count != num_slabs)
      return Internal("object census: a partial list holds what it should not");
    num_listed += num_slabs;
  }
  for (PageId page = 0; page < pages_->num_pages(); ++page) {
    if (slabs_[page].state == SlabState::kPartial) num_listed -= 1;
  }
  if (num_listed != 0) return Internal("object census: a partial slab is on no list");
  return Status::Ok();
}

void SlabLists::InsertHead(PartialList& list, PageId first) {
  SlabPage& slab = slabs_[first];
  slab.previous = kNoPage;
  slab.next = list.head;
  (list.head != kNoPage ? slabs_[list.head].previous : list.tail) = first;
  list.head = first;
  list.num_slabs.store(list.num_slabs.load(std::memory_order_relaxed) + 1,
                       std::memory_order_relaxed);
}

void SlabLists::InsertTail(PartialList& list, PageId first) {
  SlabPage& slab = slabs_[first];
  slab.next = kNoPage;
  slab.previous = list.tail;
  (list.tail != kNoPage ? slabs_[list.tail].next : list.head) = first;
  list.tail = first;
  list.num_slabs.store(list.num_slabs.load(std::memory_order_relaxed) + 1,
                       std::memory_order_relaxed);
}

void SlabLists::Remove(PartialList& list, PageId first) {
  SlabPage& slab = slabs_[first];
  (slab.previous != kNoPage ? slabs_[slab.previous].next : list.head) = slab.next;
  (slab.next != kNoPage ? slabs_[slab.next].previous : list.tail) = slab.previous;
  list.num_slabs.store(list.num_slabs.load(std::memory_order_relaxed) - 1,
                       std::memory_order_relaxed);
}

}  // namespace pipeyard::memory
