// How an attempt is judged, and what follows from it: the tables of what is retried.
//
// Thread safety: immutable data and pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "controller/scheduler/transitions.h"
#include "pipeyard/v1/agent.pb.h"
#include "pipeyard/v1/attempt.pb.h"
#include "storage/records.h"

namespace pipeyard::scheduler {

// Reason codes that the controller gives or acts upon (docs/PROTOCOL.md, "Reasons").
inline constexpr std::string_view kReasonHostCrashed = "host_crashed";
inline constexpr std::string_view kReasonHostAway = "host_away";
inline constexpr std::string_view kReasonHostUnavailable = "host_unavailable";
inline constexpr std::string_view kReasonDeadline = "controller_deadline";
inline constexpr std::string_view kReasonWaitedTooLong = "waited_too_long";
inline constexpr std::string_view kReasonSuperseded = "superseded";
inline constexpr std::string_view kReasonRunCanceled = "run_canceled";
inline constexpr std::string_view kReasonMissingMetric = "missing_metric";
inline constexpr std::string_view kReasonWrongUnit = "wrong_unit";
inline constexpr std::string_view kReasonBadMetric = "bad_metric";
inline constexpr std::string_view kReasonMalformedResult = "malformed_result";

struct Judgement {
  storage::Outcome outcome = storage::Outcome::kFailed;
  std::string reason_code;
  std::string reason_text;
  friend bool operator==(const Judgement&, const Judgement&) = default;
};

// The agent's word for how the attempt ended, except that an `ok` needs every metric that the
// workload declares (settings::Metrics): a finite value in the declared unit, or a reason for its
// absence where the workload permits one. An outcome that no agent may send is failed/
// malformed_result. `metrics` are those of all its frames.
Judgement Judge(std::string_view workload, const v1::AttemptEnd& end,
                std::span<const v1::Metric> metrics);

// What an outcome does to its trial.
struct OutcomeRule {
  storage::Outcome outcome;
  bool is_retried;  // back to pending while attempts remain
  // Otherwise, or when no attempts remain.
  TrialTrigger end_trigger;
};
std::span<const OutcomeRule> OutcomeRules();
const OutcomeRule& RuleOf(storage::Outcome outcome);

// Whether something of the attempt ran on the host: all but lost, canceled and not_applicable.
bool GivesOutcomeOfItsOwn(storage::Outcome outcome);

// What a refusal does to its trial. Only not_applicable ends it (and its cell).
struct RefusalRule {
  v1::Refused::Reason reason;
  TrialTrigger trigger;
  const char* word;  // "busy"
};
std::span<const RefusalRule> RefusalRules();
// nullptr for a reason that is none.
const RefusalRule* RuleOf(v1::Refused::Reason reason);

// 0 where the run is not terminal or finished with every cell that applies complete, else 6.
uint32_t ExitStatus(storage::RunState state, bool has_missing_cell);
uint32_t ExitStatus(storage::RunState state, std::span<const storage::CellRecord> cells);

}  // namespace pipeyard::scheduler
