// A resolved command between the agent and its worker (proto/pipeyard/v1/worker.proto).
//
// Thread safety: pure functions but for the program's file, which is read.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/env.h"
#include "base/status.h"
#include "pipeyard/v1/worker.pb.h"
#include "workloads/commands/command.h"

namespace pipeyard::commands {

// What stands in the environment of a program of that attempt, and of everything it starts: by it
// they are found again.
std::string AttemptVariable(const std::string& attempt_id);

// The file that {output} names.
std::string OutputPath(const std::string& folder);

// Finds and hashes the program and completes its arguments. `folder` is the attempt's own. Errors:
// kInvalidArgument: a parameter is unknown, lacking or wrong; kNotFound: the program is missing.
Result<v1::CommandToRun> ResolveCommand(const Command& command,
                                        const std::map<std::string, std::string>& given,
                                        const std::string& folder);

// Errors: kInvalidArgument for a rule that no agent of this version sends.
Result<std::vector<ReadRule>> RulesFromProto(const v1::CommandToRun& command);

v1::Direction DirectionFromWord(std::string_view better);

}  // namespace pipeyard::commands
