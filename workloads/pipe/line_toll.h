// LineToll: the one invented cost of an emulated topology (docs/SWEEPS.md): taking a cache line of
// pipe metadata that lies on another node than the worker and was last written by another virtual
// CPU costs a spin of `remote_access`. Data pages cost nothing.
//
// It is a model: it knows who wrote a line last, not what the machine's caches hold, and a take
// counts as a write. Thread safety: thread-safe; a line's owner is exact where a lock guards the
// line. Ownership: the table lies in the region; this handle, made before any fork, is valid in
// every process.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/units.h"
#include "workloads/memory/page_allocator.h"
#include "workloads/pipe/worker.h"

namespace pipeyard::pipe {

class LineToll {
 public:
  // SHARED. The virtual CPU that wrote the line last, plus 1; 0: nobody yet.
  using Owner = std::atomic<uint16_t>;

  // Bytes of the table for an allocator of `num_pages`.
  static uint64_t TableBytes(uint64_t num_pages, uint64_t page_bytes) {
    return num_pages * (page_bytes / memory::kCacheLine) * sizeof(Owner);
  }

  // `owners` is zeroed. Measures how fast this machine spins, about a millisecond.
  LineToll(const memory::PageAllocator& pages, Owner* owners, Nanos remote_access);

  // The lines of [offset, offset + bytes) of the region, which lie in pages of the allocator.
  void Take(Worker& worker, uint64_t offset, uint64_t bytes);

 private:
  const memory::PageAllocator* const pages_;
  Owner* const owners_;
  const uint64_t first_offset_;
  const int64_t remote_access_ns_;
  uint64_t turns_per_line_ = 0;
};

}  // namespace pipeyard::pipe
