// Reads metrics from what a program printed. Pure: text in, metrics or the reasons why not out.
//
// Thread safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "workloads/commands/command.h"

namespace pipeyard::commands {

// What a program left. `file` is what it wrote to {output}; nullopt: it wrote none.
struct ProgramOutput {
  std::string standard_output;
  std::string standard_error;
  std::optional<std::string> file;
};

// What one rule came to.
struct Reading {
  std::string metric;
  std::string unit;  // base unit
  std::string better;
  double value = 0;  // in the base unit; where `status` is OK
  Status status;     // else why there is no value, with the metric's name
};

// Largest output of each kind that rules are applied to.
inline constexpr size_t kMaxOutputBytes = size_t{16} << 20;

// One reading a rule, in their order. A rule gives a value only where its pattern matches exactly
// one line (its path leads to exactly one number) of the declared source.
std::vector<Reading> ReadMetrics(const std::vector<ReadRule>& rules, const ProgramOutput& output);

// Whether the pattern is one: compiles, has exactly one capture; or is a path. Errors:
// kInvalidArgument.
Status CheckPattern(ReadRule::Kind kind, const std::string& pattern);

// "stdout", "stderr", "file".
std::string_view SourceName(Source source);
// "regex", "json", "yaml".
std::string_view KindName(ReadRule::Kind kind);

}  // namespace pipeyard::commands
