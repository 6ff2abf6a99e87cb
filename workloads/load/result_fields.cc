#include "workloads/load/result_fields.h"

#include <utility>

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

void AddResolved(std::string_view name, std::string as_written, std::string resolved,
                 v1::WorkerResult& result) {
  v1::ResolvedValue& value = *result.add_resolved();
  value.set_name(std::string(name));
  value.set_as_written(std::move(as_written));
  value.set_resolved(std::move(resolved));
}

void FillJudgement(const Judgement& judgement, v1::WorkerResult& result) {
  result.set_outcome(judgement.outcome);
  result.set_reason_code(judgement.reason_code);
  result.set_reason_text(judgement.reason_text);
}

}  // namespace pipeyard::load
