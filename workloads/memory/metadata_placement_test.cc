#include "workloads/memory/metadata_placement.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "workloads/memory/page_choice.h"

namespace pipeyard::memory {
namespace {

using numa::kNoNode;
using numa::NodeId;
using numa::NodeMask;
using Source = ObjectRequest::Source;

constexpr uint64_t kPage = 4096;
constexpr std::array<NodeId, 4> kOrder = {2, 1, 3, 0};
const WeightTable kOnes;

// A task on node 2 of four, with `policy`.
struct Task {
  explicit Task(const std::string& policy) { task.SetPolicy(ParsePolicy(policy).value()); }

  TaskPolicy task;
  PolicyContext context{.local = 2,
                        .local_order = kOrder,
                        .allowed = NodeMask::Of({0, 1, 2, 3}),
                        .host_weights = &kOnes};
};

struct NodeCase {
  const char* policy;
  NodeId slab;
  NodeId strict;
};

TEST(SlabNode, FollowsEachModesRule) {
  for (const NodeCase& c : {
           NodeCase{"default", 2, kNoNode},
           {"local", 2, 2},
           {"preferred:3", 3, 3},
           {"bind:0,2", 2, kNoNode},
           {"bind:0,3", 3, 3},
           {"bind:0,1", 1, 1},
           {"preferred-many:0,2", 2, 2},
           {"preferred-many:0,3", 3, 3},
           {"interleave:1,3", 1, 1},
           {"weighted-interleave:1=2,3=1", 1, 1},
       }) {
    SCOPED_TRACE(c.policy);
    Task slab(c.policy);
    EXPECT_EQ(SlabNode(slab.task, slab.context), c.slab);
    Task strict(c.policy);
    EXPECT_EQ(StrictSlabNode(strict.task, strict.context, strict.context.allowed), c.strict);
  }
}

TEST(SlabNode, OnlyInterleavingMovesTheTaskOn) {
  for (const char* policy : {"default", "local", "preferred:3", "bind:0,3", "preferred-many:0,3"}) {
    Task t(policy);
    SlabNode(t.task, t.context);
    StrictSlabNode(t.task, t.context, t.context.allowed);
    EXPECT_EQ(t.task.state, InterleaveState{}) << policy;
  }
  Task plain("interleave:1,3");
  EXPECT_EQ(SlabNode(plain.task, plain.context), 1);
  EXPECT_EQ(SlabNode(plain.task, plain.context), 3);
  Task weighted("weighted-interleave:1=2,3=1");
  EXPECT_EQ(SlabNode(weighted.task, weighted.context), 1);
  EXPECT_EQ(SlabNode(weighted.task, weighted.context), 1);
  EXPECT_EQ(SlabNode(weighted.task, weighted.context), 3);
}

TEST(SlabNode, TheHostsTableServesWhereThePolicyHasNoWeights) {
  WeightTable host;
  host[1] = 2;
  Task t("weighted-interleave:1,3");
  t.context.host_weights = &host;
  EXPECT_EQ(SlabNode(t.task, t.context), 1);
  EXPECT_EQ(SlabNode(t.task, t.context), 1);
  EXPECT_EQ(SlabNode(t.task, t.context), 3);
}

TEST(SlabNode, TheCpusetNarrowsTheMask) {
  Task t("interleave:1,3");
  t.context.allowed = NodeMask::Of({3});
  EXPECT_EQ(SlabNode(t.task, t.context), 3);
  EXPECT_EQ(SlabNode(t.task, t.context), 3);
}

TEST(MaxSlabSlots, CutsRingsOffAfterTwoPages) {
  EXPECT_EQ(MaxSlabSlots(4096), 204u);
  EXPECT_EQ(MaxSlabSlots(16384), 819u);
  EXPECT_EQ(MaxSlabSlots(65536), 3276u);
}

TEST(AnyNode, AsksNobodyAndNamesNoNode) {
  Task t("interleave:1,3");

  const CreationRequest creation =
      PlanCreation(MetadataPlacement::kAnyNode, 16, kPage, t.task, t.context);
  const ObjectRequest small =
      PlanResize(MetadataPlacement::kAnyNode, 128, kPage, t.task, t.context);
  const ObjectRequest large =
      PlanResize(MetadataPlacement::kAnyNode, 256, kPage, t.task, t.context);

  for (const ObjectRequest& request : {creation.info, creation.ring, small, large}) {
    EXPECT_EQ(request.node, kNoNode);
    EXPECT_FALSE(request.is_policy_queried);
  }
  EXPECT_EQ(creation.ring.source, Source::kSlab);
  EXPECT_EQ(small.source, Source::kSlab);
  EXPECT_EQ(large.source, Source::kPageBlock);
  EXPECT_EQ(t.task.state, InterleaveState{});
}

// H13.
TEST(PolicyNode, CreationAdvancesInterleaveOnceForInfoAndRing) {
  Task t("interleave:1,3");

  const CreationRequest first =
      PlanCreation(MetadataPlacement::kPolicyNode, 16, kPage, t.task, t.context);
  const CreationRequest second =
      PlanCreation(MetadataPlacement::kPolicyNode, 16, kPage, t.task, t.context);

  EXPECT_EQ(first.info.node, 1);
  EXPECT_EQ(first.ring.node, 1);
  EXPECT_TRUE(first.info.is_policy_queried);
  EXPECT_FALSE(first.ring.is_policy_queried);
  EXPECT_EQ(second.info.node, 3);
  EXPECT_EQ(second.ring.node, 3);
}

TEST(PolicyNode, AResizeToASlabAsksOnceMore) {
  Task t("interleave:1,3");
  PlanCreation(MetadataPlacement::kPolicyNode, 16, kPage, t.task, t.context);

  const ObjectRequest ring =
      PlanResize(MetadataPlacement::kPolicyNode, 128, kPage, t.task, t.context);

  EXPECT_EQ(ring.source, Source::kSlab);
  EXPECT_EQ(ring.node, 3);
  EXPECT_TRUE(ring.is_policy_queried);
}

// H13.
TEST(PolicyNode, ALargeRingAsksNobodyAndThePageAllocatorAdvancesInterleaveOnce) {
  Task t("interleave:1,3");
  PlanCreation(MetadataPlacement::kPolicyNode, 16, kPage, t.task, t.context);
  const InterleaveState created = t.task.state;

  const ObjectRequest ring =
      PlanResize(MetadataPlacement::kPolicyNode, 256, kPage, t.task, t.context);

  EXPECT_EQ(ring.source, Source::kPageBlock);
  EXPECT_EQ(ring.node, kNoNode);
  EXPECT_FALSE(ring.is_policy_queried);
  EXPECT_EQ(t.task.state, created);
  EXPECT_EQ(ChoosePage(t.task, t.context).node, 3);
  EXPECT_EQ(ChoosePage(t.task, t.context).node, 1);
}

// H13: a named node would carry no mask, and its fallback could leave the binding.
TEST(PolicyNode, ALargeRingOfABoundTaskStaysInsideItsNodes) {
  Task t("bind:0,1");

  const ObjectRequest ring =
      PlanResize(MetadataPlacement::kPolicyNode, 256, kPage, t.task, t.context);

  EXPECT_EQ(ring.node, kNoNode);
  EXPECT_EQ(ChoosePage(t.task, t.context).allowed, NodeMask::Of({0, 1}));
}

TEST(PolicyNode, ALargeRingAtCreationIsNotOnInfosNodeByName) {
  Task t("interleave:1,3");

  const CreationRequest creation =
      PlanCreation(MetadataPlacement::kPolicyNode, 256, kPage, t.task, t.context);

  EXPECT_EQ(creation.info.node, 1);
  EXPECT_EQ(creation.ring.source, Source::kPageBlock);
  EXPECT_EQ(creation.ring.node, kNoNode);
}

TEST(StrictPolicy, LeavesTheQuestionToTheSlabAllocatorWhichAsksForEachObject) {
  Task t("interleave:1,3");

  const CreationRequest creation =
      PlanCreation(MetadataPlacement::kStrictPolicy, 16, kPage, t.task, t.context);

  EXPECT_EQ(creation.info.node, kNoNode);
  EXPECT_EQ(creation.ring.node, kNoNode);
  EXPECT_EQ(t.task.state, InterleaveState{});
  EXPECT_EQ(StrictSlabNode(t.task, t.context, t.context.allowed), 1);
  EXPECT_EQ(StrictSlabNode(t.task, t.context, t.context.allowed), 3);
}

TEST(StrictPolicy, OnAMachineWithOneNodeNobodyIsAsked) {
  Task t("interleave:2");

  EXPECT_EQ(StrictSlabNode(t.task, t.context, NodeMask::Of({2})), kNoNode);
  EXPECT_EQ(t.task.state, InterleaveState{});
}

TEST(MetadataPlacement, NamesAreReadBackAndOthersRefused) {
  for (const char* name : {"any-node", "policy-node", "strict-policy"})
    EXPECT_EQ(MetadataPlacementName(ParseMetadataPlacement(name).value()), name);
  EXPECT_FALSE(ParseMetadataPlacement("nearest").ok());
}

struct PageCase {
  const char* policy;
  NodeId node;
  uint64_t allowed;
  bool is_first_pass;
};

TEST(ChoosePage, FollowsEachModesRule) {
  for (const PageCase& c : {
           PageCase{"default", 2, 0b1111, false},
           {"local", 2, 0b1111, false},
           {"preferred:3", 3, 0b1111, false},
           {"preferred-many:0,3", 2, 0b1001, true},
           {"bind:0,3", 2, 0b1001, false},
           {"interleave:1,3", 1, 0b1111, false},
           {"weighted-interleave:1=2,3=1", 1, 0b1111, false},
       }) {
    SCOPED_TRACE(c.policy);
    Task t(c.policy);
    const PageChoice choice = ChoosePage(t.task, t.context);
    EXPECT_EQ(choice.node, c.node);
    EXPECT_EQ(choice.allowed.bits(), c.allowed);
    EXPECT_EQ(choice.is_first_pass, c.is_first_pass);
  }
}

TEST(ChoosePage, TheCpusetAlwaysFilters) {
  Task bound("bind:0,3");
  bound.context.allowed = NodeMask::Of({2, 3});
  EXPECT_EQ(ChoosePage(bound.task, bound.context).allowed, NodeMask::Of({3}));
  bound.context.allowed = NodeMask::Of({1, 2});
  EXPECT_EQ(ChoosePage(bound.task, bound.context).allowed, NodeMask::Of({1, 2}));

  Task interleaved("interleave:0,3");
  interleaved.context.allowed = NodeMask::Of({2, 3});
  EXPECT_EQ(ChoosePage(interleaved.task, interleaved.context).node, 3);
  EXPECT_EQ(ChoosePage(interleaved.task, interleaved.context).allowed, NodeMask::Of({2, 3}));
}

TEST(ChooseFault, GoesByTheIndexAndLeavesTheTaskAlone) {
  Task t("weighted-interleave:1=2,3=1");
  std::string nodes;
  for (uint64_t index = 0; index < 6; ++index)
    nodes += std::to_string(ChooseFault(t.task.policy, t.context, index).node);
  EXPECT_EQ(nodes, "113113");
  EXPECT_EQ(t.task.state, InterleaveState{});
  EXPECT_EQ(ChooseFault(ParsePolicy("bind:0,3").value(), t.context, 9).allowed,
            NodeMask::Of({0, 3}));
}

}  // namespace
}  // namespace pipeyard::memory
