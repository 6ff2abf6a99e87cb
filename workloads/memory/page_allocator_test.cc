#include "workloads/memory/page_allocator.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "workloads/memory/testing.h"
#include "workloads/numa/fake_numa_kernel.h"

namespace pipeyard::memory {
namespace {

constexpr uint64_t kPage = 4096;

numa::Topology OneNode() {
  return *numa::Topology::Make({{0, {0, 1}, int64_t{1} << 30, {10}}}, {0, 1}, false);
}

numa::Topology TwoNodes() {
  return *numa::Topology::Make(
      {{0, {0}, int64_t{1} << 30, {10, 21}}, {1, {1}, int64_t{1} << 30, {21, 10}}}, {0, 1}, false);
}

// An allocator of `pages` pages a node; worker i sits on CPU i.
struct Fixture {
  explicit Fixture(const numa::Topology& topology, uint64_t pages,
                   std::vector<numa::CpuId> cpus = {0, 1}) {
    options.arena_bytes = pages * kPage;
    options.worker_cpus = std::move(cpus);
    RegionLayout layout;
    Result<PageAllocator::Plan> plan = PageAllocator::AddTo(layout, options, topology);
    status = plan.status();
    if (!plan.ok()) return;
    PageAllocator::AddArenas(layout, options, *plan);
    region = *Region::Create(layout);
    Result<std::unique_ptr<PageAllocator>> result =
        PageAllocator::Create(*region, *plan, options, topology, kernel);
    status = result.status();
    if (result.ok()) allocator = std::move(result).value();
  }
  uint64_t Count(PageCounter counter) const {
    return allocator->Counters()[static_cast<size_t>(counter)].value;
  }

  PageAllocatorOptions options;
  numa::FakeNumaKernel kernel;
  std::unique_ptr<Region> region;
  std::unique_ptr<PageAllocator> allocator;
  Status status;
};

TEST(PageAllocator, GivesEachPageOnceUntilNoneIsLeft) {
  Fixture f(OneNode(), 200, {0});
  PageWorker worker = f.allocator->MakeWorker(0);
  std::set<PageId> pages;
  for (PageId page; (page = f.allocator->Allocate(worker)) != kNoPage;) pages.insert(page);

  EXPECT_EQ(pages.size(), 200u);
  EXPECT_EQ(f.Count(PageCounter::kFailed), 1u);
  const PageCensus census = *f.allocator->TakeCensus();
  EXPECT_EQ(census.num_allocated, 200u);
  EXPECT_EQ(census.free_on_lists + census.free_on_nodes, 0u);
}

TEST(PageAllocator, AFreedPageIsTheNextOne) {
  Fixture f(OneNode(), 100, {0});
  PageWorker worker = f.allocator->MakeWorker(0);
  const PageId page = f.allocator->Allocate(worker);
  f.allocator->Put(worker, page);

  EXPECT_EQ(f.allocator->Allocate(worker), page);
}

TEST(PageAllocator, PagesMoveBetweenWorkersInBatches) {
  Fixture f(OneNode(), 1000);
  PageWorker writer = f.allocator->MakeWorker(0);
  PageWorker reader = f.allocator->MakeWorker(1);
  for (int i = 0; i < 1000; ++i) f.allocator->Put(reader, f.allocator->Allocate(writer));

  // 1000 pages in batches of 63; the reader keeps up to 126.
  EXPECT_EQ(f.Count(PageCounter::kRefills), (1000 + kListBatch - 1) / kListBatch);
  EXPECT_EQ(f.Count(PageCounter::kDrains), (1000 - kListHigh + kListBatch - 1) / kListBatch);
  const PageCensus census = *f.allocator->TakeCensus();
  EXPECT_EQ(census.num_allocated, 0u);
  EXPECT_EQ(census.free_on_lists + census.free_on_nodes, 1000u);
}

TEST(PageAllocator, BindsEachArenaToItsNode) {
  Fixture f(TwoNodes(), 16);

  ASSERT_EQ(f.kernel.bound.size(), 2u);
  EXPECT_EQ(f.kernel.bound[0].node, 0);
  EXPECT_EQ(f.kernel.bound[1].node, 1);
  EXPECT_EQ(f.kernel.bound[1].address, f.allocator->arenas()[1].address);
  EXPECT_EQ(f.kernel.bound[1].size_bytes, 16 * kPage);
  EXPECT_TRUE(f.allocator->is_bound());
}

TEST(PageAllocator, SeveralNodesThatCannotBeBoundAreAnError) {
  Fixture f(OneNode(), 16);
  f.kernel.bind_error = EPERM;
  const numa::Topology topology = TwoNodes();
  RegionLayout layout;
  PageAllocator::Plan plan = *PageAllocator::AddTo(layout, f.options, topology);
  PageAllocator::AddArenas(layout, f.options, plan);
  const auto region = *Region::Create(layout);

  const Status status =
      PageAllocator::Create(*region, plan, f.options, topology, f.kernel).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), "engine: bind the arena of node 0: EPERM (Operation not permitted)");
}

