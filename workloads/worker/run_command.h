// Workload `command`: runs one program of the agent's commands.d and reads its metrics from what it
// printed (docs/COMMANDS.md). No shell; the agent has resolved program, arguments and rules.
//
// Thread safety: one call at a time in a process, before it has threads: it becomes the reaper of
// its orphaned descendants.
#pragma once

#include <string>

#include "pipeyard/v1/worker.pb.h"

namespace pipeyard::worker {

// What the program prints is kept in the command's folder (program.stdout, program.stderr), which
// is also its working directory; the ends of both are repeated on this process's own streams.
// Returns when the program has ended and everything it started was killed; a program that does not
// end is the caller's caller's business, who kills the process group.
//
// The result lacks attempt_id and elapsed_ns. Outcomes: ok with a metric for each rule;
// failed/program_exit, failed/program_killed, failed/missing_metric (a rule found no value),
// failed/not_supported (a command without rules); not_applicable/program_missing.
v1::WorkerResult RunCommand(const v1::CommandToRun& command, const std::string& attempt_id);

}  // namespace pipeyard::worker
