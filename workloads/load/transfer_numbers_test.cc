#include "workloads/load/transfer_numbers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "proto/settings/definition.h"

namespace pipeyard::load {
namespace {

// Two writers of 64 KiB messages: 1,162 MiB/s over 10 s, the seed's measurement, whose closed loop
// is known to hold.
TransferParameters SeedParameters() {
  TransferParameters parameters;
  parameters.writers = 2;
  parameters.message_bytes = 65536;
  parameters.pipe_bytes = 1 << 20;
  return parameters;
}

TransferNumbers NumbersOf(int64_t latency, uint64_t count, uint64_t window_bytes, Nanos window) {
  TransferNumbers numbers;
  numbers.window = window;
  numbers.window_bytes = window_bytes;
  numbers.latency.RecordMany(latency, count);
  numbers.latency_sum = static_cast<uint64_t>(latency) * count;
  return numbers;
}

TransferNumbers SeedNumbers(int64_t latency) {
  return NumbersOf(latency, 185920, uint64_t{185920} * 65536, Seconds(10));
}

const v1::Metric* FindMetric(const v1::WorkerResult& result, const std::string& name) {
  for (const v1::Metric& metric : result.metrics()) {
    if (metric.name() == name) return &metric;
  }
  return nullptr;
}

TEST(ClosedLoop, HoldsForThePublishedMeasurement) {
  const v1::SelfCheck check = CheckClosedLoop(SeedParameters(), SeedNumbers(107546));

  EXPECT_EQ(check.name(), "closed-loop-latency");
  EXPECT_NEAR(check.expected(), 2 * 65536 / (185920.0 * 65536 / 10) * 1e9, 1e-6);
  EXPECT_EQ(check.measured(), 107546);
  EXPECT_TRUE(check.passed());
}

TEST(ClosedLoop, ToleranceIsTheSumOfItsParts) {
  const TransferNumbers numbers = SeedNumbers(107546);
  const v1::SelfCheck check = CheckClosedLoop(SeedParameters(), numbers);

  const double undelivered = (2 * 65536.0 + 1048576.0) / static_cast<double>(numbers.window_bytes);
  const double cut_call = 107546 / 1e10;
  EXPECT_DOUBLE_EQ(check.tolerance(), 0.01 + undelivered + cut_call + 100 / check.expected());
}

TEST(ClosedLoop, BreaksWhereLatencyAndThroughputDisagree) {
  EXPECT_FALSE(CheckClosedLoop(SeedParameters(), SeedNumbers(107546 * 95 / 100)).passed());
  EXPECT_FALSE(CheckClosedLoop(SeedParameters(), SeedNumbers(107546 * 105 / 100)).passed());
}

TEST(ClosedLoop, OfNothingDoesNotPass) {
  EXPECT_FALSE(CheckClosedLoop(SeedParameters(), TransferNumbers()).passed());
}

TEST(TransferResult, HasEveryDeclaredMetricWithItsUnitAndReducer) {
  v1::WorkerResult result;
  ASSERT_TRUE(FillTransferResult(SeedParameters(), SeedNumbers(107546), result).ok());

  ASSERT_EQ(static_cast<size_t>(result.metrics_size()), settings::Metrics("transfer").size());
  for (const settings::MetricDefinition& definition : settings::Metrics("transfer")) {
    const v1::Metric* metric = FindMetric(result, std::string(definition.name));
    ASSERT_NE(metric, nullptr) << definition.name;
    EXPECT_EQ(metric->unit(), definition.unit);
    EXPECT_EQ(metric->reducer(), definition.reducer);
    EXPECT_EQ(metric->better(),
              definition.better == "higher" ? v1::DIRECTION_HIGHER : v1::DIRECTION_LOWER);
    EXPECT_TRUE(metric->has_value()) << definition.name;
  }
  EXPECT_EQ(FindMetric(result, "throughput")->value(), 185920.0 * 65536 / 10);
  EXPECT_EQ(FindMetric(result, "latency_mean")->value(), 107546);
  EXPECT_EQ(FindMetric(result, "latency_max")->value(), 107546);
  EXPECT_EQ(FindMetric(result, "latency_p99")->value(),
            static_cast<double>(Histogram::HighestOf(Histogram::IndexOf(107546))));
}

TEST(TransferResult, LeavesOutPercentilesOfTooFewWritesAndSaysWhy) {
  v1::WorkerResult result;
  ASSERT_TRUE(
      FillTransferResult(SeedParameters(), NumbersOf(1000, 367, 367 * 65536, Seconds(1)), result)
          .ok());

  for (const char* name : {"latency_p99", "latency_p999"}) {
    EXPECT_FALSE(FindMetric(result, name)->has_value()) << name;
    EXPECT_EQ(FindMetric(result, name)->absent_reason(), "too-few-operations") << name;
  }
  EXPECT_TRUE(FindMetric(result, "latency_p90")->has_value());
  EXPECT_EQ(FindMetric(result, "latency_p90")->absent_reason(), "");
}

TEST(TransferResult, CarriesCountersAndHistogram) {
  TransferNumbers numbers = SeedNumbers(107546);
  numbers.counts = {{"short_reads", "count", 7}};
  v1::WorkerResult result;
  ASSERT_TRUE(FillTransferResult(SeedParameters(), numbers, result).ok());

  ASSERT_EQ(result.counters_size(), 1);
  EXPECT_EQ(result.counters(0).name(), "short_reads");
  EXPECT_EQ(result.counters(0).value(), 7);
  ASSERT_EQ(result.histograms_size(), 1);
  EXPECT_EQ(result.histograms(0).name(), "latency");
  EXPECT_EQ(result.histograms(0).unit(), "ns");
  const Result<Histogram> histogram = Histogram::FromProto(result.histograms(0));
  ASSERT_TRUE(histogram.ok());
  EXPECT_EQ(histogram->count(), 185920u);
}

TEST(Counts, DifferenceIsWhatWasAddedMeanwhile) {
  const Counts difference = Difference({{"faults", "count", 5}, {"gone", "count", 1}},
                                       {{"faults", "count", 7}, {"new", "count", 3}});

  ASSERT_EQ(difference.size(), 2u);
  EXPECT_EQ(difference[0].name, "faults");
  EXPECT_EQ(difference[0].value, 2);
  EXPECT_EQ(difference[1].name, "new");
  EXPECT_EQ(difference[1].value, 3);
}

}  // namespace
}  // namespace pipeyard::load
