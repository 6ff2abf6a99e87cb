#include "proto/settings/command_parameters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "proto/settings/definition.h"
#include "proto/settings/parse.h"

namespace pipeyard::settings {
namespace {

using Type = CommandParameter::Type;

constexpr size_t kMaxWordBytes = 63;
constexpr std::string_view kNoParameters = "none";
constexpr std::array<std::string_view, 3> kTypeNames{"int", "bytes", "choice"};
// `output` is the file that a program may be told to write.
constexpr std::array<std::string_view, 3> kReserved{"command", "target", "output"};

// The definition that a value of the parameter is read and checked by. Borrows from `choices`.
Definition DefinitionOf(const CommandParameter& parameter,
                        const std::vector<std::string_view>& choices) {
  Definition definition;
  definition.name = parameter.name;
  definition.kind = parameter.type == Type::kInt     ? Kind::kCount
                    : parameter.type == Type::kBytes ? Kind::kBytes
                                                     : Kind::kChoice;
  definition.min = parameter.min;
  definition.max = parameter.max;
  definition.choices = choices;
  return definition;
}

std::vector<std::string_view> Views(const std::vector<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

bool ReadInteger(std::string_view text, int64_t& value) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end && !text.empty();
}

// "1..1024"
bool ReadRange(std::string_view text, CommandParameter& parameter) {
  const size_t dots = text.find("..");
  return dots != std::string_view::npos && ReadInteger(text.substr(0, dots), parameter.min) &&
         ReadInteger(text.substr(dots + 2), parameter.max) && parameter.min <= parameter.max;
}

Result<CommandParameter> ReadWord(std::string_view word) {
  const Status refused = InvalidArgument(fmt::format("'{:.80}' is no parameter", word));
  CommandParameter parameter;
  if (const size_t equals = word.find('='); equals != std::string_view::npos) {
    parameter.default_text = std::string(word.substr(equals + 1));
    word = word.substr(0, equals);
  }
  const std::vector<std::string_view> parts = Split(word, ':');
  if (parts.size() != 3 || !IsCommandParameterName(parts[0])) return refused;
  parameter.name = std::string(parts[0]);
  const auto type = std::find(kTypeNames.begin(), kTypeNames.end(), parts[1]);
  if (type == kTypeNames.end()) return refused;
  parameter.type = static_cast<Type>(type - kTypeNames.begin());
  if (parameter.type != Type::kChoice) {
    if (!ReadRange(parts[2], parameter)) return refused;
    return parameter;
  }
  for (const std::string_view choice : Split(parts[2], '|')) parameter.choices.emplace_back(choice);
  return parameter;
}

}  // namespace

std::string_view CommandParameterTypeName(Type type) {
  return kTypeNames[static_cast<size_t>(type)];
}

bool IsCommandWord(std::string_view name) {
  return !name.empty() && name.size() <= kMaxWordBytes && name[0] >= 'a' && name[0] <= 'z' &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") == std::string_view::npos;
}

bool IsCommandParameterName(std::string_view name) {
  return IsCommandWord(name) &&
         std::find(kReserved.begin(), kReserved.end(), name) == kReserved.end();
}

Status CheckCommandParameter(const CommandParameter& parameter, std::string_view text) {
  const std::vector<std::string_view> choices = Views(parameter.choices);
  return ParseValue(DefinitionOf(parameter, choices), text).status();
}

std::map<std::string, std::string> GivenCommandParameters(const Variant& variant) {
  std::map<std::string, std::string> given;
  for (const auto& [name, value] : variant.values) {
    if (!IsCommandParameterName(name)) continue;
    if (const std::string* text = std::get_if<std::string>(&value)) given[name] = *text;
  }
  return given;
}

Status CheckCommandParameters(std::span<const CommandParameter> parameters,
                              const std::map<std::string, std::string>& given) {
  for (const auto& [name, text] : given) {
    const auto found = std::find_if(parameters.begin(), parameters.end(),
                                    [&](const auto& known) { return known.name == name; });
    if (found == parameters.end()) {
      std::vector<std::string_view> known;
      for (const CommandParameter& each : parameters) known.push_back(each.name);
      return InvalidArgument(
          fmt::format("it has no parameter {}{}", name,
                      known.empty() ? "; it takes none"
                                    : fmt::format("; it takes {}", fmt::join(known, ", "))));
    }
    if (Status checked = CheckCommandParameter(*found, text); !checked.ok()) {
      return checked.WithContext(name);
    }
  }
  for (const CommandParameter& parameter : parameters) {
    if (parameter.default_text || given.contains(parameter.name)) continue;
    return InvalidArgument(
        fmt::format("its parameter {} has no default; parameters: {{ {}: ... }} "
                    "was meant",
                    parameter.name, parameter.name));
  }
  return Status::Ok();
}

std::string FormatSignature(std::span<const CommandParameter> parameters) {
  std::string text;
  for (const CommandParameter& parameter : parameters) {
    if (!text.empty()) text += ' ';
    text += fmt::format("{}:{}:", parameter.name, CommandParameterTypeName(parameter.type));
    text += parameter.type == Type::kChoice ? fmt::format("{}", fmt::join(parameter.choices, "|"))
                                            : fmt::format("{}..{}", parameter.min, parameter.max);
    if (parameter.default_text) text += "=" + *parameter.default_text;
  }
  return text.empty() ? std::string(kNoParameters) : text;
}

Result<std::vector<CommandParameter>> ParseSignature(std::string_view text) {
  std::vector<CommandParameter> parameters;
  if (text == kNoParameters) return parameters;
  for (const std::string_view word : Split(text, ' ')) {
    PIPEYARD_ASSIGN_OR_RETURN(CommandParameter parameter, ReadWord(word));
    parameters.push_back(std::move(parameter));
  }
  return parameters;
}

std::string SignatureFact(std::string_view command) { return fmt::format("command.{}", command); }

std::string ProgramFact(std::string_view command) {
  return fmt::format("command.{}.program", command);
}

}  // namespace pipeyard::settings
