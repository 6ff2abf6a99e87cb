// The generations of the pipe's page cache (kernel-mechanisms.md A7), one type each, chosen once
// per call: what a write does before it takes the mutex, where it gets pages from, where a read
// puts them, and what happens to those left over.
//
//   one-page, two-page  before the mutex: nothing. Get: cache, allocator.
//   prealloc-v1         before: for writes from a page on, one bulk call for up to 8 pages.
//                       Get: cache, batch (last in, first out), allocator.
//                       Leftovers: into the cache, the rest freed under the mutex.
//   prealloc            before: for writes above a page, up to 8 pages one by one.
//                       Get: batch (last in, first out), cache, allocator.
//                       Leftovers: into the cache, the rest freed after the mutex.
//   pool                before: up to 8 pages less those that the pool seems to hold; pushed into
//                       it under the mutex. Get: pool (last in, first out), allocator.
//                       Leftovers: reads and writes end by trimming the pool to 2, freed after
//                       the mutex.
//
// All put a page that nobody shares into an empty place of the cache, else they free it, under the
// mutex. Thread safety: Preallocate and FreeRest without, everything else with the pipe's mutex
// held; `batch` is the call's own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "workloads/pipe/environment.h"
#include "workloads/pipe/pipe_info.h"
#include "workloads/pipe/worker.h"

namespace pipeyard::pipe {

inline constexpr uint32_t kMaxPreallocated = 8;

// What one call holds beside the pipe. Empty for generations that hold nothing.
struct NoBatch {
  static constexpr uint32_t count = 0;
};
template <uint32_t kCapacity>
struct PageBatch {
  uint32_t count = 0;
  memory::PageId pages[kCapacity];
};

inline memory::PageId AllocateUnderMutex(const PipeEnvironment& env, Worker& worker) {
  const memory::PageId page = env.pages->Allocate(worker.pages());
  if (page != memory::kNoPage) worker.Count(Counter::kPagesUnderMutex);
  return page;
}

// How many pages a write of `size` is expected to need, at most 8. Merging is not foreseen: a write
// that merges its first bytes may get one page too many.
inline uint32_t PagesToPreallocate(const PipeEnvironment& env, size_t size) {
  return static_cast<uint32_t>(
      std::min<uint64_t>((size - 1) / env.pages->page_bytes() + 1, kMaxPreallocated));
}

template <typename Batch>
void AllocateSingly(const PipeEnvironment& env, Worker& worker, uint32_t wanted, Batch& batch) {
  while (batch.count < wanted) {
    const memory::PageId page = env.pages->Allocate(worker.pages());
    if (page == memory::kNoPage) break;
    batch.pages[batch.count++] = page;
  }
  worker.Count(Counter::kPagesOutsideMutex, batch.count);
}

template <typename Batch>
void FreeBatch(const PipeEnvironment& env, Worker& worker, Batch& batch) {
  while (batch.count != 0) env.pages->Put(worker.pages(), batch.pages[--batch.count]);
}

// `kPlaces` pages in places of their own: tmp_page.
template <uint32_t kPlaces>
struct PlacesCache {
  using Batch = NoBatch;
  using Trimmed = NoBatch;

  static void Preallocate(const PipeEnvironment&, Worker&, size_t, const CachedPages&, Batch&) {}
  template <typename AnyBatch>
  static void Adopt(Worker&, CachedPages&, AnyBatch&) {}
  static memory::PageId Get(const PipeEnvironment& env, Worker& worker, CachedPages& cache,
                            Batch&) {
    const memory::PageId page = Take(worker, cache);
    return page != memory::kNoPage ? page : AllocateUnderMutex(env, worker);
  }
  static void Put(const PipeEnvironment& env, Worker& worker, CachedPages& cache,
                  memory::PageId page) {
    if (env.pages->IsUnshared(page) && Keep(cache, page)) {
      worker.Count(Counter::kPagesCached);
      return;
    }
    worker.Count(Counter::kFreedUnderMutex);
    env.pages->Put(worker.pages(), page);
  }
  static void Recycle(const PipeEnvironment&, Worker&, CachedPages&, Batch&) {}
  static void FreeRest(const PipeEnvironment&, Worker&, Batch&) {}
  static void Trim(CachedPages&, Trimmed&) {}
  static void FreeTrimmed(const PipeEnvironment&, Worker&, Trimmed&) {}

 protected:
  static memory::PageId Take(Worker& worker, CachedPages& cache) {
    for (uint32_t i = 0; i < kPlaces; ++i) {
      if (cache.pages[i] == memory::kNoPage) continue;
      worker.Count(Counter::kPagesFromCache);
      return std::exchange(cache.pages[i], memory::kNoPage);
    }
    return memory::kNoPage;
  }

  // False where no place is empty.
  static bool Keep(CachedPages& cache, memory::PageId page) {
    for (uint32_t i = 0; i < kPlaces; ++i) {
      if (cache.pages[i] != memory::kNoPage) continue;
      cache.pages[i] = page;
      return true;
    }
    return false;
  }

  template <typename AnyBatch>
  static memory::PageId TakePreallocated(Worker& worker, AnyBatch& batch) {
    if (batch.count == 0) return memory::kNoPage;
    worker.Count(Counter::kPagesFromPrealloc);
    return batch.pages[--batch.count];
  }

  template <typename AnyBatch>
  static void KeepLeftovers(Worker& worker, CachedPages& cache, AnyBatch& batch) {
    while (batch.count != 0 && Keep(cache, batch.pages[batch.count - 1])) {
      --batch.count;
      worker.Count(Counter::kPreallocToCache);
    }
  }
};

using OnePageCache = PlacesCache<1>;
using TwoPageCache = PlacesCache<2>;

// Those that preallocate into a batch of the call's own.
struct BatchedCache : PlacesCache<2> {
  using Batch = PageBatch<kMaxPreallocated>;

