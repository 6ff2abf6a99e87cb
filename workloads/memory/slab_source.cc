// Where objects come from when the worker's own lists have none: partial lists, other nodes'
// through the remote-reuse gate, new slabs. And where empty slabs go.
#include "workloads/memory/object_allocator.h"

namespace pipeyard::memory {
namespace {

// The gate's dice: xorshift64* (Vigna 2016). It stands in for the kernel's cycle counter, so that a
// run can be repeated.
uint64_t Throw(uint64_t& state) {
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return state * 0x2545'f491'4f6c'dd1dULL;
}

}  // namespace

uint32_t ObjectAllocator::TakePartial(ObjectWorker& worker, uint32_t class_index, numa::NodeId node,
                                      std::span<ObjectRef> out, Wait wait) {
  bool is_busy = false;
  const uint32_t taken = lists_.Take(class_index, node, out, wait, &is_busy);
  if (is_busy) worker.counters->Add(ObjectCounter::kRemoteReuseBusy);
  if (taken != 0) {
    worker.counters->Add(node == worker.local ? ObjectCounter::kPartialObjectsLocal
                                              : ObjectCounter::kPartialObjectsRemote,
                         taken);
  }
  return taken;
}

bool ObjectAllocator::IsGateOpen(ObjectWorker& worker) {
  if (pages_->IsFastpathOn(AllocationPath::kSlab)) {
    // The only node was just asked.
    worker.counters->Add(ObjectCounter::kFastpathSlab);
    return false;
  }
  // `dice > ratio` as the kernel compares it: a ratio of 1000 lets 1001 of 1024 pass.
  if (gate_ratio_ == 0 || Throw(worker.state->random) >> 54 > gate_ratio_) {
    worker.counters->Add(ObjectCounter::kRemoteReuseRefused);
    return false;
  }
  worker.counters->Add(ObjectCounter::kRemoteReuseTried);
  return true;
}

size_t ObjectAllocator::ReusableNodes(ObjectWorker& worker, uint32_t class_index,
                                      std::array<numa::NodeId, numa::kMaxNodes>& nodes) {
  // Asked even where nothing will be found: interleaving moves on by every look.
  const PolicyContext& context = pages_->ContextOf(*worker.pages);
  const numa::NodeId start = SlabNode(worker.pages->policy, context);
  worker.counters->Add(ObjectCounter::kGateQueries);
  const uint32_t min_partial = lists_.slab_class(class_index).min_partial;
  size_t count = 0;
  for (const numa::NodeId node : pages_->FallbackOrder(start)) {
    if (context.allowed.Contains(node) && lists_.NumPartial(class_index, node) > min_partial)
      nodes[count++] = node;
  }
  return count;
}

uint32_t ObjectAllocator::TakeFromAnyNode(ObjectWorker& worker, uint32_t class_index,
                                          std::span<ObjectRef> out, Wait wait) {
  if (!IsGateOpen(worker)) return 0;
  std::array<numa::NodeId, numa::kMaxNodes> nodes;
  const size_t num_nodes = ReusableNodes(worker, class_index, nodes);
  uint32_t taken = 0;
  bool is_remote = false;
  for (size_t i = 0; i < num_nodes && taken < out.size(); ++i) {
    const uint32_t more = TakePartial(worker, class_index, nodes[i], out.subspan(taken), wait);
    is_remote |= more != 0 && nodes[i] != worker.local;
    taken += more;
  }
  if (is_remote) worker.counters->Add(ObjectCounter::kRemoteReuseTaken);
  return taken;
}

ObjectRef ObjectAllocator::AllocateOne(ObjectWorker& worker, uint32_t class_index,
                                       numa::NodeId node) {
  ObjectRef object = kNoObject;
  const std::span<ObjectRef> out(&object, 1);
  if (node == numa::kNoNode) {
    if (TakePartial(worker, class_index, worker.local, out, Wait::kYes) != 0 ||
        TakeFromAnyNode(worker, class_index, out, Wait::kYes) != 0) {
      return object;
    }
    TakeFromNewSlab(worker, class_index, worker.local, NewSlabReason::kLocal, out);
    return object;
  }
  if (TakePartial(worker, class_index, node, out, Wait::kYes) != 0 ||
      TakeFromNewSlab(worker, class_index, node, NewSlabReason::kThisNode, out) != 0) {
    return object;
  }
  if (TakePartial(worker, class_index, node, out, Wait::kYes) != 0 ||
      TakeFromAnyNode(worker, class_index, out, Wait::kYes) != 0) {
    return object;
  }
  TakeFromNewSlab(worker, class_index, node, NewSlabReason::kAnywhere, out);
  return object;
}

PageId ObjectAllocator::NewSlabPages(ObjectWorker& worker, uint32_t class_index, numa::NodeId node,
                                     NewSlabReason reason, uint32_t& order) {
  const SlabClass& slab_class = lists_.slab_class(class_index);
  // Objects are charged one by one, their slabs are not.
  AllocationFlags flags;
  flags.is_accounted = false;
  flags.this_node_only = reason == NewSlabReason::kThisNode;
  // The usual order is a wish: reclaim only helps the smallest that will do.
  flags.no_wait = reason == NewSlabReason::kThisNode || slab_class.order > slab_class.min_order;
  order = slab_class.order;
  PageId first = pages_->AllocateBlock(*worker.pages, order, node, flags);
  if (first == kNoPage && slab_class.order > slab_class.min_order) {
    flags.no_wait = reason == NewSlabReason::kThisNode;
    order = slab_class.min_order;
    first = pages_->AllocateBlock(*worker.pages, order, node, flags);
    if (first != kNoPage) worker.counters->Add(ObjectCounter::kSmallerSlabs);
  }
  if (first == kNoPage) {
    worker.counters->Add(ObjectCounter::kNewSlabFailures);
    return kNoPage;
  }
  switch (reason) {
    case NewSlabReason::kRefill:
      worker.counters->Add(ObjectCounter::kNewSlabsRefill);
      break;
    case NewSlabReason::kLocal:
      worker.counters->Add(ObjectCounter::kNewSlabsLocal);
      break;
    case NewSlabReason::kThisNode:
      worker.counters->Add(ObjectCounter::kNewSlabsThisNode);
      break;
    case NewSlabReason::kAnywhere:
      worker.counters->Add(ObjectCounter::kNewSlabsAnywhere);
      break;
  }
  return first;
}

uint32_t ObjectAllocator::TakeFromNewSlab(ObjectWorker& worker, uint32_t class_index,
                                          numa::NodeId node, NewSlabReason reason,
                                          std::span<ObjectRef> out) {
  uint32_t order = 0;
  const PageId first = NewSlabPages(worker, class_index, node, reason, order);
  if (first == kNoPage) return 0;
  bool is_added = false;
  const uint32_t taken = lists_.Add(class_index, first, order, out, is_added);
  if (!is_added) pages_->FreeBlock(*worker.pages, first, order);
  return taken;
}

void ObjectAllocator::GiveToSlabs(ObjectWorker& worker, uint32_t class_index,
                                  std::span<const ObjectRef> objects) {
  SurplusSlabs surplus;
  lists_.Give(class_index, objects, surplus);
  FreeSurplus(worker, surplus);
}

void ObjectAllocator::FlushBarns(ObjectWorker& worker, numa::NodeId node) {
  for (uint32_t i = 0; i < lists_.num_classes(); ++i) {
    SurplusSlabs surplus = EmptyBarn(i, BarnOf(i, node));
    FreeSurplus(worker, surplus);
  }
}

void ObjectAllocator::FreeSurplus(ObjectWorker& worker, SurplusSlabs& surplus) {
  uint64_t num_slabs = 0;
  FreeSurplus(*worker.pages, surplus, num_slabs);
  if (num_slabs != 0) worker.counters->Add(ObjectCounter::kSlabsGivenBack, num_slabs);
}

uint64_t ObjectAllocator::FreeSurplus(PageWorker& pages, SurplusSlabs& surplus,
                                      uint64_t& num_slabs) {
  uint64_t num_pages = 0;
  uint32_t order = 0;
  for (PageId first; (first = lists_.NextSurplus(surplus, order)) != kNoPage;) {
    pages_->FreeBlock(pages, first, order);
    num_slabs += 1;
    num_pages += uint64_t{1} << order;
  }
  return num_pages;
}

uint64_t ObjectAllocator::Shrink(PageWorker& pages, uint64_t wanted) {
  uint64_t num_pages = 0;
  auto take_empty = [&](uint32_t class_index, numa::NodeId node, SurplusSlabs surplus) {
    lists_.TakeEmpty(class_index, node, surplus);
    uint64_t num_slabs = 0;
    num_pages += FreeSurplus(pages, surplus, num_slabs);
    // Whoever reclaims is known here by its pages only.
    if (kCountersEnabled && num_slabs != 0)
      reclaim_->num_slabs.fetch_add(num_slabs, std::memory_order_relaxed);
  };
  for (uint32_t i = 0; i < lists_.num_classes(); ++i) {
    for (const numa::NodeId node : lists_.nodes()) take_empty(i, node, SurplusSlabs{});
  }
  // What barns hold is worth more: it saves the next worker a refill.
  for (uint32_t i = 0; i < lists_.num_classes() && num_pages < wanted; ++i) {
    for (const numa::NodeId node : lists_.nodes()) {
      take_empty(i, node, EmptyBarn(i, BarnOf(i, node)));
    }
  }
  return num_pages;
}

SurplusSlabs ObjectAllocator::EmptyBarn(uint32_t class_index, Barn& barn) {
  SurplusSlabs surplus;
  if (!LockBarn(barn)) return surplus;
  while (barn.num_full != 0) {
    Sheaf& sheaf = SheafAt(barn.sheaves[--barn.num_full]);
    lists_.Give(class_index, std::span<const ObjectRef>(sheaf.objects(), sheaf.size), surplus);
    sheaf.size = 0;
  }
  barn.mutex.Unlock();
  return surplus;
}

}  // namespace pipeyard::memory
