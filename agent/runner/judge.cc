#include "agent/runner/judge.h"

#include <fmt/format.h>

#include <cmath>

#include "agent/runner/reasons.h"
#include "agent/runner/text.h"

namespace pipeyard::runner {
namespace {

// So that the last lines of a failing program fit into reason_text (4 KiB) with what stands before.
constexpr size_t kQuotedBytes = 1024;

struct Verdict {
  v1::Outcome outcome = v1::OUTCOME_FAILED;
  std::string_view reason_code;
  std::string reason_text;
};

std::string WithStderr(std::string what, const std::string& stderr_tail) {
  const std::string quoted = PrintableTail(stderr_tail, kQuotedBytes);
  if (!quoted.empty()) what += ": " + quoted;
  return what;
}

v1::Direction ToDirection(std::string_view better) {
  if (better == "higher") return v1::DIRECTION_HIGHER;
  if (better == "lower") return v1::DIRECTION_LOWER;
  return v1::DIRECTION_NONE;
}

std::optional<Verdict> CheckMetric(const v1::WorkerResult& result,
                                   const settings::MetricDefinition& declared) {
  const v1::Metric* found = nullptr;
  for (const v1::Metric& metric : result.metrics()) {
    if (metric.name() != declared.name) continue;
    if (found != nullptr) {
      return Verdict{v1::OUTCOME_FAILED, kBadResult,
                     fmt::format("the result has metric {} twice", declared.name)};
    }
    found = &metric;
  }
  if (found == nullptr) {
    return Verdict{v1::OUTCOME_FAILED, kMissingMetric,
                   fmt::format("the result lacks metric {}", declared.name)};
  }
  if (found->unit() != declared.unit || found->reducer() != declared.reducer ||
      found->better() != ToDirection(declared.better)) {
    return Verdict{v1::OUTCOME_FAILED, kWrongUnit,
                   fmt::format("metric {} is declared as {} of {}, {} is better; the result has {} "
                               "of {}",
                               declared.name, declared.reducer, declared.unit, declared.better,
                               found->reducer(), found->unit())};
  }
  const bool has_value = found->has_value() && std::isfinite(found->value());
  const bool is_absent_by_right =
      !found->has_value() && declared.may_be_absent && !found->absent_reason().empty();
  if (has_value || is_absent_by_right) return std::nullopt;
  return Verdict{v1::OUTCOME_FAILED, kMissingMetric,
                 fmt::format("metric {} has no value{}", declared.name,
                             found->absent_reason().empty() ? "" : ": " + found->absent_reason())};
}

bool IsWorkersVerdict(v1::Outcome outcome) {
  return outcome == v1::OUTCOME_VOID || outcome == v1::OUTCOME_FAILED ||
         outcome == v1::OUTCOME_NOT_APPLICABLE;
}

// What stands before any look at the result.
std::optional<Verdict> JudgeStop(const Evidence& evidence) {
  switch (evidence.stop_reason) {
    case StopReason::kNone:
      break;
    case StopReason::kTimeout:
      return Verdict{v1::OUTCOME_TIMEOUT, kHung,
                     WithStderr(fmt::format("the worker was killed after {}, the trial's timeout",
                                            FormatDuration(evidence.trial_timeout)),
                                evidence.stderr_tail)};
    case StopReason::kCanceled:
      return Verdict{v1::OUTCOME_CANCELED, kCanceled, evidence.stop_text};
    case StopReason::kAgentStops:
      return Verdict{v1::OUTCOME_VOID, kAgentRestarted, "the agent was stopped meanwhile"};
    case StopReason::kLockTimeout:
      return Verdict{v1::OUTCOME_VOID, kTrialLockTimeout,
                     "another trial held the machine's trial lock for too long"};
  }
  if (!evidence.setup.ok()) {
    return Verdict{evidence.setup_outcome, evidence.setup_reason, evidence.setup.message()};
  }
  return std::nullopt;
}

Verdict JudgeWorker(const Evidence& evidence, const Status& parsed, const v1::WorkerResult& result,
                    std::span<const settings::MetricDefinition> declared) {
  if (evidence.exit.signal != 0) {
    return {v1::OUTCOME_FAILED, kKilled,
            WithStderr("the worker was " + evidence.exit.ToString(), evidence.stderr_tail)};
  }
  // Its own words say more than its exit status.
  if (parsed.ok() && IsWorkersVerdict(result.outcome())) {
    return {result.outcome(), result.reason_code(), result.reason_text()};
  }
  if (evidence.exit.exit_code != 0) {
    return {v1::OUTCOME_FAILED, kExitStatus,
            WithStderr("the worker ended with " + evidence.exit.ToString(), evidence.stderr_tail)};
  }
  if (!evidence.result) {
    return {v1::OUTCOME_FAILED, kNoResult, WithStderr(evidence.result_error, evidence.stderr_tail)};
  }
  if (!parsed.ok()) {
    const bool is_other = parsed.code() == StatusCode::kFailedPrecondition;
    return {v1::OUTCOME_FAILED, is_other ? kWrongResult : kBadResult, parsed.message()};
  }
  if (result.outcome() != v1::OUTCOME_OK) {
    return {v1::OUTCOME_FAILED, kBadResult,
            fmt::format("the result's outcome is {}", static_cast<int>(result.outcome()))};
  }
  for (const settings::MetricDefinition& metric : declared) {
    if (std::optional<Verdict> verdict = CheckMetric(result, metric)) return *verdict;
  }
  return {v1::OUTCOME_OK, "", ""};
}

// kFailedPrecondition: a result of another attempt.
Status ParseResult(const Evidence& evidence, v1::WorkerResult& result) {
  if (!evidence.result) return NotFound(evidence.result_error);
  if (!result.ParseFromString(*evidence.result)) {
    result.Clear();
    return InvalidArgument("the result file is not a WorkerResult");
  }
  if (result.attempt_id() != evidence.attempt_id) {
    const std::string other = Printable(result.attempt_id(), 64);
    result.Clear();
    return FailedPrecondition(fmt::format("the result is of attempt '{}'", other));
  }
  return Status::Ok();
}

}  // namespace

Judgement Judge(const Evidence& evidence, std::span<const settings::MetricDefinition> declared) {
  Judgement judgement;
  const Status parsed = ParseResult(evidence, judgement.result);
  std::optional<Verdict> verdict = JudgeStop(evidence);
  if (!verdict) verdict = JudgeWorker(evidence, parsed, judgement.result, declared);

  v1::AttemptEnd& end = judgement.end;
  end = EndWithoutWorker(verdict->outcome, verdict->reason_code, verdict->reason_text,
                         evidence.boot_id, evidence.ended_utc);
  end.set_agent_started_utc_ns(evidence.started_utc.count());
  if (evidence.was_started) {
    const int64_t by_worker = judgement.result.elapsed_ns();
    end.set_elapsed_ns(by_worker > 0 ? by_worker : evidence.elapsed.count());
    end.set_exit_code(evidence.exit.exit_code);
    end.set_exit_signal(evidence.exit.signal);
  }
  end.set_emulated(judgement.result.emulated());
  return judgement;
}

v1::AttemptEnd EndWithoutWorker(v1::Outcome outcome, std::string_view reason_code,
                                std::string_view reason_text, const std::string& boot_id,
                                UtcTime now) {
  v1::AttemptEnd end;
  end.set_outcome(outcome);
  end.set_reason_code(std::string(reason_code));
  end.set_reason_text(Printable(reason_text, kMaxReasonTextBytes));
  end.set_agent_started_utc_ns(now.count());
  end.set_agent_ended_utc_ns(now.count());
  end.set_boot_id(boot_id);
  return end;
}

}  // namespace pipeyard::runner
