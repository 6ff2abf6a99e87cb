// Reads a file of commands.d (grammar: docs/COMMANDS.md).
//
// Thread safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proto/yaml/problems.h"
#include "workloads/commands/command.h"

namespace pipeyard::commands {

struct FileReading {
  // Set where no problem is an error.
  std::optional<Command> command;
  std::vector<yaml::Problem> problems;  // by place
};

// The file of command `name`: one map under that name, which describes the command or names a
// preset (presets.h). Never stops at the first problem.
FileReading ReadCommandFile(std::string_view text, std::string_view name);

}  // namespace pipeyard::commands
