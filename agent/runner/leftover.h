// Finds and kills what an earlier life of the agent left running.
//
// Thread safety: thread-compatible; touches only processes that name this attempt's request file,
// or this attempt in their environment.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "agent/paths.h"
#include "base/env.h"
#include "base/status.h"
#include "base/units.h"

namespace pipeyard::runner {

// "PID START_TICKS" into AttemptPaths::Worker(), for KillLeftoverWorker(). Not synced: it is of use
// in this boot only.
Status RecordWorker(Env& env, const agent::AttemptPaths& paths, pid_t pid);

// Processes whose command line has `argument` as one of its words. Other users' processes count as
// well; the caller's own does not.
std::vector<pid_t> FindProcessesWithArgument(const std::string& argument);

// Processes that a program of the attempt's commands is or started, wherever they moved to: their
// environment names the attempt (v1::CommandToRun). Only those that this user may look into.
std::vector<pid_t> FindProgramsOf(const std::string& attempt_id);

// Kills them and waits until they are gone. Errors: kDeadlineExceeded where one still lives after
// `patience`.
Status KillProgramsOf(const std::string& attempt_id, Nanos patience);

// Kills the recorded worker's process group, and every process that was started with this attempt's
// request file (the agent may have died between spawning and recording), and the programs of its
// command, and waits until they are gone. Errors: kDeadlineExceeded where one still lives after
// `patience`.
Status KillLeftoverWorker(Env& env, const agent::AttemptPaths& paths, Nanos patience);

}  // namespace pipeyard::runner
