// The remote-reuse gate, kernel-mechanisms.md B1, and reclaim.
#include <gtest/gtest.h>

#include "workloads/memory/object_testing.h"

namespace pipeyard::memory {
namespace {

constexpr uint32_t kInfo = 192;

ObjectAllocatorOptions WithRatio(int defrag_ratio, uint64_t seed = 1) {
  ObjectAllocatorOptions options;
  options.defrag_ratio = defrag_ratio;
  options.seed = seed;
  return options;
}

// The share of `count` misses that the gate lets look at other nodes. Nothing is left anywhere, so
// that each allocation misses: once for its sheaf, once for itself.
double ShareThroughGate(int defrag_ratio, int count, uint64_t seed) {
  ObjectFixture f(2, {0}, WithRatio(defrag_ratio, seed), 16);
  while (f.objects->Allocate(f.workers[0], kInfo) != kNoObject) {
  }
  const uint64_t tried = f.Count(ObjectCounter::kRemoteReuseTried);
  const uint64_t refused = f.Count(ObjectCounter::kRemoteReuseRefused);
  for (int i = 0; i < count / 2; ++i)
    EXPECT_EQ(f.objects->Allocate(f.workers[0], kInfo), kNoObject);
  const uint64_t open = f.Count(ObjectCounter::kRemoteReuseTried) - tried;
  EXPECT_EQ(open + f.Count(ObjectCounter::kRemoteReuseRefused) - refused,
            static_cast<uint64_t>(count));
  return static_cast<double>(open) / count;
}

TEST(RemoteReuseGate, LetsAsManyMissesPassAsTheKernels) {
  const uint64_t seed = TestSeed(1);
  // (10 * ratio + 1) / 1024; the bounds are five standard deviations of 40,000 throws.
  EXPECT_NEAR(ShareThroughGate(100, 40'000, seed), 1001.0 / 1024, 0.004);
  EXPECT_NEAR(ShareThroughGate(50, 40'000, seed), 501.0 / 1024, 0.0125);
  EXPECT_NEAR(ShareThroughGate(1, 40'000, seed), 11.0 / 1024, 0.003);
}

TEST(RemoteReuseGate, IsNeverOpenAtRatioZero) {
  EXPECT_EQ(ShareThroughGate(0, 10'000, TestSeed(1)), 0.0);
}

TEST(RemoteReuseGate, ThrowsTheSameDiceForTheSameSeed) {
  EXPECT_EQ(ShareThroughGate(50, 1000, 7), ShareThroughGate(50, 1000, 7));
  EXPECT_NE(ShareThroughGate(50, 1000, 7), ShareThroughGate(50, 1000, 8));
}

TEST(RemoteReuseGate, LetsAMissTakeAnotherNodesPartialSlabs) {
  ObjectFixture f(2, {0});
  f.MakePartialSlabs(0, 1, kInfo, 12);
  const uint64_t remote = f.Count(ObjectCounter::kPartialObjectsRemote);
  const ObjectRef object = f.objects->Allocate(f.workers[0], kInfo);

  EXPECT_EQ(f.objects->NodeOf(object), 1);
  EXPECT_EQ(f.Count(ObjectCounter::kRemoteReuseTaken), 1u);
  EXPECT_EQ(f.Count(ObjectCounter::kPartialObjectsRemote), remote + 60);
  EXPECT_EQ(f.Count(ObjectCounter::kNewSlabsRefill), 0u);
}

TEST(RemoteReuseGate, LeavesANodeWithNoMoreThanMinPartialSlabsAlone) {
  ObjectFixture f(2, {0});
  const uint32_t min_partial = f.objects->slab_class(SlabClassIndex(kInfo)).min_partial;
  f.MakePartialSlabs(0, 1, kInfo, min_partial);
  ASSERT_EQ(f.objects->NumPartialSlabs(kInfo, 1), min_partial);
  EXPECT_EQ(f.objects->NodeOf(f.objects->Allocate(f.workers[0], kInfo)), 0);
  f.objects->Flush(f.workers[0]);

  f.MakePartialSlabs(0, 1, kInfo, min_partial + 1);
  ASSERT_GT(f.objects->NumPartialSlabs(kInfo, 1), min_partial);
  // Empty the local lists first.
  bool has_remote = false;
  for (int i = 0; i < 400 && !has_remote; ++i)
    has_remote = f.objects->NodeOf(f.objects->Allocate(f.workers[0], kInfo)) == 1;
  EXPECT_TRUE(has_remote);
}

TEST(RemoteReuseGate, LooksAtNodesFromThePolicysNodeOn) {
  // Nodes 1 and 2 have partial slabs. From node 0 node 1 is nearer, from node 3 node 2.
  for (const auto& [policy, nearest] :
       {std::pair<const char*, int>{"default", 1}, {"preferred:3", 2}}) {
    ObjectFixture f(4, {0});
    f.MakePartialSlabs(0, 1, kInfo, 12);
    f.MakePartialSlabs(0, 2, kInfo, 12);
    f.SetPolicy(0, policy);
    EXPECT_EQ(f.objects->NodeOf(f.objects->Allocate(f.workers[0], kInfo)), nearest) << policy;
  }
}

TEST(RemoteReuseGate, AdvancesInterleavingByEveryLook) {
  ObjectFixture f(2, {0});
  f.SetPolicy(0, "interleave:0,1");
  f.Allocate(0, 60, kInfo);
  EXPECT_EQ(f.page_workers[0]->policy.state.prev, 0);
  f.Allocate(0, 60, kInfo);

  EXPECT_EQ(f.page_workers[0]->policy.state.prev, 1);
  EXPECT_EQ(f.Count(ObjectCounter::kGateQueries), 2u);
}

TEST(RemoteReuseGate, ARefillPassesOverAListThatSomebodyHolds) {
  ObjectFixture f(2, {0});
  f.MakePartialSlabs(0, 1, kInfo, 12);
  PartialList& list = f.objects->lists_for_test().List(SlabClassIndex(kInfo), 1);
  static_cast<void>(list.mutex.Lock());
  const ObjectRef object = f.objects->Allocate(f.workers[0], kInfo);
  list.mutex.Unlock();

  EXPECT_EQ(f.objects->NodeOf(object), 0);
  EXPECT_EQ(f.Count(ObjectCounter::kRemoteReuseBusy), 1u);
  EXPECT_EQ(f.Count(ObjectCounter::kRemoteReuseTaken), 0u);
}

TEST(RemoteReuseGate, ANodeOutsideTheCpusetIsNotLookedAt) {
  ObjectFixture f(3, {0});
  f.MakePartialSlabs(0, 1, kInfo, 12);
  f.MakePartialSlabs(0, 2, kInfo, 12);
  f.pages->SetCpuset(numa::NodeMask::Of({0, 2}));

  EXPECT_EQ(f.objects->NodeOf(f.objects->Allocate(f.workers[0], kInfo)), 2);
}

TEST(RemoteReuseGate, IsPassedByWithTheSingleNodeFastpath) {
  PageAllocatorOptions pages;
  pages.fastpath.slab = true;
  ObjectFixture f(1, {0}, {}, 2048, pages);
  f.SetPolicy(0, "interleave:0");
  const InterleaveState before = f.page_workers[0]->policy.state;
  f.Allocate(0, 180, kInfo);

  EXPECT_EQ(f.Count(ObjectCounter::kGateQueries), 0u);
  EXPECT_EQ(f.Count(ObjectCounter::kFastpathSlab), 3u);
  EXPECT_EQ(f.page_workers[0]->policy.state, before);
}

// D, F2: the slab path obeys the policy again before OnlineNode() returns.
TEST(RemoteReuseGate, ANodeThatComesOnlineEndsTheFastpathAndGivesObjects) {
  PageAllocatorOptions pages;
  pages.fastpath.slab = true;
  pages.offline_nodes = {{1, 256 * 4096}};
  ObjectFixture f(1, {0}, {}, 2048, pages);
  f.SetPolicy(0, "interleave:0,1");
  f.Allocate(0, 60, kInfo);
  ASSERT_EQ(f.Count(ObjectCounter::kGateQueries), 0u);
  ASSERT_TRUE(f.pages->OnlineNode(1).ok());
  f.Allocate(0, 60, kInfo);

  EXPECT_EQ(f.Count(ObjectCounter::kGateQueries), 1u);
  EXPECT_EQ(f.Count(ObjectCounter::kFastpathSlab), 1u);
  EXPECT_EQ(f.objects->NodeOf(f.objects->Allocate(f.workers[0], kInfo, 1)), 1);
  f.ExpectPagesConserved();
}

// Kernel up to 6.x.
TEST(CpuSlab, AllocatesFromOneSlabUntilItIsEmpty) {
  ObjectFixture f(1, {0}, {.form = SlabForm::kCpuSlab});
  f.Allocate(0, 21, kInfo);
  EXPECT_EQ(f.Census().num_slabs, 1u);
  EXPECT_EQ(f.Count(ObjectCounter::kSlowAllocations), 1u);
  EXPECT_EQ(f.Count(ObjectCounter::kFastAllocations), 20u);
  f.Allocate(0, 1, kInfo);

  EXPECT_EQ(f.Census().num_slabs, 2u);
  EXPECT_EQ(f.Census().free_in_active, 20u);
  EXPECT_EQ(f.Census().num_live, 22u);
}

TEST(CpuSlab, TakesOverWhatOthersFreedIntoTheActiveSlab) {
  ObjectFixture f(1, {0, 0}, {.form = SlabForm::kCpuSlab});
  const std::vector<ObjectRef> refs = f.Allocate(0, 21, kInfo);
  f.Free(1, {refs.begin(), refs.begin() + 5}, kInfo);
  EXPECT_EQ(f.Census().free_in_slabs, 5u);
  EXPECT_EQ(f.objects->NumPartialSlabs(kInfo, 0), 0u);
  f.Allocate(0, 5, kInfo);

  EXPECT_EQ(f.Census().num_slabs, 1u);
  EXPECT_EQ(f.Count(ObjectCounter::kActiveTakeOvers), 1u);
}

TEST(CpuSlab, AnotherNodeThanTheActiveSlabsPutsItBack) {
  ObjectFixture f(2, {0}, {.form = SlabForm::kCpuSlab});
  f.Allocate(0, 1, kInfo);
  const ObjectRef object = f.objects->Allocate(f.workers[0], kInfo, 1);

  EXPECT_EQ(f.objects->NodeOf(object), 1);
  EXPECT_EQ(f.Count(ObjectCounter::kDeactivations), 1u);
  EXPECT_EQ(f.Count(ObjectCounter::kNodeMismatches), 1u);
  EXPECT_EQ(f.objects->NumPartialSlabs(kInfo, 0), 1u);
  // Now no node in particular is served by the remote active slab.
  EXPECT_EQ(f.objects->NodeOf(f.objects->Allocate(f.workers[0], kInfo)), 1);
}

TEST(CpuSlab, ReusesAnotherNodesPartialSlabAsAWhole) {
  ObjectFixture f(2, {0}, {.form = SlabForm::kCpuSlab});
  f.MakePartialSlabs(0, 1, kInfo, 12);
  const uint32_t before = f.objects->NumPartialSlabs(kInfo, 1);
  const ObjectRef object = f.objects->Allocate(f.workers[0], kInfo);

  EXPECT_EQ(f.objects->NodeOf(object), 1);
  EXPECT_EQ(f.objects->NumPartialSlabs(kInfo, 1), before - 1);
  EXPECT_EQ(f.Count(ObjectCounter::kRemoteReuseTaken), 1u);
}

TEST(CpuSlab, ANewSlabWithoutANodeObeysThePolicy) {
  ObjectFixture f(2, {0}, {.form = SlabForm::kCpuSlab});
  f.SetPolicy(0, "preferred:1");

  EXPECT_EQ(f.objects->NodeOf(f.objects->Allocate(f.workers[0], kInfo)), 1);
}

TEST(Reclaim, EmptySlabsServeAnotherClassWhenPagesRunOut) {
  ObjectFixture f(1, {0}, {}, 64);
  std::vector<ObjectRef> refs;
  for (ObjectRef ref; (ref = f.objects->Allocate(f.workers[0], kInfo)) != kNoObject;)
    refs.push_back(ref);
  f.Free(0, refs, kInfo);
  // Barns and lists hold pages that nobody else can have, but for reclaim.
  ASSERT_GT(f.Census().free_in_barns, 0u);
  ASSERT_GT(f.Census().num_empty_slabs, 0u);
  uint64_t blocks = 0;
  while (f.objects->Allocate(f.workers[0], 5 * 4096) != kNoObject) blocks += 1;

  EXPECT_GE(blocks, 1u);
  EXPECT_GT(f.Count(ObjectCounter::kSlabsReclaimed), 0u);
  EXPECT_EQ(f.Census().free_in_barns, 0u);
  EXPECT_EQ(f.Census().num_empty_slabs, 0u);
  f.ExpectPagesConserved();
}

TEST(Reclaim, TheSmallestOrderServesWhereTheUsualOneIsFragmented) {
  PageAllocatorOptions pages;
  ObjectFixture f(1, {0}, {}, 256, pages);
  // Every second page is taken: no block of two pages is left.
  std::vector<PageId> all;
  for (PageId page; (page = f.pages->Allocate(*f.page_workers[0])) != kNoPage;) all.push_back(page);
  for (const PageId page : all) {
    if (page % 2 == 0) f.pages->Put(*f.page_workers[0], page);
  }
  f.pages->DrainLists(*f.page_workers[0]);
  const ObjectRef object = f.objects->Allocate(f.workers[0], 2048);

  EXPECT_NE(object, kNoObject);
  EXPECT_GT(f.Count(ObjectCounter::kSmallerSlabs), 0u);
}

}  // namespace
}  // namespace pipeyard::memory