  static void FreeRest(const PipeEnvironment& env, Worker& worker, Batch& batch) {
    if (batch.count == 0) return;
    worker.Count(Counter::kPreallocFreed, batch.count);
    FreeBatch(env, worker, batch);
  }
};

struct PreallocV1Cache : BatchedCache {
  static void Preallocate(const PipeEnvironment& env, Worker& worker, size_t size,
                          const CachedPages&, Batch& batch) {
    if (size < env.pages->page_bytes()) return;
    const memory::BulkOptions options{env.interleave_bulk, /*is_accounted=*/true};
    batch.count = env.pages->AllocateBulk(
        worker.pages(), std::span(batch.pages).first(PagesToPreallocate(env, size)), options);
    worker.Count(Counter::kPagesOutsideMutex, batch.count);
  }
  static memory::PageId Get(const PipeEnvironment& env, Worker& worker, CachedPages& cache,
                            Batch& batch) {
    memory::PageId page = Take(worker, cache);
    if (page == memory::kNoPage) page = TakePreallocated(worker, batch);
    return page != memory::kNoPage ? page : AllocateUnderMutex(env, worker);
  }
  static void Recycle(const PipeEnvironment& env, Worker& worker, CachedPages& cache,
                      Batch& batch) {
    KeepLeftovers(worker, cache, batch);
    FreeRest(env, worker, batch);
  }
};

struct PreallocCache : BatchedCache {
  static void Preallocate(const PipeEnvironment& env, Worker& worker, size_t size,
                          const CachedPages&, Batch& batch) {
    if (size <= env.pages->page_bytes()) return;
    AllocateSingly(env, worker, PagesToPreallocate(env, size), batch);
  }
  static memory::PageId Get(const PipeEnvironment& env, Worker& worker, CachedPages& cache,
                            Batch& batch) {
    memory::PageId page = TakePreallocated(worker, batch);
    if (page == memory::kNoPage) page = Take(worker, cache);
    return page != memory::kNoPage ? page : AllocateUnderMutex(env, worker);
  }
  static void Recycle(const PipeEnvironment&, Worker& worker, CachedPages& cache, Batch& batch) {
    KeepLeftovers(worker, cache, batch);
  }
};

struct PoolCache {
  static constexpr uint32_t kPlaces = CachedPages::kCapacity;
  static constexpr uint32_t kKept = 2;
  using Trimmed = PageBatch<kPlaces - kKept>;
  // First the pages that were preallocated, at the end those trimmed as well.
  struct Batch : PageBatch<kMaxPreallocated> {
    Trimmed trimmed;
  };

  static void Preallocate(const PipeEnvironment& env, Worker& worker, size_t size,
                          const CachedPages& cache, Batch& batch) {
    const uint32_t wanted = PagesToPreallocate(env, size);
    // Without the mutex, so others may take or put pages before it is held.
    const uint32_t pooled = cache.count.load(std::memory_order_relaxed);
    if (wanted > pooled) AllocateSingly(env, worker, wanted - pooled, batch);
  }
  static void Adopt(Worker& worker, CachedPages& cache, Batch& batch) {
    while (batch.count != 0 && Push(cache, batch.pages[batch.count - 1])) {
      --batch.count;
      worker.Count(Counter::kPreallocToCache);
    }
  }
  static memory::PageId Get(const PipeEnvironment& env, Worker& worker, CachedPages& cache,
                            Batch&) {
    if (cache.count.load(std::memory_order_relaxed) == 0) return AllocateUnderMutex(env, worker);
    worker.Count(Counter::kPagesFromCache);
    return Pop(cache);
  }
  static void Put(const PipeEnvironment& env, Worker& worker, CachedPages& cache,
                  memory::PageId page) {
    if (env.pages->IsUnshared(page) && Push(cache, page)) {
      worker.Count(Counter::kPagesCached);
      return;
    }
    worker.Count(Counter::kFreedUnderMutex);
    env.pages->Put(worker.pages(), page);
  }
  static void Recycle(const PipeEnvironment&, Worker&, CachedPages& cache, Batch& batch) {
    Trim(cache, batch.trimmed);
  }
  static void FreeRest(const PipeEnvironment& env, Worker& worker, Batch& batch) {
    if (batch.count != 0) {
      worker.Count(Counter::kPreallocFreed, batch.count);
      FreeBatch(env, worker, batch);
    }
    FreeTrimmed(env, worker, batch.trimmed);
  }
  static void Trim(CachedPages& cache, Trimmed& trimmed) {
    while (cache.count.load(std::memory_order_relaxed) > kKept) {
      trimmed.pages[trimmed.count++] = Pop(cache);
    }
  }
  static void FreeTrimmed(const PipeEnvironment& env, Worker& worker, Trimmed& trimmed) {
    if (trimmed.count == 0) return;
    worker.Count(Counter::kPagesTrimmed, trimmed.count);
    FreeBatch(env, worker, trimmed);
  }

 private:
  static bool Push(CachedPages& cache, memory::PageId page) {
    const uint32_t count = cache.count.load(std::memory_order_relaxed);
    if (count == kPlaces) return false;
    cache.pages[count] = page;
    cache.count.store(count + 1, std::memory_order_relaxed);
    return true;
  }
  // Precondition: it is not empty.
  static memory::PageId Pop(CachedPages& cache) {
    const uint32_t count = cache.count.load(std::memory_order_relaxed) - 1;
    cache.count.store(count, std::memory_order_relaxed);
    return std::exchange(cache.pages[count], memory::kNoPage);
  }
};

}  // namespace pipeyard::pipe
