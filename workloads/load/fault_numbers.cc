#include "workloads/load/fault_numbers.h"

#include <cmath>

#include "workloads/load/result_fields.h"

namespace pipeyard::load {
namespace {

constexpr double kFaultTolerance = 0.10;

// Pages a second of a time in ns; absent where no time was seen to pass.
Measured PagesPerSecond(uint64_t pages, uint64_t ns) {
  if (ns == 0) return {0, "no-time"};
  return {static_cast<double>(pages) * 1e9 / static_cast<double>(ns), ""};
}

}  // namespace

v1::SelfCheck CheckMinorFaults(const FaultNumbers& numbers) {
  v1::SelfCheck check;
  check.set_name("minor-faults");
  const auto expected = static_cast<double>(numbers.pages);
  const auto measured = static_cast<double>(numbers.usage.minor_faults);
  check.set_expected(expected);
  check.set_measured(measured);
  check.set_tolerance(kFaultTolerance);
  check.set_passed(std::abs(measured - expected) <= kFaultTolerance * expected);
  return check;
}

Status FillFaultResult(const FaultNumbers& numbers, v1::WorkerResult& result) {
  Measured time_per_fault;
  if (numbers.pages == 0) {
    time_per_fault.absent_reason = "too-few-operations";
  } else {
    time_per_fault.value =
        static_cast<double>(numbers.busy_ns) / static_cast<double>(numbers.pages);
  }
  PIPEYARD_RETURN_IF_ERROR(
      FillMetrics("fault",
                  {{"fault_rate", PagesPerSecond(numbers.pages, numbers.wall_ns)},
                   {"cpu_fault_rate", PagesPerSecond(numbers.pages, numbers.cpu_ns)},
                   {"time_per_fault", time_per_fault}},
                  result));
  const auto count = [](const char* name, const char* unit, uint64_t value) {
    return Count{name, unit, static_cast<int64_t>(value)};
  };
  FillCounters(
      {count("passes", "count", numbers.passes), count("pages_touched", "count", numbers.pages),
       count("pass_time", "ns", numbers.wall_ns), count("pass_cpu_time", "ns", numbers.cpu_ns)},
      result);
  FillCounters(ToCounts(numbers.usage), result);
  FillCounters(numbers.counts, result);
  return Status::Ok();
}

}  // namespace pipeyard::load
