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
  if (mine.num_free != 0) {
    worker.counters->Add(ObjectCounter::kFastAllocations);
  } else {
    if (mine.active != kNoPage) {
      mine.num_free = lists_.TakeOver(mine.active, mine.free_index);
      if (mine.num_free != 0) {
        worker.counters->Add(ObjectCounter::kActiveTakeOvers);
      } else {
        // All of its objects are out: it belongs to nobody until one is freed.
        DeactivateSlab(worker, class_index);
      }
    }
    if (mine.num_free == 0 && !FindActive(worker, class_index, node)) return kNoObject;
    worker.counters->Add(ObjectCounter::kSlowAllocations);
  }
  const ObjectRef object =
      lists_.ObjectAt(mine.active, lists_.slab_class(class_index).bytes, mine.free_index);
  mine.free_index = lists_.NextFree(object);
  mine.num_free -= 1;
  return object;
}

bool ObjectAllocator::FindActive(ObjectWorker& worker, uint32_t class_index, numa::NodeId node) {
  WorkerClass& mine = worker.state->classes[class_index];
  const numa::NodeId preferred = node == numa::kNoNode ? worker.local : node;
  auto take = [&](numa::NodeId from) {
    mine.active = lists_.TakeActive(class_index, from, Wait::kYes, mine.free_index, mine.num_free);
    if (mine.active == kNoPage) return false;
    worker.counters->Add(from == worker.local ? ObjectCounter::kPartialObjectsLocal
                                              : ObjectCounter::kPartialObjectsRemote,
                         mine.num_free);
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
    lists_.AddActive(class_index, first, order, mine.free_index, mine.num_free);
    mine.active = first;
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

bool ObjectAllocator::FreeToActive(ObjectWorker& worker, uint32_t class_index, ObjectRef object) {
  WorkerClass& mine = worker.state->classes[class_index];
  // The active slab itself is known by its pages: no lock is needed to find out.
  if (mine.active == kNoPage) return false;
  const uint32_t object_bytes = lists_.slab_class(class_index).bytes;
  const ObjectRef begin = pages_->OffsetOf(mine.active);
  const uint64_t slab_bytes = uint64_t{lists_.page(mine.active).num_objects} * object_bytes;
  if (object - begin >= slab_bytes) return false;
  lists_.NextFree(object) = mine.free_index;
  mine.free_index = lists_.IndexOf(mine.active, object_bytes, object);
  mine.num_free += 1;
  worker.counters->Add(ObjectCounter::kFastFrees);
  return true;
}

void ObjectAllocator::DeactivateSlab(ObjectWorker& worker, uint32_t class_index) {
  WorkerClass& mine = worker.state->classes[class_index];
  if (mine.active == kNoPage) return;
  SurplusSlabs surplus;
  lists_.Deactivate(mine.active, mine.free_index, mine.num_free, surplus);
  mine.active = kNoPage;
  mine.free_index = kNoIndex;
  mine.num_free = 0;
  FreeSurplus(worker, surplus);
}

}  // namespace pipeyard::memory
