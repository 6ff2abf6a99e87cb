// The generations of the pipe's page cache (kernel-mechanisms.md A7), one type each, chosen once
// per call: what a write does before it takes the mutex, where it gets pages from, where a read
// puts them, and what happens to those left over.
//
//   generation   before the mutex                     Get                              leftovers
//   two-page     -                                    cache, allocator                 -
//   prealloc     writes above a page: up to 8 pages   batch (last in, first out),      into empty
//   places of the cache before the
//                                                     cache, allocator                 mutex is
//                                                     released, the rest freed after
//
// All put a page that nobody shares into the first empty place of the cache, else they free it,
// under the mutex. Thread safety: Preallocate and FreeRest without, everything else with the pipe's
// mutex held; `batch` is the call's own.
#pragma once

#include <algorithm>
#include <cstdint>

#include "workloads/pipe/pipe_info.h"
#include "workloads/pipe/worker.h"

namespace pipeyard::pipe {

// Two places per pipe, the same in all generations that stand here.
struct TwoPlaces {
  static memory::PageId Take(Worker& worker, CachedPages& cache) {
    for (memory::PageId& place : cache.pages) {
      if (place == memory::kNoPage) continue;
      worker.Count(Counter::kPagesFromCache);
      return std::exchange(place, memory::kNoPage);
    }
    return memory::kNoPage;
  }

  // False where no place is empty.
  static bool Keep(CachedPages& cache, memory::PageId page) {
    for (memory::PageId& place : cache.pages) {
      if (place != memory::kNoPage) continue;
      place = page;
      return true;
    }
    return false;
  }

  static memory::PageId Allocate(memory::PageAllocator& pages, Worker& worker) {
    const memory::PageId page = pages.Allocate(worker.pages());
    if (page != memory::kNoPage) worker.Count(Counter::kPagesUnderMutex);
    return page;
  }

  static void Put(memory::PageAllocator& pages, Worker& worker, CachedPages& cache,
                  memory::PageId page) {
    if (pages.IsUnshared(page) && Keep(cache, page)) {
      worker.Count(Counter::kPagesCached);
      return;
    }
    worker.Count(Counter::kFreedUnderMutex);
    pages.Put(worker.pages(), page);
  }
};

struct TwoPageCache : TwoPlaces {
  struct Batch {};

  static void Preallocate(memory::PageAllocator&, Worker&, size_t, Batch&) {}
  static memory::PageId Get(memory::PageAllocator& pages, Worker& worker, CachedPages& cache,
                            Batch&) {
    const memory::PageId page = Take(worker, cache);
    return page != memory::kNoPage ? page : Allocate(pages, worker);
  }
  static void Recycle(Worker&, CachedPages&, Batch&) {}
  static void FreeRest(memory::PageAllocator&, Worker&, Batch&) {}
};

struct PreallocCache : TwoPlaces {
  static constexpr uint32_t kMaxPages = 8;

  struct Batch {
    uint32_t count = 0;
    memory::PageId pages[kMaxPages];
  };

  static void Preallocate(memory::PageAllocator& pages, Worker& worker, size_t size, Batch& batch) {
    const uint64_t page_bytes = pages.page_bytes();
    if (size <= page_bytes) return;
    // Merging is not foreseen: a write that merges its first bytes may have one page too many.
    const uint64_t wanted = std::min<uint64_t>((size - 1) / page_bytes + 1, kMaxPages);
    while (batch.count < wanted) {
      const memory::PageId page = pages.Allocate(worker.pages());
      if (page == memory::kNoPage) break;
      batch.pages[batch.count++] = page;
    }
    worker.Count(Counter::kPagesOutsideMutex, batch.count);
  }

  static memory::PageId Get(memory::PageAllocator& pages, Worker& worker, CachedPages& cache,
                            Batch& batch) {
    if (batch.count != 0) {
      worker.Count(Counter::kPagesFromPrealloc);
      return batch.pages[--batch.count];
    }
    const memory::PageId page = Take(worker, cache);
    return page != memory::kNoPage ? page : Allocate(pages, worker);
  }

  static void Recycle(Worker& worker, CachedPages& cache, Batch& batch) {
    while (batch.count != 0 && Keep(cache, batch.pages[batch.count - 1])) {
      --batch.count;
      worker.Count(Counter::kPreallocToCache);
    }
  }

  static void FreeRest(memory::PageAllocator& pages, Worker& worker, Batch& batch) {
    if (batch.count == 0) return;
    worker.Count(Counter::kPreallocFreed, batch.count);
    while (batch.count != 0) pages.Put(worker.pages(), batch.pages[--batch.count]);
  }
};

}  // namespace pipeyard::pipe
