// Command: a program that an agent may run as a workload, with what it may be given and how its
// output is read (docs/COMMANDS.md). A value; who runs it is workloads/worker.
//
// Thread safety: values.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "proto/settings/command_parameters.h"

namespace pipeyard::commands {

// Where a rule reads.
enum class Source { kStdout, kStderr, kFile };

// One metric: where its number stands in the output.
struct ReadRule {
  enum class Kind {
    kRegex,  // POSIX extended, matched against each line, one capture
    kJson,   // a path such as .lat.p99 or .runs[0].ops
    kYaml,   // likewise
  };

  std::string metric = {};
  Kind kind = Kind::kRegex;
  std::string pattern = {};
  Source source = Source::kStdout;
  std::string unit = {};    // as the program prints it; FindMetricUnit() knows it
  std::string better = {};  // "higher", "lower", "none"

  friend bool operator==(const ReadRule&, const ReadRule&) = default;
};

struct Command {
  std::string name;
  std::string description;
  // The Debian package that has the program; empty where none does.
  std::string package;
  // argv[0]: an absolute path, or a name that is looked for in kProgramPath. In the rest {NAME}
  // stands for a parameter, {output} for a file of the attempt, {{ and }} for braces.
  std::vector<std::string> argv;
  std::vector<settings::CommandParameter> parameters;
  // By parameter and choice: what the program gets for it, where that is not the choice itself. An
  // argument that is nothing but such a parameter and becomes empty is left out.
  std::map<std::string, std::map<std::string, std::string>> choice_arguments;
  std::vector<ReadRule> read;
  // Its author says that a run leaves nothing behind that changes the next one.
  bool repeat_safe = false;

  friend bool operator==(const Command&, const Command&) = default;
};

// The only folders in which programs without a path are looked for.
inline constexpr char kProgramPath[] =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

// Every rule has one reducer: the value is what the program printed, once a trial.
inline constexpr char kReducer[] = "value";

// {output} in an argument.
inline constexpr char kOutputPlaceholder[] = "output";

}  // namespace pipeyard::commands
