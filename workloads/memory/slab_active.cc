// The cpu-slab form (kernel up to 6.x): each worker allocates from a slab of its own.
#include "workloads/memory/object_allocator.h"

namespace pipeyard::memory {

ObjectRef ObjectAllocator::AllocateFromActive(ObjectWorker& worker, uint32_t class_index,
                                              numa::NodeId node) {
  WorkerClass& mine = worker.state->classes[class_index];
  if (mine.active != kNoPage && node != numa::kNoNode && pages_->NodeOf(mine.active) != node) {
    worker.counters->Add(ObjectCounter::kNodeMismatches);
    worker.counters->Add(ObjectCounter::kDeactivations);
    DeactivateSlab(worker, class_index);
  }
  if (mine.free.count != 0) {
    worker.counters->Add(ObjectCounter::kFastAllocations);
    return PopActive(mine);
  }
  if (mine.active != kNoPage) {
    mine.free = lists_.TakeOver(mine.active);
    if (mine.free.count != 0) {
      worker.counters->Add(ObjectCounter::kActiveTakeOvers);
    } else {
      // All of its objects are out: it belongs to nobody until one is freed.
      DeactivateSlab(worker, class_index);
    }
  }
  if (mine.free.count == 0 && !FindActive(worker, class_index, node)) return kNoObject;
  worker.counters->Add(ObjectCounter::kSlowAllocations);
  return PopActive(mine);
}

void ObjectAllocator::SetActive(WorkerClass& mine, PageId first, FreeChain free) {
  mine.active = first;
  mine.free = free;
  const SlabPage& slab = lists_.page(first);
  mine.active_begin = pages_->OffsetOf(first);
  mine.active_bytes = slab.num_objects * lists_.slab_class(slab.class_index).bytes;
}

bool ObjectAllocator::FindActive(ObjectWorker& worker, uint32_t class_index, numa::NodeId node) {
  WorkerClass& mine = worker.state->classes[class_index];
  const numa::NodeId preferred = node == numa::kNoNode ? worker.local : node;
  auto take = [&](numa::NodeId from) {
    FreeChain free = kNoFreeObjects;
    const PageId first = lists_.TakeActive(class_index, from, Wait::kYes, free);
    if (first == kNoPage) return false;
    SetActive(mine, first, free);
    worker.counters->Add(from == worker.local ? ObjectCounter::kPartialObjectsLocal
                                              : ObjectCounter::kPartialObjectsRemote,
                         free.count);
    return true;
  };
  auto take_anywhere = [&] {
    if (!IsGateOpen(worker)) return false;
    std::array<numa::NodeId, numa::kMaxNodes> nodes;
    const size_t num_nodes = ReusableNodes(worker, class_index, nodes);
    for (size_t i = 0; i < num_nodes && mine.active == kNoPage; ++i) take(nodes[i]);
    if (mine.active == kNoPage) return false;
    if (pages_->NodeOf(mine.active) != worker.local)
      worker.counters->Add(ObjectCounter::kRemoteReuseTaken);
    return true;
  };
  auto make = [&](numa::NodeId where, NewSlabReason reason) {
    uint32_t order = 0;
    const PageId first = NewSlabPages(worker, class_index, where, reason, order);
    if (first == kNoPage) return false;
    SetActive(mine, first, lists_.AddActive(class_index, first, order));
    return true;
  };

  if (take(preferred)) return true;
  if (node == numa::kNoNode) {
    // The page allocator obeys the task's policy here; a sheaf's refill asks for the local node.
    return take_anywhere() || make(numa::kNoNode, NewSlabReason::kLocal);
  }
  return make(node, NewSlabReason::kThisNode) || take(node) || take_anywhere() ||
         make(node, NewSlabReason::kAnywhere);
}

void ObjectAllocator::DeactivateSlab(ObjectWorker& worker, uint32_t class_index) {
  WorkerClass& mine = worker.state->classes[class_index];
  if (mine.active == kNoPage) return;
  SurplusSlabs surplus;
  lists_.Deactivate(mine.active, mine.free, surplus);
  mine.active = kNoPage;
  mine.active_bytes = 0;
  mine.free = kNoFreeObjects;
  FreeSurplus(worker, surplus);
}

}  // namespace pipeyard::memory
