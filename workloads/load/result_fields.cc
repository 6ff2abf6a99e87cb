#include "workloads/load/result_fields.h"

#include "proto/settings/definition.h"

namespace pipeyard::load {
namespace {

v1::Direction DirectionOf(std::string_view better) {
  if (better == "higher") return v1::DIRECTION_HIGHER;
  if (better == "lower") return v1::DIRECTION_LOWER;
  return v1::DIRECTION_NONE;
}

}  // namespace

Status FillMetrics(std::string_view workload, const std::map<std::string_view, Measured>& measured,
                   v1::WorkerResult& result) {
  for (const settings::MetricDefinition& definition : settings::Metrics(workload)) {
    const auto found = measured.find(definition.name);
    if (found == measured.end()) {
      return Internal(std::string(workload) + " does not compute its declared metric " +
                      std::string(definition.name));
    }
    v1::Metric& metric = *result.add_metrics();
    metric.set_name(std::string(definition.name));
    metric.set_unit(std::string(definition.unit));
    metric.set_better(DirectionOf(definition.better));
    metric.set_reducer(std::string(definition.reducer));
    if (found->second.absent_reason.empty()) {
      metric.set_value(found->second.value);
    } else {
      metric.set_absent_reason(found->second.absent_reason);
    }
  }
  return Status::Ok();
}

void FillCounters(const Counts& counts, v1::WorkerResult& result) {
  for (const Count& count : counts) {
    v1::Counter& counter = *result.add_counters();
    counter.set_name(count.name);
    counter.set_unit(count.unit);
    counter.set_value(count.value);
  }
}

}  // namespace pipeyard::load
