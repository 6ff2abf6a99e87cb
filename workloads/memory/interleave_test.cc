#include "workloads/memory/interleave.h"

#include <gtest/gtest.h>

#include <vector>

#include "workloads/memory/interleave_testing.h"

namespace pipeyard::memory {
namespace {

using numa::NodeId;
using numa::NodeMask;

WeightTable Weights(std::initializer_list<std::pair<NodeId, int>> pairs) {
  WeightTable table;
  for (const auto& [node, weight] : pairs) table[node] = static_cast<uint8_t>(weight);
  return table;
}

std::vector<NodeId> Take(NodeMask mask, const WeightTable& table, InterleaveState& state,
                         int pages) {
  std::vector<NodeId> nodes;
  for (int i = 0; i < pages; ++i) nodes.push_back(StepWeighted(mask, table, state));
  return nodes;
}

BulkPlan Plan(BulkAlgorithm algorithm, NodeMask mask, const WeightTable& table,
              InterleaveState start, uint64_t pages) {
  BulkPlan plan;
  PlanBulk(algorithm, mask, table, start, pages, plan);
  return plan;
}

constexpr BulkAlgorithm kCorrect[] = {BulkAlgorithm::kSplitCarry, BulkAlgorithm::kFoldedCarry};

TEST(NextNode, WrapsAndSkipsGaps) {
  const NodeMask mask = NodeMask::Of({0, 2, 63});
  EXPECT_EQ(NextNode(mask, 0), 2);
  EXPECT_EQ(NextNode(mask, 1), 2);
  EXPECT_EQ(NextNode(mask, 2), 63);
  EXPECT_EQ(NextNode(mask, 63), 0);
  EXPECT_EQ(NextNode(NodeMask::Of({5}), 5), 5);
}

TEST(StepInterleave, AlternatesFromTheNodeAfterTheLast) {
  InterleaveState state;
  std::vector<NodeId> nodes;
  for (int i = 0; i < 5; ++i) nodes.push_back(StepInterleave(NodeMask::Of({1, 3}), state));
  EXPECT_EQ(nodes, (std::vector<NodeId>{1, 3, 1, 3, 1}));
  EXPECT_EQ(state, (InterleaveState{.prev = 1, .carry = 0}));
}

// H12.
TEST(WeightChangedMidCarry, ActsFromTheNextNodeOn) {
  const NodeMask mask = NodeMask::Of({0, 1});
  InterleaveState state;
  ASSERT_EQ(Take(mask, Weights({{0, 4}, {1, 1}}), state, 2), (std::vector<NodeId>{0, 0}));
  const WeightTable changed = Weights({{0, 1}, {1, 3}});

  InterleaveState stepping = state;
  EXPECT_EQ(Take(mask, changed, stepping, 8), (std::vector<NodeId>{0, 0, 1, 1, 1, 0, 1, 1}));

  for (const BulkAlgorithm algorithm : kCorrect) {
    const BulkPlan plan = Plan(algorithm, mask, changed, state, 8);
    EXPECT_EQ(PagesPerNode(plan), (std::map<NodeId, uint64_t>{{0, 3}, {1, 5}}));
    EXPECT_EQ(Canonical(mask, changed, plan.end), Canonical(mask, changed, stepping));
  }
}

// H12. The two forms of one state part company: upstream's bulk has latched the weight of the node
// to come, single steps and folded-carry read it when they enter the node.
TEST(WeightChangedAfterWholeRounds, OnlySplitCarryKeepsTheOldWeightOfTheNextNode) {
  const NodeMask mask = NodeMask::Of({0, 1});
  const WeightTable before = Weights({{0, 3}, {1, 1}});
  const WeightTable after = Weights({{0, 1}, {1, 1}});
  InterleaveState stepped;
  Take(mask, before, stepped, 4);

  InterleaveState folded = Plan(BulkAlgorithm::kFoldedCarry, mask, before, {}, 4).end;
  InterleaveState split = Plan(BulkAlgorithm::kSplitCarry, mask, before, {}, 4).end;

  EXPECT_EQ(Take(mask, after, stepped, 4), (std::vector<NodeId>{0, 1, 0, 1}));
  EXPECT_EQ(Take(mask, after, folded, 4), (std::vector<NodeId>{0, 1, 0, 1}));
  EXPECT_EQ(Take(mask, after, split, 4), (std::vector<NodeId>{0, 0, 0, 1}));
}

// H12. A carry above the table's present weight is served out.
TEST(WeightLoweredBelowTheCarry, TheCarryIsServedOut) {
  const NodeMask mask = NodeMask::Of({0, 1});
  const InterleaveState start{.prev = 0, .carry = 200};
  for (const BulkAlgorithm algorithm : kCorrect) {
    const BulkPlan plan = Plan(algorithm, mask, WeightTable{}, start, 202);
    EXPECT_EQ(PagesPerNode(plan), (std::map<NodeId, uint64_t>{{0, 201}, {1, 1}}));
  }
}

// H12.
TEST(MaskReboundMidCarry, TheCarryOfANodeThatLeftIsNotTaken) {
  const WeightTable table = Weights({{0, 4}, {1, 2}, {2, 3}});
  const InterleaveState start{.prev = 0, .carry = 3};
  const NodeMask rebound = NodeMask::Of({1, 2});

  InterleaveState stepping = start;
  EXPECT_EQ(Take(rebound, table, stepping, 5), (std::vector<NodeId>{1, 1, 2, 2, 2}));

  for (const BulkAlgorithm algorithm : kCorrect) {
    const BulkPlan plan = Plan(algorithm, rebound, table, start, 5);
    EXPECT_EQ(PagesPerNode(plan), (std::map<NodeId, uint64_t>{{1, 2}, {2, 3}}));
    EXPECT_EQ(Canonical(rebound, table, plan.end), Canonical(rebound, table, stepping));
  }
}

// H12.
TEST(MaskReboundAndBackMidCarry, TheCarryIsTakenWhereNothingRanBetween) {
  const WeightTable table = Weights({{0, 4}, {1, 2}});
  InterleaveState state{.prev = 0, .carry = 3};
  EXPECT_EQ(Canonical(NodeMask::Of({1}), table, state), (InterleaveState{.prev = 1, .carry = 2}));
  EXPECT_EQ(Take(NodeMask::Of({0, 1}), table, state, 4), (std::vector<NodeId>{0, 0, 0, 1}));
}

TEST(PlanBulk, NoPagesMakeNoCallsAndKeepTheState) {
  const InterleaveState start{.prev = 9, .carry = 77};
  for (const BulkAlgorithm algorithm : kCorrect) {
    const BulkPlan plan = Plan(algorithm, NodeMask::Of({0, 1}), WeightTable{}, start, 0);
    EXPECT_EQ(plan.num_calls, 0);
    EXPECT_EQ(plan.end, start);
  }
}

TEST(PlanBulk, AllNodesAndTheLargestRequestFit) {
  const NodeMask all = NodeMask::FromBits(~uint64_t{0});
  WeightTable table;
  table.weights.fill(255);
  for (const BulkAlgorithm algorithm : kCorrect) {
    const BulkPlan plan = Plan(algorithm, all, table, {.prev = 10, .carry = 255}, ~uint64_t{0});
    uint64_t sum = 0;
    for (const BulkCall& call : plan.Calls()) sum += call.pages;
    EXPECT_EQ(sum, ~uint64_t{0});
    EXPECT_EQ(plan.num_calls, algorithm == BulkAlgorithm::kSplitCarry ? 65 : 64);
  }
}

TEST(ForEachBulkCall, SingleStepsEndWhereAVisitSaysSo) {
  InterleaveState state;
  int visits = 0;
  ForEachBulkCall(BulkAlgorithm::kSingleStep, NodeMask::Of({0, 1}), WeightTable{}, state, 10,
                  [&](NodeId, uint64_t) { return ++visits < 3; });
  EXPECT_EQ(visits, 3);
  EXPECT_EQ(state, (InterleaveState{.prev = 0, .carry = 0}));
}

// The kernel steps once per node whether or not the node is asked for a page.
TEST(PlanInterleave, AsksEachNodeOnceAndEndsAfterAWholeRound) {
  BulkPlan plan;

  PlanInterleave(NodeMask::Of({0, 1, 3}), {.prev = 1, .carry = 0}, 7, plan);
  EXPECT_EQ(std::vector<BulkCall>(plan.Calls().begin(), plan.Calls().end()),
            (std::vector<BulkCall>{{3, 3}, {0, 2}, {1, 2}}));
  EXPECT_EQ(plan.end.prev, 1);

  PlanInterleave(NodeMask::Of({0, 1, 3}), {}, 1, plan);
  EXPECT_EQ(std::vector<BulkCall>(plan.Calls().begin(), plan.Calls().end()),
            (std::vector<BulkCall>{{0, 1}}));
  EXPECT_EQ(plan.end.prev, 3);

  PlanInterleave(NodeMask::Of({0, 1}), {.prev = 9, .carry = 3}, 0, plan);
  EXPECT_EQ(plan.num_calls, 0);
  EXPECT_EQ(plan.end, (InterleaveState{.prev = 9, .carry = 3}));
}

TEST(InterleaveByIndex, CountsThroughTheNodesOrTheirWeights) {
  const NodeMask mask = NodeMask::Of({1, 4});
  const WeightTable table = Weights({{1, 3}, {4, 1}});
  std::vector<NodeId> plain;
  std::vector<NodeId> weighted;
  for (uint64_t index = 0; index < 5; ++index) {
    plain.push_back(InterleaveByIndex(numa::PolicyMode::kInterleave, mask, table, index));
    weighted.push_back(
        InterleaveByIndex(numa::PolicyMode::kWeightedInterleave, mask, table, index));
  }
  EXPECT_EQ(plain, (std::vector<NodeId>{1, 4, 1, 4, 1}));
  EXPECT_EQ(weighted, (std::vector<NodeId>{1, 1, 1, 4, 1}));
}

}  // namespace
}  // namespace pipeyard::memory