TEST(PageAllocator, OneNodeThatCannotBeBoundIsSaid) {
  const numa::Topology topology = OneNode();
  Fixture f(topology, 16);
  f.kernel.bind_error = EPERM;
  RegionLayout layout;
  PageAllocator::Plan plan = *PageAllocator::AddTo(layout, f.options, topology);
  PageAllocator::AddArenas(layout, f.options, plan);
  const auto region = *Region::Create(layout);
  const auto allocator = *PageAllocator::Create(*region, plan, f.options, topology, f.kernel);

  EXPECT_FALSE(allocator->is_bound());
}

TEST(PageAllocator, AllocatesLocallyAndFallsBackByDistance) {
  Fixture f(TwoNodes(), 10);
  PageWorker worker = f.allocator->MakeWorker(1);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(f.allocator->NodeOf(f.allocator->Allocate(worker)), 1);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(f.allocator->NodeOf(f.allocator->Allocate(worker)), 0);

  EXPECT_EQ(f.allocator->Allocate(worker), kNoPage);
  EXPECT_EQ(f.Count(PageCounter::kFallback), 10u);
}

TEST(PageAllocator, AMaskEndsTheFallback) {
  Fixture f(TwoNodes(), 10);
  PageWorker worker = f.allocator->MakeWorker(0);
  const PagePlacement only_one{0, numa::NodeMask::Of({1})};
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(f.allocator->NodeOf(f.allocator->Allocate(worker, only_one)), 1);
  }

  EXPECT_EQ(f.allocator->Allocate(worker, only_one), kNoPage);
  EXPECT_EQ(f.allocator->NodeOf(f.allocator->Allocate(worker)), 0);
  EXPECT_EQ(f.allocator->Allocate(worker, only_one), kNoPage);
}

TEST(PageAllocator, FreedPagesGoBackToTheirNode) {
  Fixture f(TwoNodes(), 10);
  PageWorker worker = f.allocator->MakeWorker(0);
  const PagePlacement remote{1, numa::NodeMask::Of({0, 1})};
  f.allocator->Put(worker, f.allocator->Allocate(worker, remote));

  EXPECT_EQ(f.allocator->NodeOf(f.allocator->Allocate(worker)), 0);
  EXPECT_EQ(f.allocator->NodeOf(f.allocator->Allocate(worker, remote)), 1);
}

TEST(PageAllocator, EmulatedNodesAreNotBoundAndKeepTheirSize) {
  numa::EmulatedTopology description;
  description.nodes = {{1, 4 * static_cast<int64_t>(kPage)}, {1, 0}, {0, int64_t{1} << 30}};
  const numa::Topology topology = *numa::MakeEmulated(description, OneNode());
  Fixture f(topology, 8);
  PageWorker worker = f.allocator->MakeWorker(1);

  EXPECT_TRUE(f.kernel.bound.empty());
  EXPECT_FALSE(f.allocator->is_bound());
  EXPECT_EQ(f.allocator->num_pages(), 12u);
  // CPU 1 is on the memoryless node 1: at equal distance the node without CPUs is nearer.
  EXPECT_EQ(f.allocator->NodeOf(f.allocator->Allocate(worker)), 2);
}

