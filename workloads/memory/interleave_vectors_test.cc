#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "workloads/memory/interleave.h"
#include "workloads/memory/interleave_testing.h"

namespace pipeyard::memory {
namespace {

using nlohmann::json;
using Calls = std::vector<std::pair<int, uint64_t>>;
using PerNode = std::map<numa::NodeId, uint64_t>;

json Vectors() {
  std::ifstream file(PIPEYARD_SOURCE_DIR "/tests/vectors/weighted_interleave.json");
  return json::parse(file);
}

struct Case {
  explicit Case(const json& vector) : pages(vector["nr_pages"].get<uint64_t>()) {
    for (const int node : vector["policy_nodes"]) mask.Add(node);
    for (const auto& [node, weight] : vector["weights"].items())
      table[std::stoi(node)] = weight.get<uint8_t>();
    start.prev = vector["start"]["il_prev"].get<uint8_t>();
    start.carry = vector["start"]["il_weight"].get<uint8_t>();
  }

  BulkPlan Plan(BulkAlgorithm algorithm) const {
    BulkPlan plan;
    PlanBulk(algorithm, mask, table, start, pages, plan);
    return plan;
  }

  numa::NodeMask mask;
  WeightTable table;
  InterleaveState start;
  uint64_t pages;
};

InterleaveState StateOf(const json& pair) {
  return {.prev = pair[0].get<uint8_t>(), .carry = pair[1].get<uint8_t>()};
}

Calls CallsOf(const BulkPlan& plan) {
  Calls calls;
  for (const BulkCall& call : plan.Calls()) calls.emplace_back(call.node, call.pages);
  return calls;
}

PerNode PerNodeOf(const json& pages) {
  PerNode per_node;
  for (const auto& [node, count] : pages.items()) {
    if (count.get<uint64_t>() > 0) per_node[std::stoi(node)] = count.get<uint64_t>();
  }
  return per_node;
}

TEST(InterleaveVectors, SingleStepsTakeTheNodesAndEndInTheStateOfEachVector) {
  const json vectors = Vectors()["vectors"];
  for (const json& vector : vectors) {
    SCOPED_TRACE(vector["id"].get<std::string>());
    const Case c(vector);
    const json& expect = vector["expect"];

    InterleaveState state = c.start;
    std::vector<int> sequence;
    PerNode per_node;
    ForEachBulkCall(BulkAlgorithm::kSingleStep, c.mask, c.table, state, c.pages,
                    [&](numa::NodeId node, uint64_t pages) {
                      EXPECT_EQ(pages, 1u);
                      sequence.push_back(node);
                      per_node[node] += pages;
                      return true;
                    });

    EXPECT_EQ(sequence, expect["single_step_sequence"].get<std::vector<int>>());
    EXPECT_EQ(per_node, PerNodeOf(expect["per_node"]));
    EXPECT_EQ(state, StateOf(expect["end_raw"]));
    EXPECT_EQ(Canonical(c.mask, c.table, state), StateOf(expect["end_canonical"]));
  }
}

TEST(InterleaveVectors, FoldedCarryPlansTheCallsAndTheRawEndOfEachVector) {
  const json vectors = Vectors()["vectors"];
  ASSERT_EQ(vectors.size(), 14u);
  for (const json& vector : vectors) {
    SCOPED_TRACE(vector["id"].get<std::string>());
    const Case c(vector);
    const json& expect = vector["expect"];

    const BulkPlan plan = c.Plan(BulkAlgorithm::kFoldedCarry);

    EXPECT_EQ(CallsOf(plan), expect["fold_calls"].get<Calls>());
    EXPECT_EQ(plan.num_calls, expect["fold_call_count"].get<int>());
    EXPECT_EQ(PagesPerNode(plan), PerNodeOf(expect["per_node"]));
    EXPECT_EQ(plan.end, StateOf(expect["end_raw"]));
    EXPECT_EQ(Canonical(c.mask, c.table, plan.end), StateOf(expect["end_canonical"]));
  }
}

TEST(InterleaveVectors, SplitCarryPlansTheCallsAndTheEndOfUpstream) {
  const json vectors = Vectors()["vectors"];
  for (const json& vector : vectors) {
    SCOPED_TRACE(vector["id"].get<std::string>());
    const Case c(vector);
    const json& expect = vector["upstream_before"];

    const BulkPlan plan = c.Plan(BulkAlgorithm::kSplitCarry);

    EXPECT_EQ(CallsOf(plan), expect["calls"].get<Calls>());
    EXPECT_EQ(plan.num_calls, expect["call_count"].get<int>());
    EXPECT_EQ(plan.end, StateOf(expect["end_raw"]));
    EXPECT_EQ(PagesPerNode(plan), PerNodeOf(vector["expect"]["per_node"]));
    EXPECT_EQ(Canonical(c.mask, c.table, plan.end), StateOf(vector["expect"]["end_canonical"]));
  }
}

// `patch1of2` of the vectors is the first half of the posted series, which kept the split calls:
// its end states are those of the posted patch where there is no carry to misplace.
TEST(InterleaveVectors, PostedPatchComputesItsKnownWrongValues) {
  const json vectors = Vectors()["vectors"];
  for (const json& vector : vectors) {
    SCOPED_TRACE(vector["id"].get<std::string>());
    const Case c(vector);
    const json& expect = vector["seed3_as_posted"];

    const BulkPlan plan = c.Plan(BulkAlgorithm::kPostedPatch);

    EXPECT_EQ(CallsOf(plan), expect["calls"].get<Calls>());
    EXPECT_EQ(PagesPerNode(plan), PerNodeOf(expect["per_node"]));
    EXPECT_EQ(plan.end, StateOf(expect["end_raw"]));
    EXPECT_EQ(PagesPerNode(plan) == PerNodeOf(vector["expect"]["per_node"]),
              expect["counts_ok"].get<bool>());
    EXPECT_EQ(Canonical(c.mask, c.table, plan.end) == StateOf(vector["expect"]["end_canonical"]),
              expect["state_ok"].get<bool>());
    if (c.start.carry == 0) {
      EXPECT_EQ(plan.end, StateOf(vector["patch1of2"]["end_raw"]));
      EXPECT_EQ(expect["state_ok"], vector["patch1of2"]["state_ok"]);
    }
  }
}

TEST(InterleaveVectors, AShortCallIsNotMadeUpElsewhereAndTheStateMovesAsPlanned) {
  const json vectors = Vectors()["failure_vectors"];
  ASSERT_EQ(vectors.size(), 2u);
  for (const json& vector : vectors) {
    for (const auto& [field, algorithm] : {std::pair{"upstream_before", BulkAlgorithm::kSplitCarry},
                                           std::pair{"fold", BulkAlgorithm::kFoldedCarry}}) {
      SCOPED_TRACE(vector["id"].get<std::string>() + " " + field);
      const Case c(vector);
      const json& expect = vector[field];
      PerNode free = PerNodeOf(vector["free_pages"]);

      InterleaveState state = c.start;
      Calls calls;
      std::vector<uint64_t> got;
      ForEachBulkCall(algorithm, c.mask, c.table, state, c.pages,
                      [&](numa::NodeId node, uint64_t pages) {
                        calls.emplace_back(node, pages);
                        got.push_back(std::min(pages, free[node]));
                        free[node] -= got.back();
                        return got.back() == pages;
                      });

      uint64_t total = 0;
      for (const uint64_t pages : got) total += pages;
      EXPECT_EQ(calls, expect["calls"].get<Calls>());
      EXPECT_EQ(got, expect["got"].get<std::vector<uint64_t>>());
      EXPECT_EQ(total, expect["total"].get<uint64_t>());
      EXPECT_EQ(state, StateOf(expect["end_raw"]));
      EXPECT_EQ(Canonical(c.mask, c.table, state), StateOf(expect["end_canonical"]));
    }
  }
}

}  // namespace
}  // namespace pipeyard::memory
