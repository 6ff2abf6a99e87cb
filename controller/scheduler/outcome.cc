#include "controller/scheduler/outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "proto/settings/definition.h"

namespace pipeyard::scheduler {
namespace {

using storage::Outcome;

// `lost` is the controller's own verdict. What an agent calls not_applicable after it accepted ends
// the cell just as a refusal does.
constexpr OutcomeRule kOutcomeRules[] = {
    {Outcome::kOk, false, TrialTrigger::kOk},
    {Outcome::kVoid, true, TrialTrigger::kExhaustedVoid},
    {Outcome::kFailed, true, TrialTrigger::kExhaustedFailed},
    {Outcome::kTimeout, true, TrialTrigger::kExhaustedFailed},
    {Outcome::kLost, true, TrialTrigger::kExhaustedFailed},
    {Outcome::kCanceled, false, TrialTrigger::kCancel},
    {Outcome::kNotApplicable, false, TrialTrigger::kNotApplicable},
};

constexpr RefusalRule kRefusalRules[] = {
    {v1::Refused::REASON_NOT_APPLICABLE, TrialTrigger::kNotApplicable, "not_applicable"},
    {v1::Refused::REASON_BUSY, TrialTrigger::kRefuse, "busy"},
    {v1::Refused::REASON_DRAINING, TrialTrigger::kRefuse, "draining"},
    {v1::Refused::REASON_DISK, TrialTrigger::kRefuse, "disk"},
};

Judgement Failed(std::string_view code, std::string text) {
  return {Outcome::kFailed, std::string(code), std::move(text)};
}

const v1::Metric* Find(std::span<const v1::Metric> metrics,
                       const settings::MetricDefinition& wanted) {
  const auto it = std::ranges::find_if(metrics, [&](const v1::Metric& metric) {
    return metric.name() == wanted.name && metric.reducer() == wanted.reducer;
  });
  return it == metrics.end() ? nullptr : &*it;
}

// Of a workload whose metrics only the host's command declares: there is one, and all have values.
Judgement JudgeUndeclared(std::span<const v1::Metric> metrics) {
  if (metrics.empty()) return Failed(kReasonMissingMetric, "no metric is among the results");
  for (const v1::Metric& metric : metrics) {
    if (!metric.has_value()) {
      return Failed(kReasonMissingMetric, fmt::format("{} has no value", metric.name()));
    }
    if (!std::isfinite(metric.value())) {
      return Failed(kReasonBadMetric, fmt::format("{} is not a finite number", metric.name()));
    }
  }
  return {Outcome::kOk, "", ""};
}

Judgement JudgeMetrics(std::string_view workload, std::span<const v1::Metric> metrics) {
  const settings::WorkloadDefinition* const known = settings::FindWorkload(workload);
  if (known != nullptr && !known->declares_metrics) return JudgeUndeclared(metrics);
  for (const settings::MetricDefinition& wanted : settings::Metrics(workload)) {
    const v1::Metric* metric = Find(metrics, wanted);
    if (metric == nullptr) {
      return Failed(kReasonMissingMetric,
                    fmt::format("{} ({}) is not among the results", wanted.name, wanted.reducer));
    }
    if (metric->unit() != wanted.unit) {
      return Failed(kReasonWrongUnit, fmt::format("{} came in '{}', declared is '{}'", wanted.name,
                                                  metric->unit(), wanted.unit));
    }
    if (!metric->has_value()) {
      if (wanted.may_be_absent && !metric->absent_reason().empty()) continue;
      return Failed(kReasonMissingMetric, fmt::format("{} has no value", wanted.name));
    }
    if (!std::isfinite(metric->value())) {
      return Failed(kReasonBadMetric, fmt::format("{} is not a finite number", wanted.name));
    }
  }
  return {Outcome::kOk, "", ""};
}

}  // namespace

Judgement Judge(std::string_view workload, const v1::AttemptEnd& end,
                std::span<const v1::Metric> metrics) {
  const auto as_told = [&](Outcome outcome) {
    return Judgement{outcome, end.reason_code(), end.reason_text()};
  };
  switch (end.outcome()) {
    case v1::OUTCOME_OK:
      return JudgeMetrics(workload, metrics);
    case v1::OUTCOME_VOID:
      return as_told(Outcome::kVoid);
    case v1::OUTCOME_FAILED:
      return as_told(Outcome::kFailed);
    case v1::OUTCOME_TIMEOUT:
      return as_told(Outcome::kTimeout);
    case v1::OUTCOME_CANCELED:
      return as_told(Outcome::kCanceled);
    case v1::OUTCOME_NOT_APPLICABLE:
      return as_told(Outcome::kNotApplicable);
    default:
      return Failed(kReasonMalformedResult,
                    fmt::format("the final frame has outcome {}", static_cast<int>(end.outcome())));
  }
}

std::span<const OutcomeRule> OutcomeRules() { return kOutcomeRules; }

const OutcomeRule& RuleOf(Outcome outcome) {
  return *std::ranges::find(kOutcomeRules, outcome, &OutcomeRule::outcome);
}

bool GivesOutcomeOfItsOwn(Outcome outcome) {
  return outcome != Outcome::kLost && outcome != Outcome::kCanceled &&
         outcome != Outcome::kNotApplicable;
}

std::span<const RefusalRule> RefusalRules() { return kRefusalRules; }

const RefusalRule* RuleOf(v1::Refused::Reason reason) {
  const auto it = std::ranges::find(kRefusalRules, reason, &RefusalRule::reason);
  return it == std::end(kRefusalRules) ? nullptr : &*it;
}

uint32_t ExitStatus(storage::RunState state, bool has_missing_cell) {
  if (!IsTerminal(state)) return 0;
  return state != storage::RunState::kFinished || has_missing_cell ? 6 : 0;
}

uint32_t ExitStatus(storage::RunState state, std::span<const storage::CellRecord> cells) {
  return ExitStatus(state, std::ranges::any_of(cells, [](const storage::CellRecord& cell) {
                      return cell.state != storage::CellState::kComplete &&
                             cell.state != storage::CellState::kNotApplicable;
                    }));
}

}  // namespace pipeyard::scheduler
