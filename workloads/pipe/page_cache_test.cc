// The page cache's generations (kernel-mechanisms.md A7) by their counters, what they keep (H10),
// and preallocation's waste (H11).

#include <errno.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "workloads/pipe/testing.h"

namespace pipeyard::pipe {
namespace {

TestEngine::Options With(PageCache page_cache, bool has_accounting = true) {
  TestEngine::Options options;
  options.page_cache = page_cache;
  options.change = [has_accounting](EngineSetup& setup) {
    setup.config.has_accounting = has_accounting;
  };
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
  uint64_t trimmed = 0;
  static Pages Of(const TestEngine& engine) {
    return {engine.Count(Counter::kPagesUnderMutex), engine.Count(Counter::kPagesOutsideMutex),
            engine.Count(Counter::kPagesFromCache),  engine.Count(Counter::kPagesFromPrealloc),
            engine.Count(Counter::kPreallocToCache), engine.Count(Counter::kPreallocFreed),
            engine.Count(Counter::kPagesTrimmed)};
  }
  Pages operator-(const Pages& o) const {
    return {under_mutex - o.under_mutex,
            outside_mutex - o.outside_mutex,
            from_cache - o.from_cache,
            from_prealloc - o.from_prealloc,
            prealloc_cached - o.prealloc_cached,
            prealloc_freed - o.prealloc_freed,
            trimmed - o.trimmed};
  }
  friend bool operator==(const Pages&, const Pages&) = default;
  friend void PrintTo(const Pages& p, std::ostream* out) {
    *out << "under " << p.under_mutex << ", outside " << p.outside_mutex << ", cache "
         << p.from_cache << ", prealloc used " << p.from_prealloc << ", cached "
         << p.prealloc_cached << ", freed " << p.prealloc_freed << ", trimmed " << p.trimmed;
  }
};

template <typename Act>
Pages CountedIn(TestEngine& engine, const Act& act) {
  const Pages before = Pages::Of(engine);
  act();
  return Pages::Of(engine) - before;
}

constexpr uint64_t kPageCounts[] = {1, 2, 7, 8, 9, 10, 16};

TEST(OneAndTwoPageCache, EveryPageBeyondTheCacheIsAllocatedUnderTheMutex) {
  for (const PageCache page_cache : {PageCache::kOnePage, PageCache::kTwoPage}) {
    for (const uint64_t pages : kPageCounts) {
      for (const uint64_t cached : {0, 1, 2}) {
        if (page_cache == PageCache::kOnePage && cached == 2) continue;
        TestEngine engine(With(page_cache));
        Warm(engine, cached);
        const Pages counted = CountedIn(engine, [&] { engine.Write(pages * kPage); });

        const uint64_t from_cache = std::min(cached, pages);
        EXPECT_EQ(counted, (Pages{pages - from_cache, 0, from_cache, 0, 0, 0}))
            << pages << " pages, " << cached << " cached";
      }
    }
  }
}

TEST(H11_PreallocWaste, PagesUnderTheMutexAreThoseBeyondEightAndTheCache) {
  for (const uint64_t pages : kPageCounts) {
    for (const uint64_t cached : {0, 1, 2}) {
      TestEngine engine(With(PageCache::kPrealloc));
      Warm(engine, cached);
      const Pages counted = CountedIn(engine, [&] { engine.Write(pages * kPage); });

      // max(0, pages - min(pages, 8) - cached) for writes of more than a page.
      const uint64_t preallocated = pages > 1 ? std::min<uint64_t>(pages, 8) : 0;
      const uint64_t from_cache = std::min(cached, pages - preallocated);
      EXPECT_EQ(counted, (Pages{pages - preallocated - from_cache, preallocated, from_cache,
                                preallocated, 0, 0}))
          << pages << " pages, " << cached << " cached";
    }
  }
}

TEST(PreallocV1Cache, UsesTheCacheFirstAndThenTheBulkOfEight) {
  for (const uint64_t pages : kPageCounts) {
    for (const uint64_t cached : {0, 1, 2}) {
      TestEngine engine(With(PageCache::kPreallocV1, /*has_accounting=*/false));
      Warm(engine, cached);
      ASSERT_EQ(engine.DataPages(), cached);
      const Pages counted = CountedIn(engine, [&] { engine.Write(pages * kPage); });

      const uint64_t preallocated = std::min<uint64_t>(pages, 8);
      const uint64_t from_cache = std::min(cached, pages);
      const uint64_t used = std::min(preallocated, pages - from_cache);
      const uint64_t kept = std::min(preallocated - used, 2 - (cached - from_cache));
      EXPECT_EQ(counted, (Pages{pages - from_cache - used, preallocated, from_cache, used, kept,
                                preallocated - used - kept}))
          << pages << " pages, " << cached << " cached";
    }
  }
}

TEST(PreallocV1Cache, UnderAccountingTheBulkIsOnePage) {
  TestEngine engine(With(PageCache::kPreallocV1));

  EXPECT_EQ(CountedIn(engine, [&] { engine.Write(8 * kPage); }), (Pages{7, 1, 0, 1, 0, 0}));
  EXPECT_EQ(CountedIn(engine, [&] { engine.Write(kPage - 1); }), (Pages{1, 0, 0, 0, 0, 0}));
}

TEST(PoolCache, PreallocatesWhatThePoolLacks) {
  for (const uint64_t pages : kPageCounts) {
    for (const uint64_t cached : {0, 1, 2}) {
      TestEngine engine(With(PageCache::kPool));
      Warm(engine, cached);
      ASSERT_EQ(engine.DataPages(), cached);
      const Pages counted = CountedIn(engine, [&] { engine.Write(pages * kPage); });

      const uint64_t wanted = std::min<uint64_t>(pages, 8);
      const uint64_t preallocated = wanted - std::min(wanted, cached);
      const uint64_t from_pool = std::min(pages, cached + preallocated);
      EXPECT_EQ(counted, (Pages{pages - from_pool, preallocated, from_pool, 0, preallocated, 0, 0}))
          << pages << " pages, " << cached << " cached";
    }
  }
}

TEST(PoolCache, IsTrimmedToTwoAfterWritesAndReads) {
  TestEngine engine(With(PageCache::kPool));
  engine.Write(16 * kPage);

  // Eight pages for a write that finds no room.
  EXPECT_EQ(CountedIn(engine, [&] { EXPECT_EQ(engine.Write(16 * kPage), -EAGAIN); }),
            (Pages{0, 8, 0, 0, 8, 0, 6}));
  EXPECT_EQ(engine.DataPages(), 18u);
  // The read keeps six beside those two while it lasts.
  EXPECT_EQ(CountedIn(engine, [&] { engine.Read(16 * kPage); }), (Pages{0, 0, 0, 0, 0, 0, 6}));
  EXPECT_EQ(engine.Count(Counter::kPagesCached), 6u);
  EXPECT_EQ(engine.DataPages(), 2u);
}

// The pool is looked at without the mutex: what it holds when the mutex is taken may differ.
TEST(PoolCache, ItsRacyLookWantsTooFewOrTooMany) {
  for (const bool grows : {false, true}) {
    TestEngine engine(With(PageCache::kPool));
    Warm(engine, 2);
    PipeInfo& info = engine.pipe().info();
    memory::PageAllocator& pages = engine.engine().pages();
    const Pages before = Pages::Of(engine);
    static_cast<void>(info.mutex.Lock());
    std::thread writer([&] {
      const std::string data(8 * kPage, 'x');
      engine.pipe().Write(engine.worker(1), data.data(), data.size(), IoMode::kNonblocking);
    });
    ASSERT_TRUE(memory::Eventually(
        [&] { return engine.Count(Counter::kPagesOutsideMutex) == before.outside_mutex + 6; }));
    for (uint32_t i = grows ? 2 : 0; i < (grows ? 8 : 2); ++i) {
      memory::PageId& place = info.cache.pages[i];
      if (grows) {
        place = pages.Allocate(engine.worker().pages());
      } else {
        pages.Put(engine.worker().pages(), std::exchange(place, memory::kNoPage));
      }
    }
    info.cache.count.store(grows ? 8 : 0);
    info.mutex.Unlock();
    writer.join();

    EXPECT_EQ(Pages::Of(engine) - before,
              grows ? (Pages{0, 6, 8, 0, 0, 6, 0}) : (Pages{2, 6, 6, 0, 6, 0, 0}));
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
  struct Case {
    PageCache page_cache;
    bool has_accounting;
    Pages pages;
  };
  const Case cases[] = {
      {PageCache::kPrealloc, true, {0, 3, 0, 0, 2, 1}},
      {PageCache::kPreallocV1, false, {0, 3, 0, 0, 2, 1}},
      {PageCache::kPreallocV1, true, {0, 1, 0, 0, 1, 0}},
      {PageCache::kPool, true, {0, 3, 0, 0, 3, 0, 1}},
      {PageCache::kTwoPage, true, {0, 0, 0, 0, 0, 0}},
  };
  for (const Case& c : cases) {
    TestEngine engine(With(c.page_cache, c.has_accounting));
    engine.pipe().CloseReader(engine.worker());

    EXPECT_EQ(CountedIn(engine, [&] { EXPECT_EQ(engine.Write(3 * kPage), -EPIPE); }), c.pages)
        << PageCacheName(c.page_cache);
  }
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

TEST(H11_PreallocWaste, WhatFailsAtTheKthOfEightIsAllocatedUnderTheMutex) {
  for (const PageCache page_cache : {PageCache::kPrealloc, PageCache::kPool}) {
    for (uint64_t k = 1; k <= 8; ++k) {
      TestEngine engine(With(page_cache));
      memory::AllocationFailures failures{k, 1};
      engine.engine().pages().InjectFailures(&failures);
      const Pages counted = CountedIn(
          engine, [&] { EXPECT_EQ(engine.Write(8 * kPage), static_cast<int64_t>(8 * kPage)); });
      engine.engine().pages().InjectFailures(nullptr);

      EXPECT_EQ(counted.outside_mutex, k - 1);
      EXPECT_EQ(counted.under_mutex, 8 - (k - 1));
      EXPECT_EQ(counted.prealloc_freed, 0u);
    }
  }
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

  // Preallocation happens once a call, however often it sleeps.
  EXPECT_EQ(engine.Count(Counter::kPagesOutsideMutex), 8u);
  EXPECT_LE(engine.Count(Counter::kPagesUnderMutex), 12u);
  EXPECT_GE(engine.Count(Counter::kPagesFromCache), 1u);
}

class H10_PageCache : public EveryCache {};
PIPEYARD_EVERY_CACHE(H10_PageCache);

TEST_P(H10_PageCache, KeepsNoMoreThanItsGenerationAllows) {
  TestEngine engine(WithCache());
  engine.Write(16 * kPage);
  engine.Read(16 * kPage);

  const uint64_t put = GetParam() == PageCache::kPool      ? 8
                       : GetParam() == PageCache::kOnePage ? 1
                                                           : 2;
  const uint64_t kept = std::min<uint64_t>(put, 2);
  EXPECT_EQ(engine.Count(Counter::kPagesCached), put);
  EXPECT_EQ(engine.Count(Counter::kFreedUnderMutex), 16 - put);
  EXPECT_EQ(engine.Count(Counter::kPagesTrimmed), put - kept);
  EXPECT_EQ(engine.DataPages(), kept);
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

TEST_P(H10_PageCache, CachedPagesStayWhenThePolicyChanges) {
  TestEngine::Options options = WithCache();
  options.change = [](EngineSetup& setup) {
    setup.config.topology = numa::EmulatedTopology{{{1, 64 << 20}, {1, 64 << 20}}, {}};
    setup.config.policy = *memory::ParsePolicy("bind:0");
  };
  TestEngine engine(options);
  Warm(engine, 1);
  engine.worker().SetPolicy(*memory::ParsePolicy("bind:1"));
  engine.Write(100);

  const auto* slot = engine.engine().region().At<Slot>(engine.pipe().info().slots_offset);
  EXPECT_EQ(engine.engine().pages().NodeOf(static_cast<memory::PageId>(slot[1].page)), 0);
}

TEST_P(H10_PageCache, ClosingBothEndsGivesEveryPageBack) {
  TestEngine engine(WithCache());
  engine.Write(5 * kPage);
  engine.Read(2 * kPage);
  engine.pipe().CloseReader(engine.worker());
  EXPECT_EQ(engine.DataPages(), GetParam() == PageCache::kOnePage ? 4u : 5u);
  engine.pipe().CloseWriter(engine.worker());

  EXPECT_EQ(engine.DataPages(), 0u);
  EXPECT_EQ(engine.Count(Counter::kPipesFreed), 1u);
}

}  // namespace
}  // namespace pipeyard::pipe
