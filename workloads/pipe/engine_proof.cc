// Where the engine's pages and objects are: conservation and placement.

#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "workloads/pipe/engine.h"

namespace pipeyard::pipe {

// The analysis does not see that info and pipe.info_ are one.
Status Engine::CheckConservation() NO_THREAD_SAFETY_ANALYSIS {
  PIPEYARD_ASSIGN_OR_RETURN(memory::PageCensus census, pages_->TakeCensus());
  PIPEYARD_ASSIGN_OR_RETURN(const memory::ObjectCensus objects, objects_->TakeCensus());
  uint64_t in_rings = 0;
  uint64_t cached = 0;
  auto is_live = [&](memory::ObjectRef object) {
    return std::binary_search(objects.live.begin(), objects.live.end(), object);
  };
  auto take = [&](uint64_t page) {
    if (page >= census.is_allocated.size() || !census.is_allocated[page]) return false;
    census.is_allocated[page] = false;
    return true;
  };
  uint64_t num_alive = 0;
  for (int i = 0; i < num_workers(); ++i) {
    PipeList& list = environment_.lists[i];
    static_cast<void>(list.mutex.Lock());
    const uint64_t listed = list.num_alive;
    uint64_t found = 0;
    bool is_sound = true;
    for (uint64_t offset = list.first; is_sound && offset != 0 && found <= listed; ++found) {
      const Pipe pipe(environment_, offset);
      PipeInfo& info = pipe.info();
      static_cast<void>(info.mutex.Lock());
      const uint32_t slots = info.ring_slots.load(std::memory_order_relaxed);
      HeadTail ends = pipe.Ends();
      is_sound = ends.Occupancy() <= slots && is_live(offset) && is_live(info.slots_offset);
      for (; is_sound && !ends.IsEmpty(); ++ends.tail, ++in_rings) {
        const Slot& slot = pipe.SlotAt(ends.tail);
        is_sound = slot.length != 0 && slot.offset + slot.length <= pages_->page_bytes() &&
                   take(slot.page);
      }
      for (const memory::PageId page : info.cache.pages) {
        if (page == memory::kNoPage) continue;
        is_sound = is_sound && take(page);
        ++cached;
      }
      info.mutex.Unlock();
      if (!is_sound) {
        list.mutex.Unlock();
        return Internal("conservation: the pipe at " + std::to_string(offset) +
                        " or its ring is free, or it holds a page that is free or held twice, or "
                        "a slot that cannot be");
      }
      offset = info.next_alive;
    }
    list.mutex.Unlock();
    if (found != listed) return Internal("conservation: a list of live pipes is broken");
    num_alive += listed;
  }
  for (const memory::AgedObjects::Object& object : aged_.objects) {
    if (!is_live(object.ref)) {
      return Internal("conservation: the object at " + std::to_string(object.ref) +
                      ", which keeps an aged slab half full, is free");
    }
  }
  if (objects.num_live + objects.num_blocks != 2 * num_alive + aged_.objects.size()) {
    return Internal("conservation: " + std::to_string(objects.num_live + objects.num_blocks) +
                    " objects allocated, " + std::to_string(num_alive) + " pipes alive, " +
                    std::to_string(aged_.objects.size()) + " objects of aging");
  }
  if (in_rings + cached + objects.num_pages != census.num_allocated) {
    return Internal("conservation: " + std::to_string(census.num_allocated) + " pages allocated, " +
                    std::to_string(in_rings) + " in rings, " + std::to_string(cached) +
                    " cached and " + std::to_string(objects.num_pages) + " of objects");
  }
  return Status::Ok();
}

Result<PlacementProof> Engine::ProvePlacement() {
  PIPEYARD_ASSIGN_OR_RETURN(const memory::PageCensus census, pages_->TakeCensus());
  const std::vector<numa::PageRange>& arenas = pages_->arenas();
  PlacementProof proof;
  proof.is_emulated = topology_.is_emulated();
  const auto host_page_bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uint64_t host_pages_per_page = pages_->page_bytes() / host_page_bytes;
  std::vector<uint64_t> first_page;
  uint64_t next_page = 0;
  for (const numa::PageRange& arena : arenas) {
    first_page.push_back(next_page);
    next_page += arena.size_bytes / pages_->page_bytes();
  }
  auto is_allocated = [&](size_t arena, uint64_t host_page) {
    return census.is_allocated[first_page[arena] + host_page / host_pages_per_page];
  };
  if (!proof.is_emulated) {
    PIPEYARD_ASSIGN_OR_RETURN(
        proof.nodes, numa::VerifyPlacement(*kernel_, arenas, host_page_bytes, is_allocated));
    for (const numa::PlacementCount& count : proof.nodes) proof.misplaced += count.misplaced();
    return proof;
  }
  for (size_t i = 0; i < arenas.size(); ++i) {
    numa::PlacementCount count;
    count.expected = arenas[i].node;
    for (uint64_t page = 0; page < arenas[i].size_bytes / host_page_bytes; ++page) {
      if (is_allocated(i, page)) ++count.pages_on[count.expected];
    }
    proof.nodes.push_back(std::move(count));
  }
  return proof;
}

std::vector<MetadataCount> Engine::MetadataPlacement() const {
  std::vector<MetadataCount> nodes;
  const Result<memory::ObjectCensus> census = objects_->TakeCensus();
  for (numa::NodeId node = 0; node < numa::kMaxNodes; ++node) {
    MetadataCount count;
    count.node = node;
    for (int i = 0; i < num_workers(); ++i) {
      count.infos += metadata_by_node_[i].infos[node].load(std::memory_order_relaxed);
      count.rings += metadata_by_node_[i].rings[node].load(std::memory_order_relaxed);
    }
    if (census.ok()) count.live_objects = census->live_by_node[static_cast<size_t>(node)];
    if (census.ok() && node == aged_node_) count.live_objects -= aged_.objects.size();
    if (count.infos + count.rings != 0) nodes.push_back(count);
  }
  return nodes;
}

}  // namespace pipeyard::pipe
