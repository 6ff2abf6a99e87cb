// ObjectSource: where pipes get their info objects and rings from.
//
// Thread safety: thread-safe. Ownership: its memory is a part of the region; this handle, made
// before any fork, is valid in every process.
#pragma once

#include <cstdint>

#include "workloads/memory/region.h"
#include "workloads/memory/shared_mutex.h"
#include "workloads/numa/node_mask.h"

namespace pipeyard::pipe {

class ObjectSource {
 public:
  // Offset from the region's start; 0: none.
  using Ref = uint64_t;
  struct Worker {};

  static constexpr uint32_t kNumClasses = 32;
  // SHARED
  struct State {
    memory::SharedMutex mutex;
    uint64_t next;
    uint64_t num_allocated;
    Ref free[kNumClasses];
  };

  void Attach(memory::Region& region, uint64_t state_offset, uint64_t bytes) {
    region_ = &region;
    state_ = region.At<State>(state_offset);
    begin_ = memory::AlignUp(state_offset + sizeof(State), memory::kCacheLine);
    end_ = state_offset + bytes;
  }

  Ref Allocate(Worker&, uint32_t size_bytes, numa::NodeId) {
    const uint32_t index = ClassOf(size_bytes);
    static_cast<void>(state_->mutex.Lock());
    Ref ref = state_->free[index];
    if (ref != 0) {
      state_->free[index] = *region_->At<Ref>(ref);
    } else {
      const uint64_t at = state_->next == 0 ? begin_ : state_->next;
      if (at + (uint64_t{64} << index) <= end_) {
        ref = at;
        state_->next = at + (uint64_t{64} << index);
      }
    }
    state_->num_allocated += ref != 0 ? 1 : 0;
    state_->mutex.Unlock();
    return ref;
  }
  void Free(Worker&, Ref ref, uint32_t size_bytes) {
    static_cast<void>(state_->mutex.Lock());
    *region_->At<Ref>(ref) = state_->free[ClassOf(size_bytes)];
    state_->free[ClassOf(size_bytes)] = ref;
    --state_->num_allocated;
    state_->mutex.Unlock();
  }
  uint64_t num_allocated() const { return state_->num_allocated; }

 private:
  static uint32_t ClassOf(uint32_t size_bytes) {
    uint32_t index = 0;
    while ((uint64_t{64} << index) < size_bytes) ++index;
    return index;
  }

  memory::Region* region_ = nullptr;
  State* state_ = nullptr;
  uint64_t begin_ = 0;
  uint64_t end_ = 0;
};
PIPEYARD_CHECK_SHARED(ObjectSource::State);

}  // namespace pipeyard::pipe
