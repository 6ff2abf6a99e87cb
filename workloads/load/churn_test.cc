// Whole attempts of the churn workload, small. Nothing here depends on how fast the machine is.
#include "workloads/load/churn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "proto/settings/definition.h"
#include "workloads/load/load.h"
#include "workloads/load/result_testing.h"

namespace pipeyard::load {
namespace {

using settings::Value;
using testing::HasSubstr;
using namespace std::string_literals;

// Target, kind of workers.
class ChurnOn : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  static v1::WorkerResult Run(std::map<std::string, Value> values) {
    values["workers"] = std::get<1>(GetParam());
    values.try_emplace("warmup", int64_t{2'000'000});
    return RunUntilItMoves([&](int64_t duration) {
      values["duration"] = duration;
      const Result<settings::Variant> variant =
          settings::MakeVariant("churn", std::get<0>(GetParam()), values);
      EXPECT_TRUE(variant.ok()) << variant.status().ToString();
      return RunWorkload(*variant);
    });
  }
};

TEST_P(ChurnOn, CreatesAndClosesPipesAndGivesEveryMetric) {
  for (const int64_t window : {1, 64}) {
    const v1::WorkerResult result = Run({{"tasks", int64_t{2}}, {"window", window}});

    ASSERT_EQ(result.outcome(), v1::OUTCOME_OK) << result.reason_text();
    ASSERT_EQ(static_cast<size_t>(result.metrics_size()), settings::Metrics("churn").size());
    EXPECT_GT(result.metrics(0).value(), 0);
    EXPECT_GT(CounterOf(result, "operations"), 0);
  }
}

TEST_P(ChurnOn, ResizesThroughSlabAndLargeRings) {
  const v1::WorkerResult result = Run({{"operation", "resize"s}, {"window", int64_t{2}}});

  ASSERT_EQ(result.outcome(), v1::OUTCOME_OK) << result.reason_text();
  EXPECT_GT(CounterOf(result, "resizes_slab"), 0);
  EXPECT_GT(CounterOf(result, "resizes_large"), 0);
  EXPECT_EQ(CounterOf(result, "resizes_busy"), 0);
}

// Of nine sizes, four are too small for ten slots with data (1, 2, 4 and 8).
TEST_P(ChurnOn, AResizeBelowWhatThePipeHoldsIsCountedAndEndsNothing) {
  const v1::WorkerResult result = Run({{"operation", "resize"s}, {"held_slots", int64_t{10}}});

  ASSERT_EQ(result.outcome(), v1::OUTCOME_OK) << result.reason_text();
  const int64_t busy = CounterOf(result, "resizes_busy");
  const int64_t all = CounterOf(result, "operations");
  EXPECT_EQ(busy + CounterOf(result, "resizes_slab") + CounterOf(result, "resizes_large"), all);
  // The window cuts a round at each end.
  EXPECT_NEAR(static_cast<double>(busy), 4.0 / 9.0 * static_cast<double>(all), 4.0);
}

TEST_P(ChurnOn, MoreHeldSlotsThanThePipeHasAreNotApplicable) {
  const v1::WorkerResult result = Run({{"operation", "resize"s}, {"held_slots", int64_t{1000}}});

  EXPECT_EQ(result.outcome(), v1::OUTCOME_NOT_APPLICABLE);
  EXPECT_EQ(result.reason_code(), "held_slots");
  EXPECT_THAT(result.reason_text(), HasSubstr("a pipe of pipe_bytes 64KiB has 16 slots"));
}

TEST_P(ChurnOn, PipesLargerThanTheTargetHasAreNotApplicable) {
  const v1::WorkerResult result = Run({{"pipe_bytes", int64_t{1} << 31}});

  EXPECT_EQ(result.outcome(), v1::OUTCOME_NOT_APPLICABLE);
  EXPECT_EQ(result.reason_code(), "pipe_size_limit");
}

INSTANTIATE_TEST_SUITE_P(Target, ChurnOn,
                         testing::Combine(testing::Values("kernel", "engine"),
                                          testing::Values("threads", "processes")),
                         [](const auto& tested) {
                           return std::get<0>(tested.param) + "_" + std::get<1>(tested.param);
                         });

TEST(ChurnOnEngine, CountsWhereItsObjectsWent) {
  const Result<settings::Variant> variant = settings::MakeVariant(
      "churn", "engine", {{"warmup", int64_t{0}}, {"duration", int64_t{20'000'000}}});
  ASSERT_TRUE(variant.ok());

  const v1::WorkerResult result = RunWorkload(*variant);

  ASSERT_EQ(result.outcome(), v1::OUTCOME_OK) << result.reason_text();
  int64_t objects = 0;
  for (const v1::Placement& placement : result.placements()) {
    if (placement.memory() != "engine-objects") continue;
    for (const auto& [node, count] : placement.pages_per_node()) objects += count;
  }
  // A pipe is two objects.
  EXPECT_GE(objects, 2 * CounterOf(result, "operations"));
}

}  // namespace
}  // namespace pipeyard::load
