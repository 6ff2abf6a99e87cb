#include "workloads/load/rate_numbers.h"

namespace pipeyard::load {
namespace {

constexpr char kTooFewOperations[] = "too-few-operations";
constexpr char kOverflow[] = "overflow";

}  // namespace

double UnitsPerSecond(const RateNumbers& numbers) {
  if (numbers.window <= Nanos(0)) return 0;
  const double seconds = static_cast<double>(numbers.window.count()) / 1e9;
  return static_cast<double>(numbers.window_units) / seconds;
}

Measured NanosPerUnit(const RateNumbers& numbers) {
  if (numbers.timed_units == 0) return {0, kTooFewOperations};
  return {static_cast<double>(numbers.latency_sum) / static_cast<double>(numbers.timed_units), ""};
}

Measured LatencyPercentile(const Histogram& latency, double percentile) {
  const Result<int64_t> value = latency.Percentile(percentile);
  if (value.ok()) return {static_cast<double>(*value), ""};
  const bool is_too_few = value.status().code() == StatusCode::kFailedPrecondition;
  return {0, is_too_few ? kTooFewOperations : kOverflow};
}

}  // namespace pipeyard::load
