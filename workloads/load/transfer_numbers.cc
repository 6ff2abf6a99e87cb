#include "workloads/load/transfer_numbers.h"

#include <cmath>
#include <map>
#include <string>
#include <string_view>

#include "workloads/load/rate_numbers.h"
#include "workloads/load/result_fields.h"

namespace pipeyard::load {
namespace {

constexpr char kTooFewOperations[] = "too-few-operations";

constexpr double kBaseTolerance = 0.01;
// Two clock readings, one histogram update and the loop around them: 50 ns measured, doubled for
// slower machines.
constexpr double kNanosBetweenCalls = 100;

double InSeconds(Nanos duration) { return static_cast<double>(duration.count()) / 1e9; }

double MeanLatency(const TransferNumbers& numbers) {
  if (numbers.latency.count() == 0) return 0;
  return static_cast<double>(numbers.latency_sum) / static_cast<double>(numbers.latency.count());
}

Measured LatencyOfAll(const TransferNumbers& numbers, double value) {
  return {value, numbers.latency.count() == 0 ? kTooFewOperations : ""};
}

std::map<std::string_view, Measured> Measure(const TransferNumbers& numbers) {
  const Histogram& latency = numbers.latency;
  return {{"throughput", {Throughput(numbers), ""}},
          {"latency_mean", LatencyOfAll(numbers, MeanLatency(numbers))},
          {"latency_p50", LatencyPercentile(latency, 50)},
          {"latency_p90", LatencyPercentile(latency, 90)},
          {"latency_p99", LatencyPercentile(latency, 99)},
          {"latency_p999", LatencyPercentile(latency, 99.9)},
          {"latency_max", LatencyOfAll(numbers, static_cast<double>(latency.max()))}};
}

}  // namespace

double Throughput(const TransferNumbers& numbers) {
  if (numbers.window <= Nanos(0)) return 0;
  return static_cast<double>(numbers.window_bytes) / InSeconds(numbers.window);
}

v1::SelfCheck CheckClosedLoop(const TransferParameters& parameters,
                              const TransferNumbers& numbers) {
  v1::SelfCheck check;
  check.set_name("closed-loop-latency");
  const double in_flight =
      static_cast<double>(parameters.writers) * static_cast<double>(parameters.message_bytes);
  const double throughput = Throughput(numbers);
  check.set_measured(MeanLatency(numbers));
  if (throughput <= 0) return check;
  const double expected = in_flight / throughput * 1e9;
  const double undelivered = (in_flight + static_cast<double>(parameters.pipe_bytes)) /
                             static_cast<double>(numbers.window_bytes);
  const double cut_call =
      static_cast<double>(numbers.latency.max()) / static_cast<double>(numbers.window.count());
  check.set_expected(expected);
  check.set_tolerance(kBaseTolerance + undelivered + cut_call + kNanosBetweenCalls / expected);
  check.set_passed(std::abs(check.measured() - expected) <= check.tolerance() * expected);
  return check;
}

Status FillTransferResult(const TransferParameters& parameters, const TransferNumbers& numbers,
                          v1::WorkerResult& result) {
  PIPEYARD_RETURN_IF_ERROR(FillMetrics("transfer", Measure(numbers), result));
  FillCounters(numbers.counts, result);
  v1::Histogram& histogram = *result.add_histograms();
  histogram.set_name("latency");
  histogram.set_unit("ns");
  numbers.latency.ToProto(histogram);
  *result.add_self_checks() = CheckClosedLoop(parameters, numbers);
  return Status::Ok();
}

}  // namespace pipeyard::load
