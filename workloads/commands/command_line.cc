#include "workloads/commands/command_line.h"

#include <fmt/format.h>

#include <functional>

#include "base/units.h"

namespace pipeyard::commands {
namespace {

using settings::CommandParameter;

// Splits an argument into literal text and placeholders, each given to its function.
Status Walk(std::string_view argument, const std::function<void(char)>& literal,
            const std::function<void(std::string_view)>& placeholder) {
  for (size_t at = 0; at < argument.size(); ++at) {
    const char c = argument[at];
    const bool is_doubled = at + 1 < argument.size() && argument[at + 1] == c;
    if ((c != '{' && c != '}') || is_doubled) {
      literal(c);
      if (c == '{' || c == '}') ++at;
      continue;
    }
    const size_t end = argument.find('}', at);
    if (c == '}' || end == std::string_view::npos) {
      return InvalidArgument(
          fmt::format("'{}' has a '{}' without its mate; {{NAME}} for a parameter, or '{}{}' for "
                      "the brace itself was meant",
                      argument, c, c, c));
    }
    placeholder(argument.substr(at + 1, end - at - 1));
    at = end;
  }
  return Status::Ok();
}

// What the program gets for a parameter that was checked.
std::string ArgumentText(const Command& command, const CommandParameter& parameter,
                         const std::string& text) {
  if (parameter.type == CommandParameter::Type::kBytes) {
    const Result<int64_t> bytes = ParseBytes(text);
    return bytes.ok() ? fmt::format("{}", *bytes) : text;
  }
  const auto choices = command.choice_arguments.find(parameter.name);
  if (choices == command.choice_arguments.end()) return text;
  const auto choice = choices->second.find(text);
  return choice == choices->second.end() ? text : choice->second;
}

}  // namespace

Result<std::vector<std::string>> PlaceholdersOf(std::string_view argument) {
  std::vector<std::string> names;
  PIPEYARD_RETURN_IF_ERROR(Walk(
      argument, [](char) {}, [&](std::string_view name) { names.emplace_back(name); }));
  return names;
}

Result<std::vector<std::string>> ExpandArguments(const Command& command,
                                                 const std::map<std::string, std::string>& given,
                                                 const std::string& output_path) {
  PIPEYARD_RETURN_IF_ERROR(settings::CheckCommandParameters(command.parameters, given));
  std::map<std::string, std::string, std::less<>> texts{{kOutputPlaceholder, output_path}};
  for (const CommandParameter& parameter : command.parameters) {
    const auto found = given.find(parameter.name);
    const std::string text =
        found != given.end() ? found->second : parameter.default_text.value_or("");
    texts[parameter.name] = ArgumentText(command, parameter, text);
  }
  std::vector<std::string> arguments;
  for (const std::string& argument : command.argv) {
    std::string expanded;
    std::string unknown;
    bool has_literal = false;
    PIPEYARD_RETURN_IF_ERROR(Walk(
        argument,
        [&](char c) {
          expanded += c;
          has_literal = true;
        },
        [&](std::string_view name) {
          const auto text = texts.find(name);
          if (text == texts.end()) {
            unknown = std::string(name);
          } else {
            expanded += text->second;
          }
        }));
    if (!unknown.empty()) {
      return InvalidArgument(fmt::format("argv: {{{}}} is no parameter", unknown));
    }
    if (expanded.empty() && !has_literal && !argument.empty()) continue;
    arguments.push_back(std::move(expanded));
  }
  return arguments;
}

}  // namespace pipeyard::commands
