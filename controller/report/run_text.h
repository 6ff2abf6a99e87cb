// Runs as a person reads them: the list, and one run with its cells, trials and attempts.
//
// Thread safety: pure functions.
#pragma once

#include <string>

#include "pipeyard/v1/control.pb.h"

namespace pipeyard::report {

std::string RunListText(const v1::ListRunsResponse& runs, bool use_colour);

// Summary; a line a cell; every attempt that was not ok with its reason; failed self-checks; where
// memory lay.
std::string RunText(const v1::Run& run, bool use_colour);

// "0190a1b2-c3d4 prealloc finished: 12 of 12 trials done" of any run.
std::string RunLine(const v1::RunSummary& summary);

}  // namespace pipeyard::report
