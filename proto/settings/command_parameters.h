// Parameters of the agent's commands (docs/COMMANDS.md): what a sweep may give a command, and the
// signature by which an agent tells a controller of it.
//
// A command's parameters are no part of the catalog: each host has its own commands. A sweep's
// values for them are texts, checked by the controller against the signature that the host's facts
// hold, and by the agent against its file.
//
// Thread safety: values and pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "proto/settings/variant.h"

namespace pipeyard::settings {

struct CommandParameter {
  enum class Type {
    kInt,     // a whole number
    kBytes,   // a size with a unit; the program gets the number of bytes
    kChoice,  // one of `choices`
  };

  std::string name = {};
  Type type = Type::kInt;
  int64_t min = 0;  // kInt, kBytes: inclusive
  int64_t max = INT64_MAX;
  std::vector<std::string> choices = {};
  // As written; nullopt: a sweep must give it.
  std::optional<std::string> default_text = {};

  friend bool operator==(const CommandParameter&, const CommandParameter&) = default;
};

// "int", "bytes", "choice".
std::string_view CommandParameterTypeName(CommandParameter::Type type);

// Lower-case letters, digits, '_' and '-', beginning with a letter, at most 63: of commands, of
// their parameters and of their metrics. A sweep's own words and `output` are no parameters.
bool IsCommandWord(std::string_view name);
bool IsCommandParameterName(std::string_view name);

// Whether `text` may be given. Errors: kInvalidArgument, "what; what was meant" without the name.
Status CheckCommandParameter(const CommandParameter& parameter, std::string_view text);

// What the sweep of `variant` (workload command) gives; without `command` and the settings that
// every workload has.
std::map<std::string, std::string> GivenCommandParameters(const Variant& variant);

// Errors: kInvalidArgument names the first parameter that is unknown, lacking or wrong.
Status CheckCommandParameters(std::span<const CommandParameter> parameters,
                              const std::map<std::string, std::string>& given);

// "threads:int:1..1024 workers:choice:process|thread=process": one word a parameter;
// "none" where there are none.
std::string FormatSignature(std::span<const CommandParameter> parameters);
// Errors: kInvalidArgument where the text is none that this version writes.
Result<std::vector<CommandParameter>> ParseSignature(std::string_view text);

// Longest signature: it travels as one fact of the host.
inline constexpr size_t kMaxSignatureBytes = 2048;

// Names of a host's facts of one command: its signature; its program, "PATH sha256:HEX" or
// "missing: WHY".
std::string SignatureFact(std::string_view command);
std::string ProgramFact(std::string_view command);
inline constexpr std::string_view kMissingProgram = "missing: ";

}  // namespace pipeyard::settings
