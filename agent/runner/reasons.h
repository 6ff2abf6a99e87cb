// Reason codes of the ends that the agent decides (docs/PROTOCOL.md, "Reasons"). A worker's own
// codes pass through unchanged.
//
// Thread safety: constants.
#pragma once

#include <string_view>

namespace pipeyard::runner {

// void
inline constexpr std::string_view kAgentRestarted = "agent_restarted";
inline constexpr std::string_view kHostRebooted = "host_rebooted";
inline constexpr std::string_view kTrialLockTimeout = "trial_lock_timeout";
inline constexpr std::string_view kAgentDisk = "agent_disk";
inline constexpr std::string_view kTrialLockUnavailable = "trial_lock_unavailable";
inline constexpr std::string_view kProgramsLeft = "programs_left";
// timeout
inline constexpr std::string_view kHung = "hung";
// canceled
inline constexpr std::string_view kCanceled = "canceled";
// failed
inline constexpr std::string_view kHostCrashed = "host_crashed";
inline constexpr std::string_view kSpawnFailed = "spawn_failed";
inline constexpr std::string_view kKilled = "killed";
inline constexpr std::string_view kExitStatus = "exit_status";
inline constexpr std::string_view kNoResult = "no_result";
inline constexpr std::string_view kBadResult = "bad_result";
inline constexpr std::string_view kWrongResult = "wrong_result";
inline constexpr std::string_view kMissingMetric = "missing_metric";
inline constexpr std::string_view kWrongUnit = "wrong_unit";
inline constexpr std::string_view kNotSupported = "not_supported";
// not_applicable
inline constexpr std::string_view kCommandNotAllowed = "command_not_allowed";
inline constexpr std::string_view kProgramMissing = "program_missing";

}  // namespace pipeyard::runner
