// Judges how an attempt ended, from what its worker left behind: nothing that is missing or
// doubtful becomes `ok`.
//
// Thread safety: pure functions.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/process.h"
#include "base/status.h"
#include "pipeyard/v1/attempt.pb.h"
#include "pipeyard/v1/worker.pb.h"
#include "proto/settings/definition.h"

namespace pipeyard::runner {

// Why the agent ended a worker, or did not start it.
enum class StopReason {
  kNone,
  kTimeout,      // it ran longer than trial_timeout
  kCanceled,     // the controller said so
  kAgentStops,   // this agent was told to end
  kLockTimeout,  // the machine's trial lock was not to be had in time
};

// What is known when an attempt has ended. Fields that do not apply keep their defaults.
struct Evidence {
  std::string attempt_id;
  std::string boot_id;
  StopReason stop_reason = StopReason::kNone;
  std::string stop_text;  // of the controller, for kCanceled
  Nanos trial_timeout{0};
  // The worker could not be prepared or started: how the attempt ends then.
  Status setup;
  v1::Outcome setup_outcome = v1::OUTCOME_FAILED;
  std::string_view setup_reason;
  bool was_started = false;
  ExitStatus exit;
  Nanos elapsed{0};  // from spawn to end, by the agent's CLOCK_MONOTONIC
  UtcTime started_utc{0};
  UtcTime ended_utc{0};
  // Content of the result file; nullopt where there is none or it is over the size limit, then
  // `result_error` says why.
  std::optional<std::string> result;
  std::string result_error;
  std::string stderr_tail;
};

// An ended attempt: the numbers that the worker gave (also those of a failed or void one; empty
// where there are none) and the verdict.
struct Judgement {
  v1::WorkerResult result;
  v1::AttemptEnd end;
};

Judgement Judge(const Evidence& evidence, std::span<const settings::MetricDefinition> declared);

// How an attempt ends that no worker of this life of the agent has run.
v1::AttemptEnd EndWithoutWorker(v1::Outcome outcome, std::string_view reason_code,
                                std::string_view reason_text, const std::string& boot_id,
                                UtcTime now);

}  // namespace pipeyard::runner
