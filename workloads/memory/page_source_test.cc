// The on-demand page source: free pages have no memory, allocated ones do.
#include "workloads/memory/page_source.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cstring>

#include "workloads/memory/page_testing.h"

namespace pipeyard::memory {
namespace {

PageAllocatorOptions OnDemand() {
  PageAllocatorOptions options;
  options.source = PageSource::kOnDemand;
  return options;
}

// Pages of the arenas that have memory. The region is shared memory: mincore() tells about the
// object, whoever touched it.
uint64_t NumPresent(const PageFixture& f) {
  uint64_t count = 0;
  for (const numa::PageRange& arena : f.allocator->arenas()) {
    std::vector<unsigned char> pages(arena.size_bytes / kTestPage);
    EXPECT_EQ(::mincore(arena.address, arena.size_bytes, pages.data()), 0);
    for (const unsigned char page : pages) count += page & 1;
  }
  return count;
}

TEST(PageSource, OnDemandOnlyAllocatedPagesHaveMemory) {
  PageFixture f(MakeTopology(2), 300, 1, OnDemand());
  EXPECT_EQ(NumPresent(f), 0u);
  PageWorker worker = f.Worker(0);
  std::vector<PageId> pages;
  for (int i = 0; i < 100; ++i) pages.push_back(f.allocator->Allocate(worker));
  EXPECT_EQ(NumPresent(f), 100u);

  for (int i = 0; i < 60; ++i) f.allocator->Put(worker, pages[static_cast<size_t>(i)]);
  EXPECT_EQ(NumPresent(f), 40u);
  EXPECT_EQ(f.Count(PageCounter::kGivenBack), 60u);
  EXPECT_EQ(f.Count(PageCounter::kDemandFaults), 100u);
}

TEST(PageSource, OnDemandEveryKindOfAllocationFaultsWhereItAllocates) {
  PageFixture f(MakeTopology(1), 300, 1, OnDemand());
  PageWorker worker = f.Worker(0);
  std::vector<PageId> bulk(8);
  ASSERT_EQ(f.allocator->AllocateBulk(worker, bulk, {BulkAlgorithm::kSplitCarry, false}), 8u);
  EXPECT_EQ(NumPresent(f), 8u);
  const PageId block = f.allocator->AllocateBlock(worker, 4, numa::kNoNode, {});
  EXPECT_EQ(NumPresent(f), 24u);
  ASSERT_NE(f.allocator->AllocateForFault(worker, Policy{}, 0), kNoPage);
  EXPECT_EQ(NumPresent(f), 25u);
  EXPECT_EQ(f.Count(PageCounter::kDemandFaults), 25u);

  f.allocator->FreeBulk(worker, bulk);
  f.allocator->FreeBlock(worker, block, 4);
  EXPECT_EQ(NumPresent(f), 1u);
  EXPECT_EQ(f.Count(PageCounter::kGivenBack), 24u);
  EXPECT_EQ(f.Count(PageCounter::kGiveBackFailures), 0u);
}

TEST(PageSource, OnDemandTheSamePageFaultsEachTime) {
  PageFixture f(MakeTopology(1), 10, 1, OnDemand());
  PageWorker worker = f.Worker(0);
  rusage before{};
  rusage after{};
  ::getrusage(RUSAGE_THREAD, &before);
  for (int i = 0; i < 1000; ++i) {
    const PageId page = f.allocator->Allocate(worker);
    EXPECT_EQ(*f.allocator->Address(page), std::byte{0});
    std::memset(f.allocator->Address(page), 0xff, kTestPage);
    f.allocator->Put(worker, page);
  }
  ::getrusage(RUSAGE_THREAD, &after);

  EXPECT_EQ(f.Count(PageCounter::kDemandFaults), 1000u);
  EXPECT_GE(after.ru_minflt - before.ru_minflt, 1000);
}

TEST(PageSource, OnDemandASharedPageKeepsItsMemoryUntilTheLastHolderLeaves) {
  PageFixture f(MakeTopology(1), 10, 1, OnDemand());
  PageWorker worker = f.Worker(0);
  const PageId page = f.allocator->Allocate(worker);
  std::memset(f.allocator->Address(page), 0x5a, kTestPage);
  f.allocator->AddReference(page);

  f.allocator->Put(worker, page);
  EXPECT_EQ(*f.allocator->Address(page), std::byte{0x5a});
  f.allocator->Put(worker, page);
  EXPECT_EQ(NumPresent(f), 0u);
}

TEST(PageSource, ResidentPagesKeepTheirMemoryWhileFree) {
  PageFixture f(MakeTopology(1), 100);
  PageWorker worker = f.Worker(0);
  EXPECT_EQ(NumPresent(f), 100u);
  f.allocator->Put(worker, f.allocator->Allocate(worker));

  EXPECT_EQ(NumPresent(f), 100u);
  EXPECT_EQ(f.Count(PageCounter::kDemandFaults), 0u);
  EXPECT_EQ(f.Count(PageCounter::kGivenBack), 0u);
}

TEST(PageSource, OnDemandTheFastpathStaysOnButTouchesItsPages) {
  PageAllocatorOptions options = OnDemand();
  options.fastpath = FastpathSwitches::All();
  PageFixture f(MakeTopology(1), 100, 1, options);
  PageWorker worker = f.Worker(0);
  ASSERT_NE(f.allocator->Allocate(worker), kNoPage);

  EXPECT_EQ(f.Count(PageCounter::kFastpathPage), 1u);
  EXPECT_EQ(f.Count(PageCounter::kDemandFaults), 1u);
}

}  // namespace
}  // namespace pipeyard::memory
