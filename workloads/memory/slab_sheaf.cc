#include "workloads/memory/slab_sheaf.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "workloads/memory/object_allocator.h"

namespace pipeyard::memory {

bool ObjectAllocator::LockBarn(Barn& barn) {
  if (!barn.mutex.Lock().is_owner_dead) [[likely]]
    return true;
  barn.mutex.Unlock();
  lists_.MarkBroken();
  return false;
}

ObjectRef ObjectAllocator::AllocateFromSheaf(ObjectWorker& worker, uint32_t class_index,
                                             numa::NodeId node) {
  if (node != numa::kNoNode && node != worker.local) {
    worker.counters->Add(ObjectCounter::kNodeMismatches);
    return kNoObject;
  }
  WorkerClass& mine = worker.state->classes[class_index];
  if (SheafAt(mine.main).size == 0 && !ReplaceEmptyMain(worker, class_index)) return kNoObject;
  Sheaf& sheaf = SheafAt(mine.main);
  const ObjectRef object = sheaf.objects()[sheaf.size - 1];
  // The sheaf is left as it is, so that it diverts the next one, too.
  if (node != numa::kNoNode && NodeOf(object) != node) {
    worker.counters->Add(ObjectCounter::kNodeMismatches);
    worker.counters->Add(ObjectCounter::kRemoteTopDiverts);
    return kNoObject;
  }
  sheaf.size -= 1;
  worker.counters->Add(ObjectCounter::kFastAllocations);
  return object;
}

bool ObjectAllocator::ReplaceEmptyMain(ObjectWorker& worker, uint32_t class_index) {
  WorkerClass& mine = worker.state->classes[class_index];
  if (SheafAt(mine.spare).size != 0) {
    std::swap(mine.main, mine.spare);
    worker.counters->Add(ObjectCounter::kSpareSwaps);
    return true;
  }
  Barn& barn = BarnOf(class_index, worker.local);
  if (LockBarn(barn)) {
    const bool is_hit = barn.num_full != 0;
    if (is_hit) std::swap(mine.main, barn.sheaves[--barn.num_full]);
    barn.mutex.Unlock();
    worker.counters->Add(is_hit ? ObjectCounter::kBarnHits : ObjectCounter::kBarnMisses);
    if (is_hit) return true;
  }
  // The spare, while the main sheaf stays empty: whoever runs in between finds a consistent worker.
  RefillSheaf(worker, class_index, SheafAt(mine.spare));
  if (SheafAt(mine.spare).size == 0) return false;
  std::swap(mine.main, mine.spare);
  return true;
}

void ObjectAllocator::RefillSheaf(ObjectWorker& worker, uint32_t class_index, Sheaf& sheaf) {
  auto rest = [&] { return std::span(sheaf.objects(), sheaf.capacity).subspan(sheaf.size); };
  sheaf.size += TakePartial(worker, class_index, worker.local, rest(), Wait::kYes);
  if (sheaf.size != sheaf.capacity) {
    sheaf.size += TakeFromAnyNode(worker, class_index, rest(), Wait::kTryOnly);
  }
  while (sheaf.size != sheaf.capacity) {
    const uint32_t taken =
        TakeFromNewSlab(worker, class_index, worker.local, NewSlabReason::kRefill, rest());
    if (taken == 0) break;
    sheaf.size += taken;
  }
  if (sheaf.size != 0) worker.counters->Add(ObjectCounter::kSheafRefills);
}

void ObjectAllocator::ReplaceFullMain(ObjectWorker& worker, uint32_t class_index) {
  WorkerClass& mine = worker.state->classes[class_index];
  if (SheafAt(mine.spare).size != SheafAt(mine.spare).capacity) {
    std::swap(mine.main, mine.spare);
    worker.counters->Add(ObjectCounter::kSpareSwaps);
    return;
  }
  Barn& barn = BarnOf(class_index, worker.local);
  if (LockBarn(barn)) {
    const bool has_room = barn.num_full != kBarnSheaves;
    if (has_room) std::swap(mine.main, barn.sheaves[barn.num_full++]);
    barn.mutex.Unlock();
    worker.counters->Add(has_room ? ObjectCounter::kBarnPuts : ObjectCounter::kBarnFull);
    if (has_room) return;
  }
  FlushSheaf(worker, class_index, SheafAt(mine.spare));
  std::swap(mine.main, mine.spare);
}

void ObjectAllocator::FlushSheaf(ObjectWorker& worker, uint32_t class_index, Sheaf& sheaf) {
  if (sheaf.size == 0) return;
  worker.counters->Add(ObjectCounter::kSheafFlushes);
  worker.counters->Add(ObjectCounter::kFlushedObjects, sheaf.size);
  GiveToSlabs(worker, class_index, std::span<const ObjectRef>(sheaf.objects(), sheaf.size));
  sheaf.size = 0;
}

}  // namespace pipeyard::memory
