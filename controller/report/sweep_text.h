// Sweeps as a person reads them: the expanded form, the plan, and what submitting came to.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "controller/spec/sweep.h"
#include "pipeyard/v1/control.pb.h"

namespace pipeyard::report {

// The expanded form of a valid sweep: what it fixes, what varies, every variant with its id.
std::string SweepText(const spec::Sweep& sweep, bool use_colour);

// Per host: cells, which are not applicable and why, blocks, trials and expected duration; then the
// notes.
std::string PlanText(const v1::Plan& plan, bool use_colour);

// "FILE:LINE:COL: what; meant", one line each, warnings marked.
std::string ProblemsText(const google::protobuf::RepeatedPtrField<v1::SpecProblem>& problems,
                         std::string_view file_name);

}  // namespace pipeyard::report