TEST(PageAllocator, ASharedPageIsFreedByItsLastHolder) {
  Fixture f(OneNode(), 10, {0});
  PageWorker worker = f.allocator->MakeWorker(0);
  const PageId page = f.allocator->Allocate(worker);
  f.allocator->AddReference(page);

  EXPECT_FALSE(f.allocator->IsUnshared(page));
  f.allocator->Put(worker, page);
  EXPECT_EQ(f.allocator->TakeCensus()->num_allocated, 1u);
  EXPECT_TRUE(f.allocator->IsUnshared(page));
  f.allocator->Put(worker, page);
  EXPECT_EQ(f.allocator->TakeCensus()->num_allocated, 0u);
  EXPECT_TRUE(f.allocator->IsUnshared(f.allocator->Allocate(worker)));
}

TEST(PageAllocator, FailsTheAllocationsThatATestNames) {
  Fixture f(OneNode(), 10, {0});
  PageWorker worker = f.allocator->MakeWorker(0);
  AllocationFailures failures{2, 2};
  f.allocator->InjectFailures(&failures);
  bool got[5];
  for (bool& page : got) page = f.allocator->Allocate(worker) != kNoPage;

  EXPECT_TRUE(got[0] && !got[1] && !got[2] && got[3] && got[4]);
  EXPECT_EQ(f.Count(PageCounter::kFailed), 2u);
}

TEST(PageAllocator, TheCensusNoticesAPageFreedTwice) {
  Fixture f(OneNode(), 10, {0});
  PageWorker worker = f.allocator->MakeWorker(0);
  const PageId page = f.allocator->Allocate(worker);
  f.allocator->Put(worker, page);
  f.allocator->Put(worker, page);

  EXPECT_EQ(f.allocator->TakeCensus().status().code(), StatusCode::kInternal);
}

TEST(PageAllocator, RefusesPageSizesAndCpusThatCannotBe) {
  for (const uint64_t page_bytes :
       {uint64_t{0}, uint64_t{2048}, uint64_t{5000}, uint64_t{4} << 20}) {
    RegionLayout layout;
    PageAllocatorOptions options;
    options.page_bytes = page_bytes;
    options.arena_bytes = 1 << 20;
    options.worker_cpus = {0};
    EXPECT_EQ(PageAllocator::AddTo(layout, options, OneNode()).status().code(),
              StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(Fixture(OneNode(), 10, {7}).status.message(),
            "worker on CPU 7: no such CPU in the topology");
  EXPECT_EQ(Fixture(OneNode(), 0, {0}).status.code(), StatusCode::kInvalidArgument);
}

TEST(PageAllocator, WorkersAtOnceLoseNoPage) {
  Fixture f(TwoNodes(), 300, {0, 1, 0, 1});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&f, i] {
      PageWorker worker = f.allocator->MakeWorker(i);
      std::vector<PageId> held;
      for (int round = 0; round < 200; ++round) {
        for (int j = 0; j < 130; ++j) {
          const PageId page = f.allocator->Allocate(worker);
          if (page != kNoPage) held.push_back(page);
        }
        while (!held.empty()) {
          f.allocator->Put(worker, held.back());
          held.pop_back();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  const Result<PageCensus> census = f.allocator->TakeCensus();
  ASSERT_TRUE(census.ok()) << census.status().ToString();
  EXPECT_EQ(census->num_allocated, 0u);
  EXPECT_EQ(f.Count(PageCounter::kAllocated), f.Count(PageCounter::kFreed));
}

}  // namespace
}  // namespace pipeyard::memory
