// Cuts an ended attempt into frames for the spool.
//
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "agent/runner/judge.h"
#include "pipeyard/v1/agent.pb.h"

namespace pipeyard::runner {

// A frame is closed when the next item would take it past this: small enough that a slow link is
// shared with heartbeats, large enough that an attempt is one frame as a rule.
inline constexpr size_t kTargetFrameBytes = 256 << 10;

// Frames without store, attempt and sequence, which the spool sets; the last one is final and holds
// the end. Each passes session::ValidateFrame() once the spool's fields are set. A result that
// cannot be carried so (a single item over 1 MiB, a malformed field) is dropped, and the attempt
// ends failed/bad_result with what was wrong.
std::vector<v1::Frame> MakeFrames(Judgement judgement, std::vector<v1::Output> outputs);

}  // namespace pipeyard::runner
