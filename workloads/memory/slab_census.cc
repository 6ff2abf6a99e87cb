// Where every object is.
#include <algorithm>
#include <string>
#include <unordered_set>

#include "workloads/memory/object_allocator.h"

namespace pipeyard::memory {
namespace {

// Collects free objects and finds those that are in two places, or in none that exists.
class FreeObjects {
 public:
  bool Take(ObjectRef object) { return taken_.insert(object).second; }
  bool IsFree(ObjectRef object) const { return taken_.contains(object); }

 private:
  std::unordered_set<ObjectRef> taken_;
};

}  // namespace

Result<ObjectCensus> ObjectAllocator::TakeCensus() const {
  if (lists_.is_broken())
    return Internal("object census: a worker died holding the lock of a partial list or a barn");
  ObjectCensus census;
  FreeObjects free_objects;
  auto twice = [](ObjectRef object) {
    return Internal("object census: object " + std::to_string(object) + " is in two places");
  };
  auto take_chain = [&](PageId first, FreeChain free, uint64_t& place) {
    const uint32_t units = lists_.slab_class(lists_.page(first).class_index).bytes / kUnitBytes;
    uint16_t unit = free.first;
    for (uint32_t i = 0; i < free.count; ++i) {
      if (unit % units != 0 || unit / units >= lists_.page(first).num_objects) return false;
      const ObjectRef object = lists_.ObjectAt(first, unit);
      if (!free_objects.Take(object)) return false;
      unit = lists_.NextFree(object);
    }
    place += free.count;
    return unit == kNoUnit;
  };
  auto take_sheaf = [&](const Sheaf& sheaf, uint64_t& place) -> Status {
    for (uint32_t i = 0; i < sheaf.size; ++i) {
      if (!free_objects.Take(sheaf.objects()[i])) return twice(sheaf.objects()[i]);
    }
    place += sheaf.size;
    return Status::Ok();
  };

  for (int worker = 0; worker < num_workers_; ++worker) {
    for (uint32_t i = 0; i < lists_.num_classes(); ++i) {
      const WorkerClass& mine = workers_[worker].classes[i];
      PIPEYARD_RETURN_IF_ERROR(take_sheaf(SheafAt(mine.main), census.free_in_sheaves));
      PIPEYARD_RETURN_IF_ERROR(take_sheaf(SheafAt(mine.spare), census.free_in_sheaves));
      if (mine.active != kNoPage && !take_chain(mine.active, mine.free, census.free_in_active)) {
        return Internal("object census: a worker's active slab is broken");
      }
    }
  }
  for (size_t i = 0; i < lists_.num_classes() * lists_.nodes().size(); ++i) {
    Barn& barn = barns_[i];
    const bool is_owner_dead = barn.mutex.Lock().is_owner_dead;
    Status status;
    for (uint32_t j = 0; j < barn.num_full && status.ok(); ++j) {
      status = take_sheaf(SheafAt(barn.sheaves[j]), census.free_in_barns);
    }
    barn.mutex.Unlock();
    if (is_owner_dead) return Internal("object census: a worker died holding the lock of a barn");
    PIPEYARD_RETURN_IF_ERROR(status);
  }
  PIPEYARD_RETURN_IF_ERROR(lists_.CheckLists());

  for (PageId page = 0; page < pages_->num_pages(); ++page) {
    const SlabPage& slab = lists_.page(page);
    if (slab.state == SlabState::kNone || slab.first != page) continue;
    const auto node = static_cast<size_t>(pages_->NodeOf(page));
    census.num_pages += uint64_t{1} << slab.order;
    if (slab.state == SlabState::kBlock) {
      census.num_blocks += 1;
      census.live_by_node[node] += 1;
      census.live.push_back(pages_->OffsetOf(page));
      continue;
    }
    census.num_slabs += 1;
    census.num_objects += slab.num_objects;
    if (slab.free.count == slab.num_objects) census.num_empty_slabs += 1;
    if (!take_chain(page, slab.free, census.free_in_slabs)) {
      return Internal("object census: the free objects of the slab at page " +
                      std::to_string(page) + " are broken, or one is in two places");
    }
    const uint32_t object_bytes = lists_.slab_class(slab.class_index).bytes;
    for (uint16_t i = 0; i < slab.num_objects; ++i) {
      const ObjectRef object = pages_->OffsetOf(page) + uint64_t{i} * object_bytes;
      if (free_objects.IsFree(object)) continue;
      census.num_live += 1;
      census.live_by_node[node] += 1;
      census.live_by_class[slab.class_index][node] += 1;
      census.live.push_back(object);
    }
  }
  const uint64_t num_free =
      census.free_in_slabs + census.free_in_sheaves + census.free_in_barns + census.free_in_active;
  if (num_free + census.num_live != census.num_objects)
    return Internal("object census: a free object is in no slab");
  return census;
}

}  // namespace pipeyard::memory
