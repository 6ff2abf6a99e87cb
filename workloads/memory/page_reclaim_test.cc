// Orders, watermarks, reclaim, accounting and injected failures of the whole allocator.
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <thread>

#include "workloads/memory/page_testing.h"

namespace pipeyard::memory {
namespace {

// Holds pages and gives them back when asked.
class PageHoard final : public Shrinker {
 public:
  explicit PageHoard(PageAllocator& allocator) : allocator_(allocator) {
    allocator.RegisterShrinker(this);
  }
  void Fill(PageWorker& worker, int count) {
    for (int i = 0; i < count; ++i) pages_.push_back(allocator_.Allocate(worker));
  }
  uint64_t Shrink(PageWorker& worker, uint64_t wanted) override {
    ++num_calls;
    uint64_t freed = 0;
    for (; freed < wanted && !pages_.empty(); ++freed) {
      allocator_.Put(worker, pages_.back());
      pages_.pop_back();
    }
    return freed;
  }
  size_t size() const { return pages_.size(); }

  int num_calls = 0;

 private:
  PageAllocator& allocator_;
  std::vector<PageId> pages_;
};

TEST(PageReclaim, AnEmptyNodeAsksTheShrinkersBeforeItFails) {
  PageFixture f(MakeTopology(1), 10);
  PageHoard hoard(*f.allocator);
  PageWorker worker = f.Worker(0);
  hoard.Fill(worker, 3);
  f.Nodes(worker, 7);
  ASSERT_EQ(hoard.num_calls, 0);

  EXPECT_EQ(f.Nodes(worker, 4), (std::vector<int>{0, 0, 0, -1}));
  EXPECT_EQ(hoard.size(), 0u);
  EXPECT_GE(f.Count(PageCounter::kReclaimRuns), 3u);
  EXPECT_EQ(f.Count(PageCounter::kReclaimedPages), 3u);
  EXPECT_EQ(f.Count(PageCounter::kFailed), 1u);
}

TEST(PageReclaim, AnAllocationThatMayNotWaitReclaimsNothing) {
  PageFixture f(MakeTopology(1), 10);
  PageHoard hoard(*f.allocator);
  PageWorker worker = f.Worker(0);
  hoard.Fill(worker, 10);

  EXPECT_EQ(f.allocator->AllocateBlock(worker, 0, 0, {.no_wait = true}), kNoPage);
  EXPECT_EQ(hoard.num_calls, 0);
  EXPECT_NE(f.allocator->AllocateBlock(worker, 0, 0, {}), kNoPage);
}

TEST(PageReclaim, OverTheLimitTheShrinkersAreAskedThenTheChargeIsRefused) {
  PageAllocatorOptions options;
  options.accounting.limit_bytes = 8 * kTestPage;
  PageFixture f(MakeTopology(1), 100, 1, options);
  PageHoard hoard(*f.allocator);
  PageWorker worker = f.Worker(0);
  hoard.Fill(worker, 3);

  EXPECT_EQ(f.Nodes(worker, 9), (std::vector<int>{0, 0, 0, 0, 0, 0, 0, 0, -1}));
  EXPECT_EQ(hoard.size(), 0u);
  EXPECT_EQ(f.Count(PageCounter::kChargesRefused), 1u);
  EXPECT_EQ(f.allocator->controller().used_bytes(), 8 * kTestPage);
  // Pages themselves are not short.
  EXPECT_NE(f.allocator->AllocateBlock(worker, 0, 0, {.is_accounted = false}), kNoPage);
}

TEST(PageReclaim, AFallbackComesAtTheLowWatermarkAndTheReserveStays) {
  PageFixture f(MakeTopology(2), 4096);
  const Watermarks& marks = f.allocator->node(0).watermarks();
  ASSERT_EQ(marks.min, 128u);
  PageWorker worker = f.Worker(0);
  uint32_t on_local = 0;
  while (f.Nodes(worker, 1).front() == 0) ++on_local;

  EXPECT_EQ(f.allocator->node(0).num_free(), marks.low);
  EXPECT_EQ(on_local, 4096 + marks.high - marks.low);
  EXPECT_EQ(f.Count(PageCounter::kBelowLow), 0u);
  // Both nodes are below low in the end, then below min: the reserve is nobody's.
  while (f.Nodes(worker, 1).front() >= 0) {
  }
  EXPECT_EQ(f.allocator->node(0).num_free(), marks.min);
  EXPECT_EQ(f.allocator->node(1).num_free(), marks.min);
  EXPECT_GT(f.Count(PageCounter::kBelowLow), 0u);
  EXPECT_EQ(f.Count(PageCounter::kBelowMin), 1u);
}

TEST(PageReclaim, ABlockIsFoundAmongThePagesOfTheWorkersList) {
  PageFixture f(MakeTopology(1), 64);
  PageWorker worker = f.Worker(0);
  std::vector<PageId> pages;
  for (int i = 0; i < 64; ++i) pages.push_back(f.allocator->Allocate(worker));
  for (const PageId page : pages) f.allocator->Put(worker, page);

  const PageId block = f.allocator->AllocateBlock(worker, 6, numa::kNoNode, {});
  EXPECT_EQ(block, 0u);
  EXPECT_EQ(f.allocator->AllocateBlock(worker, 0, numa::kNoNode, {}), kNoPage);
  f.allocator->FreeBlock(worker, block, 6);
  EXPECT_EQ(f.NumAllocated(), 0u);
}

TEST(PageReclaim, AnOrderThatCannotBeIsRefused) {
  PageFixture f(MakeTopology(1), 4096);
  PageWorker worker = f.Worker(0);

  EXPECT_EQ(f.allocator->AllocateBlock(worker, 11, numa::kNoNode, {}), kNoPage);
  EXPECT_NE(f.allocator->AllocateBlock(worker, 10, numa::kNoNode, {}), kNoPage);
}

TEST(PageReclaim, OffsetsAreThoseOfTheRegion) {
  PageFixture f(MakeTopology(2), 8);
  for (PageId page = 0; page < 16; ++page) {
    EXPECT_EQ(f.region->base() + f.allocator->OffsetOf(page), f.allocator->Address(page));
    EXPECT_EQ(f.allocator->PageAt(f.allocator->OffsetOf(page) + kTestPage - 1), page);
  }
}

TEST(PageReclaim, ManyWorkersListsKeepAtMostHalfOfANode) {
  constexpr size_t kWorkers = 400;
  PageFixture f(MakeTopology(1), 4000, kWorkers);
  for (int i = 0; i < static_cast<int>(kWorkers); ++i) {
    PageWorker worker = f.Worker(i);
    std::vector<PageId> pages;
    for (int j = 0; j < 10; ++j) pages.push_back(f.allocator->Allocate(worker));
    for (const PageId page : pages) ASSERT_NE(page, kNoPage);
    for (const PageId page : pages) f.allocator->Put(worker, page);
  }

  EXPECT_LE(f.allocator->TakeCensus()->free_on_lists, 2000u);
  EXPECT_EQ(PageAllocator::ListHigh(1 << 20, 400, 400), kListHigh);
}

TEST(PageLists, WorkersOfOneCpuShareWhatItsListWouldHold) {
  EXPECT_EQ(PageAllocator::ListHigh(1 << 20, 2, 2), kListHigh);
  EXPECT_EQ(PageAllocator::ListHigh(1 << 20, 4, 2), kListHigh / 2);
  EXPECT_EQ(PageAllocator::ListHigh(1 << 20, 400, 2), kSharedListHigh);
}

// Runs `count` single steps of random use; everything that stays allocated is in `held`.
struct Held {
  PageId first;
  unsigned order;
  bool is_accounted;
};
void UseAtRandom(PageAllocator& allocator, PageWorker& worker, std::mt19937_64& random, int count,
                 std::vector<Held>& held) {
  for (int step = 0; step < count; ++step) {
    switch (random() % 5) {
      case 0:
      case 1: {
        const PageId page = allocator.Allocate(worker);
        if (page != kNoPage) held.push_back({page, 0, true});
        break;
      }
      case 2: {
        const auto order = static_cast<unsigned>(random() % 5);
        const bool is_accounted = random() % 2 == 0;
        const auto node = static_cast<numa::NodeId>(random() % 3) - 1;
        const PageId block =
            allocator.AllocateBlock(worker, order, node, {.is_accounted = is_accounted});
        if (block != kNoPage) held.push_back({block, order, is_accounted});
        break;
      }
      case 3: {
        PageId pages[20];
        const bool is_accounted = random() % 2 == 0;
        const uint32_t got = allocator.AllocateBulk(worker, {pages, 1 + random() % 20},
                                                    {BulkAlgorithm::kFoldedCarry, is_accounted});
        for (uint32_t i = 0; i < got; ++i) held.push_back({pages[i], 0, is_accounted});
        break;
      }
      case 4:
        for (uint64_t i = random() % 20; i > 0 && !held.empty(); --i) {
          std::swap(held[random() % held.size()], held.back());
          allocator.FreeBlock(worker, held.back().first, held.back().order);
          held.pop_back();
        }
        break;
    }
  }
}

uint64_t Pages(const std::vector<Held>& held, bool only_accounted) {
  uint64_t pages = 0;
  for (const Held& each : held) {
    if (each.is_accounted || !only_accounted) pages += uint64_t{1} << each.order;
  }
  return pages;
}

TEST(PageReclaim, RandomUseConservesPagesAndCharges) {
  const uint64_t seed = TestSeed(20267);
  for (const uint64_t limit : {kNoMemoryLimit, 150 * kTestPage}) {
    for (const char* policy : {"default", "weighted-interleave:0=2,1=3", "bind:1"}) {
      std::mt19937_64 random(seed);
      PageAllocatorOptions options;
      options.accounting.limit_bytes = limit;
      PageFixture f(MakeTopology(2), 300, 1, options);
      PageWorker worker = f.Worker(0, policy);
      std::vector<Held> held;
      for (int round = 0; round < 40; ++round) {
        UseAtRandom(*f.allocator, worker, random, 50, held);
        ASSERT_EQ(f.NumAllocated(), Pages(held, false)) << "seed " << seed;
        ASSERT_EQ(f.allocator->controller().used_bytes(), Pages(held, true) * kTestPage);
        ASSERT_EQ(f.Count(PageCounter::kAllocated) - f.Count(PageCounter::kFreed),
                  Pages(held, false));
      }
      for (const Held& each : held) f.allocator->FreeBlock(worker, each.first, each.order);
      EXPECT_EQ(f.NumAllocated(), 0u);
      EXPECT_EQ(f.allocator->controller().used_bytes(), 0u);
      EXPECT_LE(f.allocator->controller().peak_bytes(), limit);
    }
  }
}

TEST(PageReclaim, FailingTheIthAllocationLosesNothingForEveryI) {
  const uint64_t seed = TestSeed(20268);
  uint64_t num_allocations = 0;
  for (uint64_t i = 1; i == 1 || i <= num_allocations + 1; ++i) {
    std::mt19937_64 random(seed);
    PageFixture f(MakeTopology(2), 200);
    PageWorker worker = f.Worker(0, "interleave:0,1");
    AllocationFailures failures{i, 1};
    f.allocator->InjectFailures(&failures);
    std::vector<Held> held;
    UseAtRandom(*f.allocator, worker, random, 60, held);
    f.allocator->InjectFailures(nullptr);
    num_allocations = std::max(num_allocations, failures.num_allocations.load());

    ASSERT_EQ(f.NumAllocated(), Pages(held, false)) << i;
    ASSERT_EQ(f.allocator->controller().used_bytes(), Pages(held, true) * kTestPage) << i;
  }
  EXPECT_GT(num_allocations, 50u);
}

TEST(PageReclaim, ManyWorkersAtOnceConservePagesAndCharges) {
  constexpr int kWorkers = 4;
  const uint64_t seed = TestSeed(20269);
  PageAllocatorOptions options;
  options.accounting.limit_bytes = 900 * kTestPage;
  PageFixture f(MakeTopology(2), 600, kWorkers, options);
  std::vector<std::vector<Held>> held(kWorkers);
  std::vector<std::thread> threads;
  for (int i = 0; i < kWorkers; ++i) {
    threads.emplace_back([&, i] {
      std::mt19937_64 random(seed + static_cast<uint64_t>(i));
      PageWorker worker = f.Worker(i, i % 2 == 0 ? "default" : "weighted-interleave:0=1,1=2");
      UseAtRandom(*f.allocator, worker, random, 20000, held[static_cast<size_t>(i)]);
    });
  }
  for (std::thread& thread : threads) thread.join();

  std::vector<Held> all;
  for (const auto& each : held) all.insert(all.end(), each.begin(), each.end());
  std::set<PageId> pages;
  for (const Held& each : all) {
    for (PageId page = each.first; page < each.first + (PageId{1} << each.order); ++page) {
      EXPECT_TRUE(pages.insert(page).second) << "seed " << seed;
    }
  }
  EXPECT_EQ(f.NumAllocated(), pages.size());
  EXPECT_EQ(f.allocator->controller().used_bytes(), Pages(all, true) * kTestPage);
  EXPECT_LE(f.allocator->controller().peak_bytes(), 900 * kTestPage);
}

}  // namespace
}  // namespace pipeyard::memory
