// The rules of sheaves and named nodes, kernel-mechanisms.md B1.
#include "workloads/memory/slab_sheaf.h"

#include <gtest/gtest.h>

#include "workloads/memory/metadata_placement.h"
#include "workloads/memory/object_testing.h"

namespace pipeyard::memory {
namespace {

constexpr uint32_t kInfo = 192;
constexpr uint32_t kSheafObjects = 60;
constexpr uint32_t kSlabObjects = 21;  // of 192 bytes in one page

TEST(Sheaves, AMissFillsAWholeSheafFromNewSlabsOfTheLocalNode) {
  ObjectFixture f(2, {1});
  const ObjectRef object = f.objects->Allocate(f.workers[0], kInfo);

  EXPECT_EQ(f.objects->NodeOf(object), 1);
  EXPECT_EQ(f.Count(ObjectCounter::kSheafRefills), 1u);
  EXPECT_EQ(f.Count(ObjectCounter::kNewSlabsRefill),
            (kSheafObjects + kSlabObjects - 1) / kSlabObjects);
  EXPECT_EQ(f.Count(ObjectCounter::kBarnMisses), 1u);
  EXPECT_EQ(f.Census().free_in_sheaves, kSheafObjects - 1);
  EXPECT_EQ(f.Census().free_in_slabs, 3 * kSlabObjects - kSheafObjects);
}

TEST(Sheaves, AnEmptyMainSheafIsExchangedWithTheSpareBeforeTheBarnIsAsked) {
  ObjectFixture f(1, {0});
  // 60 + 60 free objects in main and spare.
  f.Free(0, f.Allocate(0, 2 * kSheafObjects, kInfo), kInfo);
  const uint64_t misses = f.Count(ObjectCounter::kBarnMisses);
  const uint64_t swaps = f.Count(ObjectCounter::kSpareSwaps);
  f.Allocate(0, 2 * kSheafObjects, kInfo);

  EXPECT_EQ(f.Count(ObjectCounter::kSpareSwaps), swaps + 1);
  EXPECT_EQ(f.Count(ObjectCounter::kBarnMisses), misses);
  EXPECT_EQ(f.Count(ObjectCounter::kBarnHits), 0u);
}

TEST(Sheaves, AFullSheafGoesToTheBarnAndServesAnotherWorkerOfTheNode) {
  ObjectFixture f(1, {0, 0});
  f.Free(0, f.Allocate(0, 3 * kSheafObjects, kInfo), kInfo);
  EXPECT_EQ(f.Count(ObjectCounter::kBarnPuts), 1u);
  EXPECT_EQ(f.Census().free_in_barns, kSheafObjects);
  const uint64_t slabs = f.Count(ObjectCounter::kNewSlabsRefill);
  f.Allocate(1, kSheafObjects, kInfo);

  EXPECT_EQ(f.Count(ObjectCounter::kBarnHits), 1u);
  EXPECT_EQ(f.Count(ObjectCounter::kNewSlabsRefill), slabs);
  EXPECT_EQ(f.Census().free_in_barns, 0u);
}

TEST(Sheaves, ABarnKeepsTenFullSheavesAndTheNextOneIsFlushedToItsSlabs) {
  ObjectFixture f(1, {0});
  f.Free(0, f.Allocate(0, 13 * kSheafObjects, kInfo), kInfo);

  EXPECT_EQ(f.Count(ObjectCounter::kBarnPuts), kBarnSheaves);
  EXPECT_EQ(f.Count(ObjectCounter::kBarnFull), 1u);
  EXPECT_EQ(f.Count(ObjectCounter::kFlushedObjects), kSheafObjects);
  const ObjectCensus census = f.Census();
  EXPECT_EQ(census.free_in_barns, kBarnSheaves * kSheafObjects);
  EXPECT_EQ(census.free_in_sheaves, 2 * kSheafObjects);
  EXPECT_EQ(census.num_live, 0u);
}

TEST(Sheaves, ARefillTakesTheLocalPartialSlabsBeforeAnyOther) {
  ObjectFixture f(2, {0});
  f.MakePartialSlabs(0, 0, kInfo, 4);
  f.MakePartialSlabs(0, 1, kInfo, 12);
  const uint64_t slabs = f.Count(ObjectCounter::kNewSlabsRefill);
  const uint64_t local = f.Count(ObjectCounter::kPartialObjectsLocal);
  // Four slabs with 10 or 11 free objects each.
  f.Allocate(0, 30, kInfo);

  EXPECT_GE(f.Count(ObjectCounter::kPartialObjectsLocal) - local, 30u);
  EXPECT_EQ(f.Count(ObjectCounter::kNewSlabsRefill), slabs);
}

TEST(Sheaves, AnotherNodesObjectIsFreedToItsSlabAndNotToTheSheaf) {
  ObjectFixture f(2, {0, 1});
  const std::vector<ObjectRef> refs = f.Allocate(1, 10, kInfo);
  const ObjectCensus before = f.Census();
  f.Free(0, refs, kInfo);

  EXPECT_EQ(f.Count(ObjectCounter::kRemoteFrees), 10u);
  EXPECT_EQ(f.Count(ObjectCounter::kFastFrees), 0u);
  EXPECT_EQ(f.Census().free_in_sheaves, before.free_in_sheaves);
  EXPECT_EQ(f.Census().free_in_slabs, before.free_in_slabs + 10);
}

TEST(Sheaves, AnEmptySlabBeyondMinPartialGoesBackToThePageAllocator) {
  ObjectFixture f(2, {0, 1});
  const uint32_t min_partial = f.objects->slab_class(SlabClassIndex(kInfo)).min_partial;
  // By the other node's worker, so that each free reaches its slab.
  const std::vector<ObjectRef> refs = f.Allocate(0, 12 * kSlabObjects, kInfo, 1);
  ASSERT_EQ(f.Census().num_slabs, 12u);
  f.Free(0, refs, kInfo);

  // The slab itself counts: a fifth partial slab that becomes empty is one too many.
  EXPECT_EQ(f.objects->NumPartialSlabs(kInfo, 1), min_partial - 1);
  EXPECT_EQ(f.Census().num_empty_slabs, min_partial - 1);
  EXPECT_EQ(f.Count(ObjectCounter::kSlabsGivenBack), 12 - (min_partial - 1));
  f.ExpectPagesConserved();
}

TEST(Sheaves, FlushLeavesNothingInTheWorkersSheaves) {
  for (const SlabForm form : {SlabForm::kSheaves, SlabForm::kCpuSlab}) {
    ObjectFixture f(1, {0}, {.form = form});
    const std::vector<ObjectRef> refs = f.Allocate(0, 100, kInfo);
    f.Free(0, {refs.begin(), refs.begin() + 50}, kInfo);
    f.objects->Flush(f.workers[0]);
    const ObjectCensus census = f.Census();

    EXPECT_EQ(census.free_in_sheaves + census.free_in_active, 0u) << SlabFormName(form);
    EXPECT_EQ(census.num_live, 50u);
  }
}

TEST(NamedNode, AnotherNodeThanTheWorkersPassesByTheSheaf) {
  ObjectFixture f(2, {0});
  f.Free(0, f.Allocate(0, 10, kInfo), kInfo);
  const uint64_t in_sheaves = f.Census().free_in_sheaves;
  const ObjectRef object = f.objects->Allocate(f.workers[0], kInfo, 1);

  EXPECT_EQ(f.objects->NodeOf(object), 1);
  EXPECT_EQ(f.Census().free_in_sheaves, in_sheaves);
  EXPECT_EQ(f.Count(ObjectCounter::kNodeMismatches), 1u);
  EXPECT_EQ(f.Count(ObjectCounter::kSlowAllocations), 1u);
  EXPECT_EQ(f.Count(ObjectCounter::kNewSlabsThisNode), 1u);
}

TEST(NamedNode, TheWorkersNodeIsServedFromTheSheaf) {
  ObjectFixture f(2, {0});
  f.Free(0, f.Allocate(0, 10, kInfo), kInfo);
  const uint64_t before = f.Count(ObjectCounter::kFastAllocations);
  const ObjectRef object = f.objects->Allocate(f.workers[0], kInfo, 0);

  EXPECT_EQ(f.objects->NodeOf(object), 0);
  EXPECT_EQ(f.Count(ObjectCounter::kFastAllocations), before + 1);
  EXPECT_EQ(f.Count(ObjectCounter::kNodeMismatches), 0u);
}

// H13.
TEST(NamedNode, ARemoteObjectOnTopOfTheSheafDivertsUntilSomebodyElsePopsIt) {
  ObjectFixture f(2, {0});
  f.MakePartialSlabs(0, 1, kInfo, 12);
  // Any node will do: the sheaf is filled from node 1's partial slabs.
  ASSERT_EQ(f.objects->NodeOf(f.objects->Allocate(f.workers[0], kInfo)), 1);
  const uint64_t in_sheaves = f.Census().free_in_sheaves;

  for (uint64_t i = 1; i <= 5; ++i) {
    EXPECT_EQ(f.objects->NodeOf(f.objects->Allocate(f.workers[0], kInfo, 0)), 0);
    EXPECT_EQ(f.Count(ObjectCounter::kRemoteTopDiverts), i);
    EXPECT_EQ(f.Census().free_in_sheaves, in_sheaves);
  }
  // Who does not care takes the remote ones off.
  const std::vector<ObjectRef> refs = f.Allocate(0, in_sheaves, kInfo);
  EXPECT_EQ(f.objects->NodeOf(refs.front()), 1);
}

// H13: a policy node that is not the CPU's bypasses the sheaf every time.
TEST(NamedNode, ARemoteNodeTakesTheSlowPathEveryTime) {
  ObjectFixture f(2, {0});
  for (int i = 0; i < 1000; ++i) {
    const ObjectRef object = f.objects->Allocate(f.workers[0], kInfo, 1);
    ASSERT_EQ(f.objects->NodeOf(object), 1);
    f.objects->Free(f.workers[0], object, kInfo);
  }
  EXPECT_EQ(f.Count(ObjectCounter::kSlowAllocations), 1000u);
  EXPECT_EQ(f.Count(ObjectCounter::kNodeMismatches), 1000u);
  EXPECT_EQ(f.Count(ObjectCounter::kRemoteFrees), 1000u);
  EXPECT_EQ(f.Count(ObjectCounter::kFastAllocations), 0u);
}

TEST(NamedNode, ThePartialSlabsOfTheNodeComeBeforeANewOne) {
  ObjectFixture f(2, {0});
  f.MakePartialSlabs(0, 1, kInfo, 2);
  const uint64_t slabs = f.Count(ObjectCounter::kNewSlabsThisNode);
  f.Allocate(0, 10, kInfo, 1);

  EXPECT_EQ(f.Count(ObjectCounter::kNewSlabsThisNode), slabs);
}

TEST(NamedNode, ANewSlabOfTheNodeComesBeforeOtherNodesPartialSlabs) {
  ObjectFixture f(3, {0});
  f.MakePartialSlabs(0, 2, kInfo, 12);
  const ObjectRef object = f.objects->Allocate(f.workers[0], kInfo, 1);

  EXPECT_EQ(f.objects->NodeOf(object), 1);
  EXPECT_EQ(f.Count(ObjectCounter::kRemoteReuseTried), 0u);
}

// Takes every page of `node`.
std::vector<PageId> Exhaust(ObjectFixture& f, numa::NodeId node) {
  std::vector<PageId> pages;
  const PagePlacement placement{node, numa::NodeMask::Of({node})};
  for (PageId page; (page = f.pages->Allocate(*f.page_workers[0], placement)) != kNoPage;)
    pages.push_back(page);
  return pages;
}

TEST(NamedNode, IsAPreferenceWhereTheNodeHasNoMemoryLeft) {
  ObjectFixture f(2, {0}, {}, 512);
  Exhaust(f, 1);
  const ObjectRef object = f.objects->Allocate(f.workers[0], kInfo, 1);

  ASSERT_NE(object, kNoObject);
  EXPECT_EQ(f.objects->NodeOf(object), 0);
  EXPECT_EQ(f.Count(ObjectCounter::kNewSlabsThisNode), 0u);
  EXPECT_EQ(f.Count(ObjectCounter::kNewSlabsAnywhere), 1u);
}

TEST(NamedNode, OtherNodesPartialSlabsServeWhereTheNodeHasNoMemoryLeft) {
  ObjectFixture f(2, {0}, {}, 512);
  f.MakePartialSlabs(0, 0, kInfo, 12);
  Exhaust(f, 1);
  const uint64_t tried = f.Count(ObjectCounter::kRemoteReuseTried);
  const ObjectRef object = f.objects->Allocate(f.workers[0], kInfo, 1);

  ASSERT_NE(object, kNoObject);
  EXPECT_EQ(f.objects->NodeOf(object), 0);
  EXPECT_EQ(f.Count(ObjectCounter::kRemoteReuseTried), tried + 1);
  EXPECT_EQ(f.Count(ObjectCounter::kNewSlabsAnywhere), 0u);
}

TEST(NamedNode, ANodeWithoutMemoryIsNoWish) {
  ObjectFixture f(2, {0});
  const ObjectRef object = f.objects->Allocate(f.workers[0], kInfo, 7);

  EXPECT_EQ(f.objects->NodeOf(object), 0);
  EXPECT_EQ(f.Count(ObjectCounter::kExplicitNode), 0u);
}

TEST(StrictPolicy, RequestsWithoutANodeGoWhereThePolicySays) {
  ObjectFixture f(2, {0}, {.is_strict_policy = true, .defrag_ratio = 0});
  f.SetPolicy(0, "interleave:0,1");
  int on_node[2] = {};
  for (int i = 0; i < 100; ++i)
    on_node[f.objects->NodeOf(f.objects->Allocate(f.workers[0], kInfo))] += 1;

  EXPECT_EQ(on_node[0], 50);
  EXPECT_EQ(on_node[1], 50);
  EXPECT_EQ(f.Count(ObjectCounter::kStrictQueries), 100u);
}

// The worker's node is asked of the sheaf, whose refill looks through the gate, which asks the
// policy for a second time.
TEST(StrictPolicy, ARefillForTheLocalNodeAdvancesInterleavingTwice) {
  ObjectFixture f(3, {0}, {.is_strict_policy = true});
  f.SetPolicy(0, "interleave:0,1,2");

  EXPECT_EQ(f.objects->NodeOf(f.objects->Allocate(f.workers[0], kInfo)), 0);
  EXPECT_EQ(f.page_workers[0]->policy.state.prev, 1);
  EXPECT_EQ(f.objects->NodeOf(f.objects->Allocate(f.workers[0], kInfo)), 2);
  EXPECT_EQ(f.page_workers[0]->policy.state.prev, 2);
}

TEST(StrictPolicy, ATaskWithoutAPolicyIsNotRedirected) {
  ObjectFixture f(2, {0}, {.is_strict_policy = true});
  f.Allocate(0, 100, kInfo);

  EXPECT_EQ(f.Count(ObjectCounter::kStrictQueries), 0u);
  EXPECT_EQ(f.Count(ObjectCounter::kExplicitNode), 0u);
}

TEST(StrictPolicy, ABindingThatAllowsTheLocalNodeStaysWithoutANode) {
  ObjectFixture f(2, {0}, {.is_strict_policy = true});
  f.SetPolicy(0, "bind:0,1");
  f.Allocate(0, 100, kInfo);
  EXPECT_EQ(f.Count(ObjectCounter::kExplicitNode), 0u);

  f.SetPolicy(0, "bind:1");
  EXPECT_EQ(f.objects->NodeOf(f.objects->Allocate(f.workers[0], kInfo)), 1);
  EXPECT_EQ(f.Count(ObjectCounter::kExplicitNode), 1u);
}

TEST(StrictPolicy, OneNodeIsNeverAsked) {
  ObjectFixture f(1, {0}, {.is_strict_policy = true});
  f.SetPolicy(0, "interleave:0");
  f.Allocate(0, 100, kInfo);

  EXPECT_EQ(f.Count(ObjectCounter::kStrictQueries), 0u);
}

// H13: one query for both objects. Nothing below the sheaves asks again as long as they serve, and
// neither does a node that is not the worker's: its partial list and its new slabs ask nobody.
TEST(PipeObjects, CreationAdvancesInterleavingOnceNotTwice) {
  ObjectFixture f(2, {0});
  f.Free(0, f.Allocate(0, 10, kInfo), kInfo);
  f.Free(0, f.Allocate(0, 10, 640), 640);
  f.SetPolicy(0, "interleave:0,1");
  int expected = 0;
  for (int i = 0; i < 10; ++i) {
    const CreationRequest request =
        PlanCreation(MetadataPlacement::kPolicyNode, 16, f.pages->page_bytes(),
                     f.page_workers[0]->policy, f.page_workers[0]->context);
    const ObjectRef info = f.objects->Allocate(f.workers[0], kInfo, request.info.node);
    const ObjectRef ring = f.objects->Allocate(f.workers[0], 640, request.ring.node);

    EXPECT_EQ(f.objects->NodeOf(info), expected);
    EXPECT_EQ(f.objects->NodeOf(ring), expected);
    EXPECT_EQ(f.page_workers[0]->policy.state.prev, expected);
    expected = 1 - expected;
  }
}

// H13.
TEST(PipeObjects, ALargeRingAsksThePolicyOnceInThePageAllocator) {
  ObjectFixture f(2, {0});
  f.SetPolicy(0, "interleave:0,1");
  const ObjectRequest request =
      PlanResize(MetadataPlacement::kPolicyNode, 256, f.pages->page_bytes(),
                 f.page_workers[0]->policy, f.page_workers[0]->context);
  EXPECT_FALSE(request.is_policy_queried);
  EXPECT_EQ(f.objects->NodeOf(f.objects->Allocate(f.workers[0], 256 * 40, request.node)), 0);
  EXPECT_EQ(f.page_workers[0]->policy.state.prev, 0);
  EXPECT_EQ(f.Count(ObjectCounter::kGateQueries) + f.Count(ObjectCounter::kStrictQueries), 0u);
}

// H13: this is why change 1 leaves large rings without a node.
TEST(LargeObject, ANamedNodeBreaksABindingThatNoNodeKeeps) {
  ObjectFixture f(2, {0}, {}, 512);
  f.SetPolicy(0, "bind:1");
  // 256 slots: 10240 bytes, order 2.
  EXPECT_EQ(f.objects->NodeOf(f.objects->Allocate(f.workers[0], 10240)), 1);
  Exhaust(f, 1);

  EXPECT_EQ(f.objects->Allocate(f.workers[0], 10240), kNoObject);
  const ObjectRef ring = f.objects->Allocate(f.workers[0], 10240, 1);
  ASSERT_NE(ring, kNoObject);
  EXPECT_EQ(f.objects->NodeOf(ring), 0);
}

// H13.
TEST(LargeObject, WithoutANodeInterleavingAdvancesByOne) {
  ObjectFixture f(2, {0});
  f.SetPolicy(0, "interleave:0,1");
  const int nodes[] = {0, 1, 0, 1};
  for (const int node : nodes)
    EXPECT_EQ(f.objects->NodeOf(f.objects->Allocate(f.workers[0], 10240)), node);
  EXPECT_EQ(f.page_workers[0]->policy.state.prev, 1);
}

// H13.
TEST(LargeObject, ANamedNodeLeavesInterleavingWhereItIs) {
  ObjectFixture f(2, {0});
  f.SetPolicy(0, "interleave:0,1");
  const InterleaveState before = f.page_workers[0]->policy.state;
  f.Allocate(0, 3, 10240, 1);
  f.Allocate(0, 3, kInfo, 1);

  EXPECT_EQ(f.page_workers[0]->policy.state, before);
}

TEST(LargeObject, StrictPolicyDoesNotAskForIt) {
  ObjectFixture f(2, {0}, {.is_strict_policy = true});
  f.SetPolicy(0, "preferred:1");
  EXPECT_EQ(f.objects->NodeOf(f.objects->Allocate(f.workers[0], 10240)), 1);

  EXPECT_EQ(f.Count(ObjectCounter::kStrictQueries), 0u);
  EXPECT_EQ(f.Count(ObjectCounter::kLargeAllocations), 1u);
}

}  // namespace
}  // namespace pipeyard::memory
