// The page cache's generations (kernel-mechanisms.md A7) by their counters, preallocation's waste
// (H11), and failing allocations.

#include <errno.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "workloads/pipe/testing.h"

namespace pipeyard::pipe {
namespace {

TestEngine::Options With(PageCache page_cache) {
  TestEngine::Options options;
  options.page_cache = page_cache;
  return options;
}

// Puts `pages` (at most 2) into the pipe's cache.
void Warm(TestEngine& engine, uint64_t pages) {
  for (uint64_t i = 0; i < pages; ++i) ASSERT_EQ(engine.Write(kPage), static_cast<int64_t>(kPage));
  if (pages != 0) {
    ASSERT_EQ(engine.Read(pages * kPage), static_cast<int64_t>(pages * kPage));
  }
}

// Counters of one action.
struct Pages {
  uint64_t under_mutex, outside_mutex, from_cache, from_prealloc, prealloc_cached, prealloc_freed;
  static Pages Of(const TestEngine& engine) {
    return {engine.Count(Counter::kPagesUnderMutex), engine.Count(Counter::kPagesOutsideMutex),
            engine.Count(Counter::kPagesFromCache),  engine.Count(Counter::kPagesFromPrealloc),
            engine.Count(Counter::kPreallocToCache), engine.Count(Counter::kPreallocFreed)};
  }
  Pages operator-(const Pages& o) const {
    return {under_mutex - o.under_mutex,         outside_mutex - o.outside_mutex,
            from_cache - o.from_cache,           from_prealloc - o.from_prealloc,
            prealloc_cached - o.prealloc_cached, prealloc_freed - o.prealloc_freed};
  }
  friend bool operator==(const Pages&, const Pages&) = default;
  friend void PrintTo(const Pages& p, std::ostream* out) {
    *out << "under " << p.under_mutex << ", outside " << p.outside_mutex << ", cache "
         << p.from_cache << ", prealloc used " << p.from_prealloc << ", cached "
         << p.prealloc_cached << ", freed " << p.prealloc_freed;
  }
};

template <typename Act>
Pages CountedIn(TestEngine& engine, const Act& act) {
  const Pages before = Pages::Of(engine);
  act();
  return Pages::Of(engine) - before;
}

TEST(H11_PreallocWaste, PagesUnderTheMutexAreThoseBeyondEightAndTheCache) {
  for (const uint64_t pages : {1, 2, 7, 8, 9, 10, 16}) {
    for (const uint64_t cached : {0, 1, 2}) {
      TestEngine engine(With(PageCache::kPrealloc));
      Warm(engine, cached);
      const Pages counted = CountedIn(engine, [&] { engine.Write(pages * kPage); });

      const uint64_t preallocated = pages > 1 ? std::min<uint64_t>(pages, 8) : 0;
      const uint64_t from_cache = std::min(cached, pages - preallocated);
      EXPECT_EQ(counted, (Pages{pages - preallocated - from_cache, preallocated, from_cache,
                                preallocated, 0, 0}))
          << pages << " pages, " << cached << " cached";
    }
  }
}

TEST(TwoPageCache, EveryPageBeyondTheCacheIsAllocatedUnderTheMutex) {
  for (const uint64_t pages : {1, 2, 8, 9, 16}) {
    for (const uint64_t cached : {0, 1, 2}) {
      TestEngine engine(With(PageCache::kTwoPage));
      Warm(engine, cached);
      const Pages counted = CountedIn(engine, [&] { engine.Write(pages * kPage); });

      const uint64_t from_cache = std::min(cached, pages);
      EXPECT_EQ(counted, (Pages{pages - from_cache, 0, from_cache, 0, 0, 0}))
          << pages << " pages, " << cached << " cached";
    }
  }
}

TEST(H11_PreallocWaste, AFullPipeTakesEightPagesForNothing) {
  TestEngine engine(With(PageCache::kPrealloc));
  engine.Write(16 * kPage);

  EXPECT_EQ(CountedIn(engine, [&] { EXPECT_EQ(engine.Write(16 * kPage), -EAGAIN); }),
            (Pages{0, 8, 0, 0, 2, 6}));
  EXPECT_EQ(CountedIn(engine, [&] { EXPECT_EQ(engine.Write(16 * kPage), -EAGAIN); }),
            (Pages{0, 8, 0, 0, 0, 8}));
}

TEST(H11_PreallocWaste, ABrokenPipeTakesPagesForNothing) {
  TestEngine engine(With(PageCache::kPrealloc));
  engine.pipe().CloseReader(engine.worker());

  EXPECT_EQ(CountedIn(engine, [&] { EXPECT_EQ(engine.Write(3 * kPage), -EPIPE); }),
            (Pages{0, 3, 0, 0, 2, 1}));
}

TEST(H11_PreallocWaste, MergingIsNotForeseen) {
  TestEngine engine(With(PageCache::kPrealloc));
  engine.Write(100);

  EXPECT_EQ(CountedIn(engine, [&] { engine.Write(kPage + 50); }), (Pages{0, 2, 0, 1, 1, 0}));
}

TEST(H11_PreallocWaste, UpToOnePageIsNeverPreallocated) {
  TestEngine engine(With(PageCache::kPrealloc));

  EXPECT_EQ(CountedIn(engine, [&] { engine.Write(kPage); }), (Pages{1, 0, 0, 0, 0, 0}));
  EXPECT_EQ(CountedIn(engine, [&] { engine.Write(kPage + 1); }), (Pages{0, 2, 0, 2, 0, 0}));
}

TEST(PreallocCache, WhileAWriterSleepsTheCacheServesIt) {
  TestEngine engine(With(PageCache::kPrealloc));
  const std::string data(20 * kPage, 'x');
  std::thread writer([&] { engine.pipe().Write(engine.worker(1), data.data(), data.size()); });
  ASSERT_TRUE(memory::Eventually([&] { return engine.pipe().CountWaitingWriters() == 1; }));
  size_t num_read = 0;
  while (num_read < data.size())
    num_read += static_cast<size_t>(std::max<int64_t>(0, engine.Read(data.size())));
  writer.join();

  EXPECT_EQ(engine.Count(Counter::kPagesOutsideMutex), 8u);
  EXPECT_LE(engine.Count(Counter::kPagesUnderMutex), 12u);
  EXPECT_GE(engine.Count(Counter::kPagesFromCache), 1u);
}

class H10_PageCache : public BothCaches {};
PIPEYARD_BOTH_CACHES(H10_PageCache);

TEST_P(H10_PageCache, KeepsAtMostTwoPages) {
  TestEngine engine(WithCache());
  engine.Write(16 * kPage);
  engine.Read(16 * kPage);

  EXPECT_EQ(engine.Count(Counter::kPagesCached), 2u);
  EXPECT_EQ(engine.Count(Counter::kFreedUnderMutex), 14u);
  EXPECT_EQ(engine.DataPages(), 2u);
}

TEST_P(H10_PageCache, ASharedPageIsNeverCached) {
  TestEngine engine(WithCache());
  engine.Write(kPage);
  PipeInfo& info = engine.pipe().info();
  const auto page =
      static_cast<memory::PageId>(engine.engine().region().At<Slot>(info.slots_offset)->page);
  // A second holder, as tee or splice make one.
  engine.engine().pages().AddReference(page);
  engine.Read(kPage);

  EXPECT_EQ(engine.Count(Counter::kPagesCached), 0u);
  EXPECT_EQ(engine.DataPages(), 1u);
  engine.engine().pages().Put(engine.worker().pages(), page);
  EXPECT_EQ(engine.DataPages(), 0u);
}

TEST_P(H10_PageCache, ClosingBothEndsGivesEveryPageBack) {
  TestEngine engine(WithCache());
  engine.Write(5 * kPage);
  engine.Read(2 * kPage);
  engine.pipe().CloseReader(engine.worker());
  EXPECT_EQ(engine.DataPages(), 5u);
  engine.pipe().CloseWriter(engine.worker());

  EXPECT_EQ(engine.DataPages(), 0u);
}

class FailingAllocations : public BothCaches {};
PIPEYARD_BOTH_CACHES(FailingAllocations);

// Fails allocation 1, 2, ... until a write of a full pipe no longer notices.
TEST_P(FailingAllocations, OnceAtEveryPlaceTheWriteIsShortOrWhole) {
  constexpr uint64_t kPages = 16;
  uint64_t i = 1;
  for (;; ++i) {
    TestEngine engine(WithCache());
    memory::AllocationFailures failures{i, 1};
    engine.engine().pages().InjectFailures(&failures);
    const int64_t result = engine.Write(StreamBytes(0, kPages * kPage));
    engine.engine().pages().InjectFailures(nullptr);
    if (failures.num_allocations < i) {
      EXPECT_EQ(result, static_cast<int64_t>(kPages * kPage));
      break;
    }
    // A failure in the preallocation ends only that.
    const bool is_hidden = GetParam() == PageCache::kPrealloc && i <= 8;
    const int64_t expected = is_hidden ? kPages * kPage
                             : i == 1  ? -ENOMEM
                                       : static_cast<int64_t>((i - 1) * kPage);
    EXPECT_EQ(result, expected) << "allocation " << i;
    if (result > 0) {
      EXPECT_EQ(engine.ReadText(kPages * kPage), StreamBytes(0, static_cast<size_t>(result)));
    }
    EXPECT_EQ(engine.Write(kPage), static_cast<int64_t>(kPage)) << "the pipe works again";
  }
  EXPECT_EQ(i, kPages + 1);
}

TEST_P(FailingAllocations, FromEveryPlaceOnTheWriteIsShort) {
  for (uint64_t i = 1; i <= 16; ++i) {
    TestEngine engine(WithCache());
    memory::AllocationFailures failures{i, UINT64_MAX};
    engine.engine().pages().InjectFailures(&failures);

    EXPECT_EQ(engine.Write(16 * kPage), i == 1 ? -ENOMEM : static_cast<int64_t>((i - 1) * kPage));
    engine.engine().pages().InjectFailures(nullptr);
  }
}

TEST_P(FailingAllocations, CachedPagesNeedNoAllocation) {
  TestEngine engine(WithCache());
  Warm(engine, 2);
  memory::AllocationFailures failures{1, UINT64_MAX};
  engine.engine().pages().InjectFailures(&failures);

  EXPECT_EQ(engine.Write(4 * kPage), static_cast<int64_t>(2 * kPage));
  engine.engine().pages().InjectFailures(nullptr);
}

TEST_P(FailingAllocations, WhatMergedStaysWhenThePageIsMissing) {
  TestEngine engine(WithCache());
  engine.Write(StreamBytes(0, 100));
  memory::AllocationFailures failures{1, UINT64_MAX};
  engine.engine().pages().InjectFailures(&failures);

  EXPECT_EQ(engine.Write(StreamBytes(100, kPage + 50)), 50);
  engine.engine().pages().InjectFailures(nullptr);
  EXPECT_EQ(engine.ReadText(1000), StreamBytes(0, 150));
}

}  // namespace
}  // namespace pipeyard::pipe
