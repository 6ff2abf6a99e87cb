// From a command's argv with placeholders to the arguments of one attempt.
//
// Thread safety: pure functions.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "workloads/commands/command.h"

namespace pipeyard::commands {

// Names of the placeholders of one argument, in their order. Errors: kInvalidArgument: a brace
// without its mate.
Result<std::vector<std::string>> PlaceholdersOf(std::string_view argument);

// The arguments, argv[0] as the command has it. `given`: parameters as the sweep has them;
// `output_path`: what {output} becomes. Errors: kInvalidArgument names a parameter that is unknown,
// lacking or wrong.
Result<std::vector<std::string>> ExpandArguments(const Command& command,
                                                 const std::map<std::string, std::string>& given,
                                                 const std::string& output_path);

}  // namespace pipeyard::commands
