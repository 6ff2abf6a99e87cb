// Which attempt a request for a log means.
//
// Thread safety: pure functions.
#pragma once

#include "base/status.h"
#include "pipeyard/v1/control.pb.h"

namespace pipeyard::core {

// The attempt of `run` that the request names, without outputs and resolved values. Errors:
// kInvalidArgument where the trial's name is none, or a prefix is ambiguous; kNotFound says what
// the run, or the trial, has.
Result<v1::AttemptLog> FindAttempt(const v1::Run& run, const v1::GetLogRequest& request);

}  // namespace pipeyard::core
