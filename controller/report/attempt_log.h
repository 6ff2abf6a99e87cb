// What one attempt printed, for `run log`.
//
// Thread safety: pure functions.
#pragma once

#include <string>

#include "pipeyard/v1/control.pb.h"

namespace pipeyard::report {

// "HOST/VARIANT/INDEX".
std::string TrialName(const v1::AttemptLog& log);

// A line on the attempt and its end; what host-relative settings became; then each stream under a
// heading, its lines as they were but for control characters, and a word where it was cut.
std::string LogText(const v1::AttemptLog& log);
// docs/JSON.md, "run-log".
std::string LogJson(const v1::AttemptLog& log);

}  // namespace pipeyard::report
