// The single-node fastpath's rules (kernel-mechanisms.md D, F1-F5, and H14).
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <thread>

#include "workloads/memory/page_testing.h"

namespace pipeyard::memory {
namespace {

constexpr AllocationPath kPaths[] = {AllocationPath::kFault, AllocationPath::kPage,
                                     AllocationPath::kBulk, AllocationPath::kSlab};

PageAllocatorOptions WithFastpath(const FastpathSwitches& switches = FastpathSwitches::All()) {
  PageAllocatorOptions options;
  options.fastpath = switches;
  return options;
}

bool IsAnyOn(const PageFixture& f) {
  for (const AllocationPath path : kPaths) {
    if (f.allocator->IsFastpathOn(path)) return true;
  }
  return false;
}

TEST(PageFastpath, F1OnOnlyWhereOneRealNodeHasMemory) {
  EXPECT_TRUE(IsAnyOn(PageFixture(MakeTopology(1), 10, 1, WithFastpath())));
  EXPECT_TRUE(
      IsAnyOn(PageFixture(MakeTopology({{false, true}, {true, true}}), 10, 1, WithFastpath())));
  EXPECT_FALSE(IsAnyOn(PageFixture(MakeTopology(2), 10, 1, WithFastpath())));
  EXPECT_FALSE(IsAnyOn(PageFixture(MakeTopology(1), 10)));
}

TEST(PageFastpath, F1NeverOnEmulatedNodesNotEvenOnOne) {
  for (const int num_nodes : {1, 2}) {
    const numa::Topology topology =
        MakeTopology(std::vector<TestNode>(static_cast<size_t>(num_nodes)), /*is_emulated=*/true);
    PageFixture f(topology, 10, 1, WithFastpath());
    EXPECT_FALSE(IsAnyOn(f));
    PageWorker worker = f.Worker(0);
    ASSERT_NE(f.allocator->Allocate(worker), kNoPage);
    EXPECT_EQ(f.Count(PageCounter::kFastpathPage), 0u);
  }
}

TEST(PageFastpath, F2OnlineNodeTurnsEveryPathOffBeforeItReturns) {
  PageFixture f(MakeTopology(1), 10, 1, WithFastpath());
  ASSERT_TRUE(f.allocator->OnlineNode(1).ok());

  EXPECT_FALSE(IsAnyOn(f));
  EXPECT_EQ(f.allocator->gates().num_flips.load(), 1u);
}

TEST(PageFastpath, F2EvenWhenTheNewNodesArenaCannotBeUsed) {
  PageAllocatorOptions options = WithFastpath();
  options.offline_nodes = {{1, 10 * kTestPage}};
  PageFixture f(MakeTopology(1), 10, 1, options);
  f.kernel.bind_error = EPERM;

  EXPECT_EQ(f.allocator->OnlineNode(1).code(), StatusCode::kFailedPrecondition);
  EXPECT_FALSE(IsAnyOn(f));
  PageWorker worker = f.Worker(0, "bind:1");
  EXPECT_EQ(f.Nodes(worker, 1), (std::vector<int>{0}));
}

TEST(PageFastpath, F2AReservedNodeGivesPagesOnceItIsOnline) {
  PageAllocatorOptions options = WithFastpath();
  options.offline_nodes = {{3, 10 * kTestPage}};
  PageFixture f(MakeTopology(1), 10, 1, options);
  PageWorker worker = f.Worker(0, "preferred:3");
  EXPECT_EQ(f.Nodes(worker, 2), (std::vector<int>{0, 0}));
  EXPECT_EQ(f.allocator->TakeCensus()->total, 10u);
  ASSERT_EQ(f.kernel.bound.size(), 1u);

  ASSERT_TRUE(f.allocator->OnlineNode(3).ok());
  EXPECT_EQ(f.kernel.bound.at(1).node, 3);
  EXPECT_EQ(f.Nodes(worker, 2), (std::vector<int>{3, 3}));
  EXPECT_EQ(f.allocator->TakeCensus()->total, 20u);
  EXPECT_EQ(f.NumAllocated(), 4u);
  worker.policy.SetPolicy(*ParsePolicy("interleave:0,3"));
  EXPECT_EQ(f.Nodes(worker, 3), (std::vector<int>{0, 3, 0}));
  // A second report of the same node adds nothing.
  ASSERT_TRUE(f.allocator->OnlineNode(3).ok());
  EXPECT_EQ(f.allocator->TakeCensus()->total, 20u);
}

// One random run on one node; what it sees must not depend on the switch.
std::vector<std::string> Trace(const PageAllocatorOptions& options, const char* policy,
                               uint64_t seed) {
  std::mt19937_64 random(seed);
  const numa::Topology topology = MakeTopology({{false, true}, {true, true}});
  PageFixture f(topology, 900, 1, options);
  PageWorker worker = f.Worker(0, policy);
  std::vector<PageId> held;
  std::vector<std::string> trace;
  const auto keep = [&](PageId page) {
    trace.push_back(page == kNoPage ? "none" : std::to_string(f.allocator->NodeOf(page)));
    if (page != kNoPage) held.push_back(page);
  };
  for (int step = 0; step < 400; ++step) {
    switch (random() % 6) {
      case 0:
      case 1:
        keep(f.allocator->Allocate(worker));
        break;
      case 2:
        keep(f.allocator->AllocateForFault(worker, worker.policy.policy, random() % 100));
        break;
      case 3: {
        std::vector<PageId> pages(1 + random() % 6);
        const uint32_t got = f.allocator->AllocateBulk(
            worker, pages, {BulkAlgorithm::kSplitCarry, random() % 2 == 0});
        trace.push_back("bulk of " + std::to_string(got));
        for (uint32_t i = 0; i < got; ++i) keep(pages[i]);
        break;
      }
      case 4:
        for (int i = 0; i < 3 && !held.empty(); ++i) {
          f.allocator->Put(worker, held.back());
          held.pop_back();
        }
        break;
      case 5:
        if (random() % 8 == 0) {
          f.allocator->SetCpuset(numa::NodeMask::FromBits(random() % 2 == 0 ? 1 : 3));
        }
        break;
    }
    trace.push_back("charged " + std::to_string(f.allocator->controller().used_bytes()));
  }
  return trace;
}

TEST(PageFastpath, F3ResultsAreThoseOfTheLongWay) {
  const uint64_t seed = TestSeed(20266);
  for (const char* policy : {"default", "local", "preferred:1", "preferred-many:1", "bind:1",
                             "interleave:1", "weighted-interleave:1=3"}) {
    for (const uint64_t limit : {kNoMemoryLimit, 20 * kTestPage}) {
      PageAllocatorOptions off;
      off.accounting.limit_bytes = limit;
      PageAllocatorOptions on = off;
      on.fastpath = FastpathSwitches::All();
      EXPECT_EQ(Trace(off, policy, seed), Trace(on, policy, seed)) << policy;
    }
  }
}

TEST(PageFastpath, F3OutOfMemoryTheCpusetAndTheLimitRefuseAllTheSame) {
  PageAllocatorOptions options = WithFastpath();
  options.accounting.limit_bytes = 5 * kTestPage;
  PageFixture limited(MakeTopology(1), 10, 1, options);
  PageWorker worker = limited.Worker(0);
  EXPECT_EQ(limited.Nodes(worker, 6), (std::vector<int>{0, 0, 0, 0, 0, -1}));
  EXPECT_EQ(limited.Count(PageCounter::kChargesRefused), 1u);

  PageFixture f(MakeTopology(1), 3, 1, WithFastpath());
  worker = f.Worker(0);
  EXPECT_EQ(f.Nodes(worker, 2), (std::vector<int>{0, 0}));
  f.allocator->SetCpuset(numa::NodeMask::Of({1}));
  EXPECT_EQ(f.Nodes(worker, 1), (std::vector<int>{-1}));
  f.allocator->SetCpuset(numa::NodeMask::Of({0}));
  EXPECT_EQ(f.Nodes(worker, 2), (std::vector<int>{0, -1}));
  EXPECT_EQ(f.Count(PageCounter::kFailed), 2u);
}

TEST(PageFastpath, F3InterleavingStandsStillAndGoesOnAfterTheFlip) {
  PageAllocatorOptions options = WithFastpath();
  options.offline_nodes = {{1, 10 * kTestPage}};
  PageFixture f(MakeTopology(1), 20, 1, options);
  PageWorker worker = f.Worker(0, "weighted-interleave:0=3,1=2");
  worker.policy.state = {0, 2};
  std::vector<PageId> bulk(5);
  f.Nodes(worker, 5);
  ASSERT_EQ(f.allocator->AllocateBulk(worker, bulk, {BulkAlgorithm::kSplitCarry, false}), 5u);
  EXPECT_EQ(worker.policy.state, (InterleaveState{0, 2}));

  ASSERT_TRUE(f.allocator->OnlineNode(1).ok());
  EXPECT_EQ(f.Nodes(worker, 6), (std::vector<int>{0, 0, 1, 1, 0, 0}));
}

TEST(PageFastpath, F4TheOnlyNodeNeedNotBeNodeZero) {
  PageFixture f(MakeTopology({{false, true}, {true, true}, {false, true}}), 20, 3, WithFastpath());
  for (int i = 0; i < 3; ++i) {
    PageWorker worker = f.Worker(i);
    std::vector<PageId> bulk(2);
    EXPECT_EQ(f.Nodes(worker, 1), (std::vector<int>{1}));
    EXPECT_EQ(f.allocator->NodeOf(f.allocator->AllocateForFault(worker, Policy{}, 0)), 1);
    ASSERT_EQ(f.allocator->AllocateBulk(worker, bulk, {BulkAlgorithm::kSplitCarry, false}), 2u);
    EXPECT_EQ(f.allocator->NodeOf(bulk[0]), 1);
  }
  EXPECT_EQ(f.Count(PageCounter::kFastpathPage), 3u);
  EXPECT_EQ(f.kernel.bound.at(0).node, 1);
}

TEST(PageFastpath, F5EachPathHasItsOwnSwitchAndCounter) {
  for (const AllocationPath on : kPaths) {
    FastpathSwitches switches;
    switches.fault = on == AllocationPath::kFault;
    switches.page = on == AllocationPath::kPage;
    switches.bulk = on == AllocationPath::kBulk;
    switches.slab = on == AllocationPath::kSlab;
    PageFixture f(MakeTopology(1), 100, 1, WithFastpath(switches));
    PageWorker worker = f.Worker(0);
    std::vector<PageId> bulk(4);
    ASSERT_NE(f.allocator->Allocate(worker), kNoPage);
    ASSERT_NE(f.allocator->AllocateForFault(worker, Policy{}, 0), kNoPage);
    ASSERT_EQ(f.allocator->AllocateBulk(worker, bulk, {BulkAlgorithm::kSplitCarry, false}), 4u);
    ASSERT_NE(f.allocator->AllocateBlock(worker, 1, numa::kNoNode, {}), kNoPage);

    for (const AllocationPath path : kPaths) {
      EXPECT_EQ(f.allocator->IsFastpathOn(path), path == on);
    }
    EXPECT_EQ(f.Count(PageCounter::kFastpathFault), switches.fault ? 1u : 0u);
    EXPECT_EQ(f.Count(PageCounter::kFastpathPage), switches.page ? 1u : 0u);
    EXPECT_EQ(f.Count(PageCounter::kFastpathBlock), switches.page ? 2u : 0u);
    EXPECT_EQ(f.Count(PageCounter::kFastpathBulk), switches.bulk ? 4u : 0u);
    EXPECT_EQ(f.Count(PageCounter::kFaultPages), 1u);
    EXPECT_EQ(f.Count(PageCounter::kBulkPages), 4u);
    EXPECT_EQ(f.Count(PageCounter::kBlockPages), 2u);
    EXPECT_EQ(f.Count(PageCounter::kAllocated), 8u);
  }
}

// A worker of the storm: allocates until it has seen the flip and then `kAfter` pages more. Returns
// how many of those passed the policy by.
struct Storm {
  std::atomic<uint32_t> has_returned;  // of OnlineNode()
  std::atomic<uint32_t> num_started;
};
constexpr int kAfter = 2000;

uint64_t RunStorm(PageAllocator& allocator, Storm& storm, int index) {
  PageWorker worker = allocator.MakeWorker(index);
  worker.policy.SetPolicy(*ParsePolicy("bind:1"));
  storm.num_started.fetch_add(1);
  uint64_t num_bypassed = 0;
  for (int after = 0; after < kAfter;) {
    const bool is_after = storm.has_returned.load(std::memory_order_acquire) != 0;
    const uint64_t before = worker.counters->Get(PageCounter::kFastpathPage);
    const PageId page = allocator.Allocate(worker);
    if (page == kNoPage) return UINT64_MAX;
    const bool is_fast = worker.counters->Get(PageCounter::kFastpathPage) != before;
    if (is_after) {
      ++after;
      if (is_fast || allocator.NodeOf(page) != 1) ++num_bypassed;
    }
    allocator.Put(worker, page);
  }
  return num_bypassed;
}

PageAllocatorOptions StormOptions() {
  PageAllocatorOptions options = WithFastpath();
  options.offline_nodes = {{1, 4096 * kTestPage}};
  return options;
}

TEST(PageFastpath, H14AFlipInAnAllocationStormOfThreadsIsNeverPassedBy) {
  constexpr int kWorkers = 4;
  PageFixture f(MakeTopology(1), 4096, kWorkers, StormOptions());
  Storm storm{};
  std::vector<uint64_t> num_bypassed(kWorkers);
  std::vector<std::thread> threads;
  for (int i = 0; i < kWorkers; ++i) {
    threads.emplace_back(
        [&, i] { num_bypassed[static_cast<size_t>(i)] = RunStorm(*f.allocator, storm, i); });
  }
  ASSERT_TRUE(Eventually([&] { return storm.num_started.load() == kWorkers; }));
  ASSERT_TRUE(Eventually([&] { return f.Count(PageCounter::kFastpathPage) > 10000; }));
  ASSERT_TRUE(f.allocator->OnlineNode(1).ok());
  storm.has_returned.store(1, std::memory_order_release);
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(num_bypassed, std::vector<uint64_t>(kWorkers, 0));
  EXPECT_EQ(f.NumAllocated(), 0u);
}

TEST(PageFastpath, H14AFlipInAnAllocationStormOfProcessesIsNeverPassedBy) {
  constexpr int kWorkers = 3;
  PageFixture f(MakeTopology(1), 4096, kWorkers, StormOptions());
  RegionLayout layout;
  const uint64_t offset = layout.Add(sizeof(Storm), kCacheLine);
  const std::unique_ptr<Region> shared = *Region::Create(layout);
  Storm& storm = *shared->At<Storm>(offset);
  std::vector<pid_t> children;
  for (int i = 0; i < kWorkers; ++i) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) ::_exit(RunStorm(*f.allocator, storm, i) == 0 ? 0 : 1);
    children.push_back(child);
  }
  EXPECT_TRUE(Eventually([&] { return storm.num_started.load() == kWorkers; }));
  EXPECT_TRUE(Eventually([&] { return f.Count(PageCounter::kFastpathPage) > 10000; }));
  EXPECT_TRUE(f.allocator->OnlineNode(1).ok());
  storm.has_returned.store(1, std::memory_order_release);
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(f.NumAllocated(), 0u);
}

TEST(PageFastpath, ANodeThatNobodyReservedOnlyTurnsThePathsOff) {
  PageFixture f(MakeTopology(1), 10, 1, WithFastpath());
  ASSERT_TRUE(f.allocator->OnlineNode(5).ok());
  PageWorker worker = f.Worker(0, "preferred:5");

  EXPECT_EQ(f.Nodes(worker, 2), (std::vector<int>{0, 0}));
  EXPECT_EQ(f.Count(PageCounter::kFastpathPage), 0u);
  EXPECT_EQ(f.Count(PageCounter::kAllocated), 2u);
}

}  // namespace
}  // namespace pipeyard::memory
