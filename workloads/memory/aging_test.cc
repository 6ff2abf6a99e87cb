#include "workloads/memory/aging.h"

#include <gtest/gtest.h>

#include "workloads/memory/metadata_placement.h"
#include "workloads/memory/object_testing.h"

namespace pipeyard::memory {
namespace {

constexpr uint32_t kInfo = 168;
constexpr uint32_t kRing = 640;

// Creates the objects of `count` pipes of 16 slots as worker 0; returns how many infos and rings
// lie on each of two nodes.
struct Placement {
  int infos[2] = {};
  int rings[2] = {};
};
Placement CreatePipes(ObjectFixture& f, MetadataPlacement placement, int count) {
  Placement result;
  for (int i = 0; i < count; ++i) {
    const CreationRequest request =
        PlanCreation(placement, 16, f.pages->page_bytes(), f.page_workers[0]->policy,
                     f.page_workers[0]->context);
    const ObjectRef info = f.objects->Allocate(f.workers[0], kInfo, request.info.node);
    const ObjectRef ring = f.objects->Allocate(f.workers[0], kRing, request.ring.node);
    result.infos[f.objects->NodeOf(info)] += 1;
    result.rings[f.objects->NodeOf(ring)] += 1;
  }
  return result;
}

AgingOptions AgedFor(numa::NodeId node, uint64_t num_free) {
  AgingOptions options;
  options.node = node;
  options.num_free = num_free;
  return options;
}

TEST(Aging, LeavesMorePartialSlabsThanTheGateAsksFor) {
  // By a worker of the node, and by one of another node.
  for (const numa::CpuId cpu : {0, 1}) {
    ObjectFixture f(2, {cpu});
    const Result<AgedObjects> aged = AgeNode(*f.objects, f.workers[0], AgedFor(1, 0));
    ASSERT_TRUE(aged.ok());

    for (const uint32_t size : {kInfo, kRing}) {
      EXPECT_GE(f.objects->NumPartialSlabs(size, 1),
                2 * f.objects->slab_class(SlabClassIndex(size)).min_partial)
          << "CPU " << cpu;
    }
    EXPECT_EQ(f.objects->NumPartialSlabs(kInfo, 0), 0u);
    const ObjectCensus census = f.Census();
    EXPECT_EQ(census.live.size(), aged->objects.size());
    EXPECT_EQ(census.free_in_sheaves + census.free_in_barns, 0u);
    EXPECT_EQ(census.num_empty_slabs, 0u);
  }
}

// The state in which change 1 shows a difference.
TEST(Aging, AnyNodeGivesRemoteMetadataAndPolicyNodeDoesNot) {
  // Strict-policy leaves a binding that allows the local node alone.
  const struct {
    MetadataPlacement placement;
    const char* policy;
    bool is_remote;
  } cases[] = {{MetadataPlacement::kAnyNode, "bind:0", true},
               {MetadataPlacement::kPolicyNode, "bind:0", false},
               {MetadataPlacement::kStrictPolicy, "preferred:0", false},
               {MetadataPlacement::kStrictPolicy, "bind:0", true}};
  for (const SlabForm form : {SlabForm::kSheaves, SlabForm::kCpuSlab}) {
    for (const auto& c : cases) {
      ObjectFixture f(
          2, {0},
          {.form = form, .is_strict_policy = c.placement == MetadataPlacement::kStrictPolicy});
      f.SetPolicy(0, c.policy);
      ASSERT_TRUE(AgeNode(*f.objects, f.workers[0], AgedFor(1, 200)).ok());
      const Placement placed = CreatePipes(f, c.placement, 100);

      EXPECT_EQ(placed.infos[1] > 50, c.is_remote) << SlabFormName(form);
      EXPECT_EQ(placed.rings[1] > 50, c.is_remote) << SlabFormName(form);
      if (!c.is_remote) {
        EXPECT_EQ(placed.infos[0], 100);
        EXPECT_EQ(placed.rings[0], 100);
      }
    }
  }
}

TEST(Aging, AFreshAllocatorGivesNoRemoteMetadata) {
  ObjectFixture f(2, {0});
  f.SetPolicy(0, "bind:0");
  const Placement placed = CreatePipes(f, MetadataPlacement::kAnyNode, 100);

  EXPECT_EQ(placed.infos[0], 100);
  EXPECT_EQ(placed.rings[0], 100);
}

TEST(Aging, WithTheGateClosedAnAgedNodeIsNotReused) {
  ObjectFixture f(2, {0}, {.defrag_ratio = 0});
  ASSERT_TRUE(AgeNode(*f.objects, f.workers[0], AgedFor(1, 200)).ok());
  const Placement placed = CreatePipes(f, MetadataPlacement::kAnyNode, 100);

  EXPECT_EQ(placed.infos[0], 100);
}

TEST(Aging, HoldsAsLongAsTheObjectsThatWereAskedFor) {
  ObjectFixture f(2, {0});
  ASSERT_TRUE(AgeNode(*f.objects, f.workers[0], AgedFor(1, 1000)).ok());

  EXPECT_EQ(CreatePipes(f, MetadataPlacement::kAnyNode, 900).infos[0], 0);
}

TEST(Aging, ReleasedObjectsLeaveNothingBehind) {
  ObjectFixture f(2, {0});
  AgedObjects aged = *AgeNode(*f.objects, f.workers[0], AgedFor(1, 100));
  ReleaseAged(*f.objects, f.workers[0], aged);

  EXPECT_EQ(f.Census().live.size(), 0u);
  EXPECT_TRUE(aged.objects.empty());
  EXPECT_EQ(f.pages->controller().used_bytes(), 0u);
  f.ExpectPagesConserved();
}

TEST(Aging, ANodeThatIsTooSmallIsAnErrorAndStaysAsItWas) {
  ObjectFixture f(2, {0}, {}, 64);
  const Result<AgedObjects> aged = AgeNode(*f.objects, f.workers[0], AgedFor(1, 10000));

  EXPECT_EQ(aged.status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(f.Census().live.size(), 0u);
  f.ExpectPagesConserved();
}

TEST(Aging, ANodeWithoutMemoryIsAnError) {
  ObjectFixture f(2, {0});
  EXPECT_EQ(AgeNode(*f.objects, f.workers[0], AgedFor(5, 0)).status().message(),
            "aging: node 5 has no memory");
}

TEST(Aging, ARingThatIsNoSlabObjectIsAnError) {
  ObjectFixture f(2, {0});
  AgingOptions options = AgedFor(1, 0);
  options.sizes = {168, 10240};

  EXPECT_EQ(AgeNode(*f.objects, f.workers[0], options).status().message(),
            "aging: 10240 bytes are no slab object, so there is nothing to age");
  EXPECT_EQ(f.Census().live.size(), 0u);
}

}  // namespace
}  // namespace pipeyard::memory
