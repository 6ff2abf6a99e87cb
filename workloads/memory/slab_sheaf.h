// Sheaves and barns: a worker's stock of free objects, and a node's stock of full sheaves.
//
// They are data; ObjectAllocator moves objects through them. The kernel allocates sheaves as they
// are needed; here each worker has two and each barn ten for good, which circulate by exchange.
// That is the kernel's steady state: a barn keeps at most ten full sheaves.
// Source: kernel-mechanisms.md B1; ten: MAX_FULL_SHEAVES of mm/slub.c.
// Thread safety: a sheaf belongs to one worker, or lies in a barn under the barn's lock.
#pragma once

#include <cstdint>

#include "base/thread_annotations.h"
#include "workloads/memory/shared.h"
#include "workloads/memory/shared_mutex.h"
#include "workloads/memory/slab_lists.h"

namespace pipeyard::memory {

// SHARED. Followed by ObjectRef[capacity]; the first `size` are free objects.
struct Sheaf {
  uint32_t size;
  uint32_t capacity;  // constant after creation

  ObjectRef* objects() { return reinterpret_cast<ObjectRef*>(this + 1); }
  const ObjectRef* objects() const { return reinterpret_cast<const ObjectRef*>(this + 1); }

  // Of a sheaf with its objects; on lines of its own.
  static constexpr uint64_t Bytes(uint32_t capacity) {
    return AlignUp(sizeof(Sheaf) + uint64_t{capacity} * sizeof(ObjectRef), kCacheLine);
  }
};
PIPEYARD_CHECK_SHARED(Sheaf);

inline constexpr uint32_t kBarnSheaves = 10;

// SHARED. One class on one node: the first `num_full` sheaves are full, the others empty.
struct alignas(kCacheLine) Barn {
  SharedMutex mutex;
  uint32_t num_full GUARDED_BY(mutex);
  uint64_t sheaves[kBarnSheaves] GUARDED_BY(mutex);  // offsets
};
PIPEYARD_CHECK_SHARED(Barn);

}  // namespace pipeyard::memory
