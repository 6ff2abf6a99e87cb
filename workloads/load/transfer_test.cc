// Whole attempts of tiny duration. Nothing here depends on how fast the machine is.
#include "workloads/load/transfer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "proto/settings/definition.h"
#include "workloads/load/load.h"
#include "workloads/load/result_testing.h"

namespace pipeyard::load {
namespace {

using settings::Value;

constexpr int64_t kMillisecond = 1'000'000;

settings::Variant VariantOf(const std::string& target, std::map<std::string, Value> values) {
  values.try_emplace("warmup", 10 * kMillisecond);
  Result<settings::Variant> variant = settings::MakeVariant("transfer", target, values);
  EXPECT_TRUE(variant.ok()) << variant.status().ToString();
  return std::move(*variant);
}

// What holds of every attempt that ended ok, whatever its variant and target.
void ExpectComplete(const v1::WorkerResult& result, const settings::Variant& variant) {
  ASSERT_EQ(result.outcome(), v1::OUTCOME_OK) << result.reason_code() << result.reason_text();
  ASSERT_EQ(static_cast<size_t>(result.metrics_size()), settings::Metrics("transfer").size());
  const auto declared = settings::Metrics("transfer");
  for (int i = 0; i < result.metrics_size(); ++i) {
    const v1::Metric& metric = result.metrics(i);
    EXPECT_EQ(metric.name(), declared[static_cast<size_t>(i)].name);
    if (metric.has_value()) {
      EXPECT_GT(metric.value(), 0) << metric.name();
    } else {
      EXPECT_TRUE(declared[static_cast<size_t>(i)].may_be_absent) << metric.name();
      EXPECT_EQ(metric.absent_reason(), "too-few-operations") << metric.name();
    }
  }
  ASSERT_EQ(result.histograms_size(), 1);
  const Result<Histogram> histogram = Histogram::FromProto(result.histograms(0));
  ASSERT_TRUE(histogram.ok());
  EXPECT_GT(histogram->count(), 0u);
  EXPECT_EQ(static_cast<int64_t>(histogram->count()), CounterOf(result, "messages_written"));
  EXPECT_GT(CounterOf(result, "reads"), 0);
  EXPECT_GE(CounterOf(result, "voluntary_context_switches"), 0);
  ASSERT_EQ(result.self_checks_size(), 1);
  EXPECT_EQ(result.self_checks(0).name(), "closed-loop-latency");
  EXPECT_GT(result.self_checks(0).expected(), 0);

  const int64_t page = 4096;
  const int64_t buffers = variant.Integer("writers") + variant.Integer("readers");
  const auto placement =
      std::find_if(result.placements().begin(), result.placements().end(),
                   [](const v1::Placement& p) { return p.memory() == "message-buffers"; });
  ASSERT_NE(placement, result.placements().end());
  EXPECT_EQ(placement->evidence(), "move_pages");
  int64_t pages = 0;
  for (const auto& [node, count] : placement->pages_per_node()) pages += count;
  EXPECT_EQ(pages, buffers * ((variant.Integer("message_bytes") + page - 1) / page));
}

// An attempt in which something moved: on a machine that is busy with other things, a short window
// may pass without.
v1::WorkerResult RunUntilItMoves(const std::string& target, std::map<std::string, Value> shape,
                                 settings::Variant& variant) {
  v1::WorkerResult result;
  for (int64_t duration = 60; duration <= 20'000; duration *= 4) {
    shape["duration"] = duration * kMillisecond;
    variant = VariantOf(target, shape);
    result = RunWorkload(variant);
    if (result.reason_code() != "no_operations") break;
  }
  return result;
}

// Target, kind of workers.
class TransferOf : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  static v1::WorkerResult Run(std::map<std::string, Value> shape, settings::Variant& variant) {
    shape["workers"] = std::get<1>(GetParam());
    return RunUntilItMoves(std::get<0>(GetParam()), std::move(shape), variant);
  }
};

TEST_P(TransferOf, MovesEveryByteInEveryShape) {
  const std::vector<std::map<std::string, Value>> shapes = {
      {},
      {{"writers", int64_t{2}}},
      {{"writers", int64_t{5}}, {"readers", int64_t{10}}},
      {{"message_bytes", int64_t{1}}, {"pipe_bytes", int64_t{4096}}},
      {{"message_bytes", int64_t{100}}, {"readers", int64_t{2}}},
      {{"message_bytes", int64_t{4097}}, {"pipe_bytes", int64_t{8192}}, {"writers", int64_t{3}}},
      {{"message_bytes", int64_t{1 << 20}}, {"pipe_bytes", int64_t{65536}}},
      {{"warmup", int64_t{0}}},
  };
  for (const auto& shape : shapes) {
    settings::Variant variant;
    const v1::WorkerResult result = Run(shape, variant);
    SCOPED_TRACE(settings::CanonicalText(variant));
    ExpectComplete(result, variant);
  }
}

TEST_P(TransferOf, ResolvesAPipeSizeThatTheTargetRoundsUp) {
  settings::Variant variant;
  const v1::WorkerResult result = Run({{"pipe_bytes", int64_t{5000}}}, variant);

  ExpectComplete(result, variant);
  ASSERT_EQ(result.resolved_size(), 1);
  EXPECT_EQ(result.resolved(0).name(), "pipe_bytes");
  EXPECT_EQ(result.resolved(0).resolved(), "8KiB");
}

INSTANTIATE_TEST_SUITE_P(Target, TransferOf,
                         testing::Combine(testing::Values("kernel", "engine"),
                                          testing::Values("threads", "processes")),
                         [](const auto& target) {
                           return std::get<0>(target.param) + "_" + std::get<1>(target.param);
                         });

TEST(TransferOnEngine, CountersShowWherePagesWereAllocated) {
  settings::Variant variant;
  const v1::WorkerResult two_page =
      RunUntilItMoves("engine", {{"engine.page_cache", std::string("two-page")}}, variant);
  const v1::WorkerResult prealloc =
      RunUntilItMoves("engine", {{"engine.page_cache", std::string("prealloc")}}, variant);

  EXPECT_EQ(CounterOf(two_page, "pages_allocated_outside_mutex"), 0);
  EXPECT_GT(CounterOf(two_page, "pages_allocated_under_mutex"), 0);
  EXPECT_GT(CounterOf(prealloc, "pages_allocated_outside_mutex"), 0);
  EXPECT_EQ(prealloc.inert_switches_size(), 0);
}

TEST(TransferOnEngine, ProvesWhereItsPagesLie) {
  settings::Variant variant;
  const v1::WorkerResult result = RunUntilItMoves("engine", {}, variant);

  ASSERT_EQ(result.placements_size(), 4);
  const v1::Placement& engine = result.placements(1);
  EXPECT_EQ(engine.memory(), "engine-pages");
  EXPECT_EQ(engine.evidence(), "move_pages");
  int64_t pages = 0;
  for (const auto& [node, count] : engine.pages_per_node()) pages += count;
  // At least a pipeful.
  EXPECT_GE(pages, variant.Integer("pipe_bytes") / 4096);
  EXPECT_EQ(result.placements(2).memory(), "engine-metadata");
  EXPECT_EQ(result.placements(2).evidence(), "move_pages");
  const v1::Placement& objects = result.placements(3);
  EXPECT_EQ(objects.memory(), "engine-objects");
  EXPECT_EQ(objects.evidence(), "engine-map");
  // An info, its first ring of 16 slots, and the one of the size asked for.
  EXPECT_EQ(objects.pages_per_node().begin()->second, 3);
  EXPECT_FALSE(result.emulated());
}

TEST(TransferOnEngine, OfAnEmulatedTopologyIsMarkedAndCountsByTheEnginesMap) {
  settings::Variant variant;
  const v1::WorkerResult result = RunUntilItMoves(
      "engine",
      {{"writers", int64_t{2}},
       {"readers", int64_t{2}},
       {"engine.policy", std::string("interleave:0,1")},
       {"engine.topology",
        settings::JsonText{
            R"({"distances":[[10,21],[21,10]],"nodes":[{"cpus":2,"memory":268435456},)"
            R"({"cpus":2,"memory":268435456}],"remote_access":120})"}}},
      variant);

  ASSERT_EQ(result.outcome(), v1::OUTCOME_OK) << result.reason_code() << result.reason_text();
  EXPECT_TRUE(result.emulated());
  EXPECT_EQ(result.inert_switches_size(), 0);
  ASSERT_EQ(result.placements_size(), 4);
  EXPECT_EQ(result.placements(1).evidence(), "emulated");
  EXPECT_EQ(result.placements(1).pages_per_node().size(), 2u);
  // Writers stand on the first node, readers on the second: one of the two is far from the pipe.
  EXPECT_GT(CounterOf(result, "remote_metadata_lines"), 0);
}

TEST(TransferOnEngine, APolicyOverNodesThatAreNotThereIsNotApplicable) {
  const v1::WorkerResult result =
      RunWorkload(VariantOf("engine", {{"engine.policy", std::string("bind:63")}}));

  EXPECT_EQ(result.outcome(), v1::OUTCOME_NOT_APPLICABLE);
  EXPECT_EQ(result.reason_code(), "no_such_node");
  EXPECT_THAT(result.reason_text(), testing::HasSubstr("63"));
}

TEST(TransferOnEngine, PreallocationIsInertForMessagesOfOnePage) {
  settings::Variant variant;
  const v1::WorkerResult result = RunUntilItMoves(
      "engine", {{"engine.page_cache", std::string("prealloc")}, {"message_bytes", int64_t{4096}}},
      variant);

  ASSERT_EQ(result.inert_switches_size(), 1);
  EXPECT_EQ(result.inert_switches(0), "engine.page_cache");
  EXPECT_EQ(CounterOf(result, "pages_allocated_outside_mutex"), 0);
}

TEST(Transfer, RefusesWhatThisVersionDoesNotExecute) {
  const v1::WorkerResult result =
      RunWorkload(VariantOf("kernel", {{"knob.ksm", std::string("1")}}));

  EXPECT_EQ(result.outcome(), v1::OUTCOME_FAILED);
  EXPECT_EQ(result.reason_code(), "not_supported");
  EXPECT_THAT(result.reason_text(), testing::HasSubstr("knob.ksm"));
  EXPECT_EQ(result.metrics_size(), 0);
}

}  // namespace
}  // namespace pipeyard::load
