// What an earlier life of the agent left in its state folder, turned into what this one does.
//
// Thread safety: called once, before anything else uses the folder.
#pragma once

#include <string>
#include <vector>

#include "agent/paths.h"
#include "agent/runner/worker_runner.h"
#include "agent/spool/spool.h"
#include "base/clock.h"
#include "base/env.h"

namespace pipeyard::agent {

struct Recovery {
  // Accepted, never begun: to be run.
  std::vector<v1::Assign> to_run;
  // Interrupted: their ends, to be spooled as those of attempts that ran in this life.
  std::vector<runner::EndedAttempt> ended;
};

// Kills workers that still run. Removes the folders of attempts that need none any more. Errors:
// kDeadlineExceeded (a worker does not end), or the Env's for what must not be guessed.
Result<Recovery> RecoverAttempts(Env& env, const AgentPaths& paths, const spool::Spool& spool,
                                 const Clock& clock, const std::string& boot_id);

}  // namespace pipeyard::agent
