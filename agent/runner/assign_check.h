// What this agent can run, and the check of an assignment against it. Controllers are not trusted:
// a message that passed the session's checks of form may still command what makes no sense here.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "pipeyard/v1/agent.pb.h"
#include "workloads/commands/command_folder.h"

namespace pipeyard::runner {

// No trial of this project runs longer; beyond it the worker's timeout is an error of the
// controller. Runs of 30 days are many trials.
inline constexpr Nanos kMaxTrialTimeout = Minutes(7 * 24 * 60);
// HOST (253) / VARIANT (16) / INDEX, with room.
inline constexpr size_t kMaxTrialNameBytes = 512;

// "transfer:engine" and so on, for Hello.
std::vector<std::string> Capabilities();

// Errors, all for Refused(not_applicable): kInvalidArgument (a malformed field, named);
// kUnimplemented (a workload, target or setting that this version does not execute, named);
// kNotFound, kFailedPrecondition (a command that is not allowed here, or whose file is broken).
// `commands`: what this agent may run for workload `command`; nullptr: nothing.
Status CheckAssign(const v1::Assign& assign, const commands::CommandFolder* commands);

}  // namespace pipeyard::runner
