#include "workloads/load/fault_numbers.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "proto/settings/definition.h"
#include "workloads/load/result_testing.h"

namespace pipeyard::load {
namespace {

// Two passes of 1,000 pages by two tasks.
FaultNumbers TwoPasses() {
  FaultNumbers numbers;
  numbers.passes = 2;
  numbers.pages = 2000;
  numbers.wall_ns = 1'000'000;
  numbers.busy_ns = 1'600'000;
  numbers.cpu_ns = 1'250'000;
  numbers.usage.minor_faults = 2003;
  return numbers;
}

std::map<std::string, double> MetricsOf(const v1::WorkerResult& result) {
  std::map<std::string, double> metrics;
  for (const v1::Metric& metric : result.metrics()) metrics[metric.name()] = metric.value();
  return metrics;
}

TEST(FaultNumbers, RatesAreThoseOfPft) {
  v1::WorkerResult result;

  ASSERT_TRUE(FillFaultResult(TwoPasses(), result).ok());

  const std::map<std::string, double> metrics = MetricsOf(result);
  EXPECT_DOUBLE_EQ(metrics.at("fault_rate"), 2'000'000);
  EXPECT_DOUBLE_EQ(metrics.at("cpu_fault_rate"), 1'600'000);
  EXPECT_DOUBLE_EQ(metrics.at("time_per_fault"), 800);
  EXPECT_EQ(metrics.size(), settings::Metrics("fault").size());
  EXPECT_EQ(CounterOf(result, "passes"), 2);
  EXPECT_EQ(CounterOf(result, "pages_touched"), 2000);
  EXPECT_EQ(CounterOf(result, "minor_faults"), 2003);
}

TEST(FaultNumbers, CpuTimeThatWasNotSeenToPassLeavesItsRateOut) {
  FaultNumbers numbers = TwoPasses();
  numbers.cpu_ns = 0;
  v1::WorkerResult result;

  ASSERT_TRUE(FillFaultResult(numbers, result).ok());

  EXPECT_EQ(result.metrics(1).name(), "cpu_fault_rate");
  EXPECT_EQ(result.metrics(1).absent_reason(), "no-time");
}

TEST(FaultNumbers, FaultsMayDifferFromPagesByATenth) {
  struct Case {
    int64_t minor_faults;
    bool passed;
  };
  for (const Case& c : {Case{2000, true}, Case{1800, true}, Case{2200, true}, Case{1799, false},
                        Case{2201, false}, Case{4, false}}) {
    FaultNumbers numbers = TwoPasses();
    numbers.usage.minor_faults = c.minor_faults;

    const v1::SelfCheck check = CheckMinorFaults(numbers);

    EXPECT_EQ(check.passed(), c.passed) << c.minor_faults;
    EXPECT_EQ(check.expected(), 2000);
    EXPECT_EQ(check.measured(), static_cast<double>(c.minor_faults));
  }
}

}  // namespace
}  // namespace pipeyard::load
