// Whole attempts of the bandwidth workload, small. Nothing here depends on how fast the machine is.
#include "workloads/load/bandwidth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <string>
#include <tuple>

#include "proto/settings/definition.h"
#include "proto/settings/structure.h"
#include "workloads/load/load.h"
#include "workloads/load/result_testing.h"

namespace pipeyard::load {
namespace {

using settings::Value;
using testing::HasSubstr;
using namespace std::string_literals;

constexpr char kTwoNodes[] =
    R"({"nodes":[{"cpus":"2","memory":"32MiB"},{"cpus":"2","memory":"32MiB"}]})";
constexpr int64_t kMebibyte = 1 << 20;

v1::WorkerResult Attempt(const std::string& target, std::map<std::string, Value> values) {
  values.try_emplace("warmup", int64_t{2'000'000});
  values.try_emplace("region_bytes", 3 * kMebibyte);
  return RunUntilItMoves([&](int64_t duration) {
    values["duration"] = duration;
    const Result<settings::Variant> variant = settings::MakeVariant("bandwidth", target, values);
    EXPECT_TRUE(variant.ok()) << variant.status().ToString();
    return RunWorkload(*variant);
  });
}

// Pages of the region by node; empty where nobody told.
std::map<int, int64_t> RegionOf(const v1::WorkerResult& result) {
  for (const v1::Placement& placement : result.placements()) {
    if (placement.memory() != "region-pages") continue;
    return {placement.pages_per_node().begin(), placement.pages_per_node().end()};
  }
  return {};
}

// Target, kind of workers.
class BandwidthOn : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  static v1::WorkerResult Attempt(std::map<std::string, Value> values) {
    values["workers"] = std::get<1>(GetParam());
    return load::Attempt(std::get<0>(GetParam()), std::move(values));
  }
};

TEST_P(BandwidthOn, EveryOperationGivesEveryMetric) {
  for (const char* operation : {"read", "write", "copy", "triad"}) {
    const v1::WorkerResult result =
        Attempt({{"operation", std::string(operation)}, {"tasks", int64_t{2}}});

    ASSERT_EQ(result.outcome(), v1::OUTCOME_OK) << operation << ": " << result.reason_text();
    ASSERT_EQ(static_cast<size_t>(result.metrics_size()), settings::Metrics("bandwidth").size());
    EXPECT_GT(result.metrics(0).value(), 0) << operation;
    EXPECT_GT(CounterOf(result, "operations"), 0) << operation;
  }
}

TEST_P(BandwidthOn, FewerPagesThanArraysAreNotApplicable) {
  const v1::WorkerResult result =
      Attempt({{"operation", "triad"s}, {"region_bytes", int64_t{65536}}, {"tasks", int64_t{6}}});

  EXPECT_EQ(result.outcome(), v1::OUTCOME_NOT_APPLICABLE);
  EXPECT_EQ(result.reason_code(), "region_bytes");
  EXPECT_THAT(result.reason_text(), HasSubstr("6 tasks with 3 arrays each need 72KiB"));
}

TEST_P(BandwidthOn, TheRegionIsSharedOutToTheLastPage) {
  const v1::WorkerResult result = Attempt({{"tasks", int64_t{3}}});

  ASSERT_EQ(result.outcome(), v1::OUTCOME_OK) << result.reason_text();
  int64_t pages = 0;
  for (const auto& [node, count] : RegionOf(result)) pages += count;
  if (pages == 0) GTEST_SKIP() << "move_pages is not to be had here";
  EXPECT_EQ(pages, 3 * kMebibyte / ::sysconf(_SC_PAGESIZE));
}

INSTANTIATE_TEST_SUITE_P(Target, BandwidthOn,
                         testing::Combine(testing::Values("kernel", "engine"),
                                          testing::Values("threads", "processes")),
                         [](const auto& tested) {
                           return std::get<0>(tested.param) + "_" + std::get<1>(tested.param);
                         });

TEST(BandwidthOnTheKernel, TellsBandwidthByNode) {
  const BoundToNode0 bound;
  if (bound.error() != 0) GTEST_SKIP() << "set_mempolicy: " << ErrnoText(bound.error());
  const v1::WorkerResult result = Attempt("kernel", {{"placement.memory", "bind:0"s}});

  ASSERT_EQ(result.outcome(), v1::OUTCOME_OK) << result.reason_text();
  if (RegionOf(result).empty()) GTEST_SKIP() << "move_pages is not to be had here";
  // Its bytes are all there are: read counts each page once.
  const int64_t chunk = 64 * ::sysconf(_SC_PAGESIZE);
  EXPECT_EQ(CounterOf(result, "node0_bytes"), chunk * CounterOf(result, "operations"));
  EXPECT_GT(CounterOf(result, "node0_bandwidth"), 0);
}

// Three pages of four lie on node 0, in each array and each chunk.
TEST(BandwidthOnTheEngine, GoesThroughNodesInTheRatioOfTheirWeights) {
  const v1::WorkerResult result =
      Attempt("engine", {{"engine.topology", settings::ParseTopology(kTwoNodes).value()},
                         {"engine.policy", "weighted-interleave:0=3,1=1"s},
                         {"operation", "triad"s}});

  ASSERT_EQ(result.outcome(), v1::OUTCOME_OK) << result.reason_text();
  EXPECT_TRUE(result.emulated());
  EXPECT_EQ(RegionOf(result), (std::map<int, int64_t>{{0, 576}, {1, 192}}));
  const auto of_node_0 = static_cast<double>(CounterOf(result, "node0_bytes"));
  const auto of_node_1 = static_cast<double>(CounterOf(result, "node1_bytes"));
  EXPECT_GT(of_node_1, 0);
  EXPECT_DOUBLE_EQ(of_node_0, 3 * of_node_1);
}

TEST(BandwidthOnTheEngine, SwitchesOfAllocationAreInert) {
  const v1::WorkerResult result =
      Attempt("engine", {{"engine.fastpath", "on"s}, {"engine.page_cache", "prealloc"s}});

  ASSERT_EQ(result.outcome(), v1::OUTCOME_OK) << result.reason_text();
  EXPECT_THAT(
      std::vector<std::string>(result.inert_switches().begin(), result.inert_switches().end()),
      testing::ElementsAre("engine.fastpath", "engine.page_cache"));
}

}  // namespace
}  // namespace pipeyard::load
