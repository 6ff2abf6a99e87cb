// A shell script that repeats one trial by hand, for `run reproduce`.
//
// Thread safety: pure.
#pragma once

#include <string>

#include "base/status.h"
#include "pipeyard/v1/control.pb.h"

namespace pipeyard::report {

// A bash script: what the attempt was and measured, as comments; a check that each program is
// there, and of pipeyard-worker's version; then the trial, by a public tool where one has the same
// pattern (messaging on target kernel: hackbench, under taskset and numactl), and by
// pipeyard-worker with the same settings. `version` is the one that the trial's programs are
// taken to have: this one's. Nothing of the run reaches the shell unquoted. Errors:
// kInvalidArgument where the run's settings are those of another version;
// kFailedPrecondition where the attempt started no program, or nothing public has its placement.
Result<std::string> ReproduceScript(const v1::AttemptLog& log, const std::string& version);

}  // namespace pipeyard::report
