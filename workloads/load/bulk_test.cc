// Whole attempts of the bulk workload, small. Nothing here depends on how fast the machine is.
#include "workloads/load/bulk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "proto/settings/definition.h"
#include "workloads/load/load.h"
#include "workloads/load/result_testing.h"

namespace pipeyard::load {
namespace {

using settings::Value;
using testing::HasSubstr;
using namespace std::string_literals;

// Two CPUs and 64 MiB on each node.
constexpr char kTwoNodes[] =
    R"({"distances":[[10,21],[21,10]],"nodes":[{"cpus":2,"memory":67108864},)"
    R"({"cpus":2,"memory":67108864}],"remote_access":0})";

settings::Variant VariantOf(std::map<std::string, Value> values, bool has_two_nodes = false) {
  values.try_emplace("warmup", int64_t{2'000'000});
  if (has_two_nodes) {
    values["engine.topology"] = settings::JsonText{kTwoNodes};
  }
  Result<settings::Variant> variant = settings::MakeVariant("bulk", "engine", values);
  EXPECT_TRUE(variant.ok()) << variant.status().ToString();
  return std::move(*variant);
}

v1::WorkerResult Measure(const settings::Variant& variant) {
  return RunUntilItMoves([&](int64_t duration) {
    settings::Variant timed = variant;
    timed.values["duration"] = duration;
    return RunWorkload(timed);
  });
}

TEST(Bulk, GivesEveryMetricAndCountsItsPagesByNode) {
  const v1::WorkerResult result = Measure(VariantOf({{"tasks", int64_t{2}}}));

  ASSERT_EQ(result.outcome(), v1::OUTCOME_OK) << result.reason_text();
  ASSERT_EQ(static_cast<size_t>(result.metrics_size()), settings::Metrics("bulk").size());
  EXPECT_GT(result.metrics(0).value(), 0);
  EXPECT_GT(CounterOf(result, "operations"), 0);
  EXPECT_EQ(CounterOf(result, "bulk_refused_single"), 0);
}

// Of 8 pages under 3:1, six come from node 0 in one call and two from node 1 in another; single
// steps take eight calls.
TEST(Bulk, UnderWeightsTakesAsManyPagesAndCallsAsTheAlgorithmSays) {
  struct Case {
    const char* algorithm;
    int64_t calls_of_eight;
  };
  for (const Case& c : {Case{"folded-carry", 2}, Case{"single-step", 8}}) {
    const v1::WorkerResult result =
        Measure(VariantOf({{"engine.policy", "weighted-interleave:0=3,1=1"s},
                           {"engine.accounting", "off"s},
                           {"engine.interleave_bulk", std::string(c.algorithm)}},
                          /*has_two_nodes=*/true));

    ASSERT_EQ(result.outcome(), v1::OUTCOME_OK) << result.reason_text();
    EXPECT_TRUE(result.emulated());
    const int64_t of_node_0 = CounterOf(result, "node0_pages");
    const int64_t of_node_1 = CounterOf(result, "node1_pages");
    EXPECT_GT(of_node_1, 0);
    EXPECT_EQ(of_node_0, 3 * of_node_1);
    EXPECT_EQ(of_node_0 + of_node_1, 8 * CounterOf(result, "operations"));
    const int64_t calls =
        CounterOf(result, "node0_bulk_calls") + CounterOf(result, "node1_bulk_calls");
    EXPECT_EQ(calls, c.calls_of_eight * CounterOf(result, "operations")) << c.algorithm;
  }
}

TEST(Bulk, AnAccountedRequestGetsOnePage) {
  const v1::WorkerResult result = Measure(VariantOf({{"accounted", true}}));

  ASSERT_EQ(result.outcome(), v1::OUTCOME_OK) << result.reason_text();
  EXPECT_GT(CounterOf(result, "bulk_refused_accounted"), 0);
  EXPECT_EQ(CounterOf(result, "node0_pages"), CounterOf(result, "operations"));
}

TEST(Bulk, SwitchesOfPipesAreInert) {
  const v1::WorkerResult result = Measure(VariantOf({{"engine.page_cache", "prealloc"s},
                                                     {"engine.metadata_placement", "policy-node"s},
                                                     {"engine.accounting", "off"s}}));

  ASSERT_EQ(result.outcome(), v1::OUTCOME_OK) << result.reason_text();
  EXPECT_THAT(
      std::vector<std::string>(result.inert_switches().begin(), result.inert_switches().end()),
      testing::ElementsAre("engine.accounting", "engine.metadata_placement", "engine.page_cache"));
}

TEST(Bulk, PagesThatDoNotFitIntoMemoryAreRefused) {
  Surroundings surroundings;
  surroundings.memory_limits = [] { return std::vector<MemoryLimit>{{"the machine", 1 << 20}}; };

  const v1::WorkerResult result = RunWorkload(VariantOf({}), surroundings);

  EXPECT_EQ(result.outcome(), v1::OUTCOME_NOT_APPLICABLE);
  EXPECT_EQ(result.reason_code(), "memory_limit");
  EXPECT_THAT(result.reason_text(), HasSubstr("the machine leaves 1MiB"));
}

}  // namespace
}  // namespace pipeyard::load
