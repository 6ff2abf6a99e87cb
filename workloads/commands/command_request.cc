#include "workloads/commands/command_request.h"

#include <fmt/format.h>

#include "workloads/commands/command_folder.h"
#include "workloads/commands/command_line.h"
#include "workloads/commands/read_rules.h"

namespace pipeyard::commands {
namespace {

v1::CommandRule ToProto(const ReadRule& rule) {
  v1::CommandRule message;
  message.set_metric(rule.metric);
  message.set_kind(rule.kind == ReadRule::Kind::kRegex  ? v1::CommandRule::KIND_REGEX
                   : rule.kind == ReadRule::Kind::kJson ? v1::CommandRule::KIND_JSON
                                                        : v1::CommandRule::KIND_YAML);
  message.set_pattern(rule.pattern);
  message.set_source(rule.source == Source::kStdout   ? v1::CommandRule::SOURCE_STDOUT
                     : rule.source == Source::kStderr ? v1::CommandRule::SOURCE_STDERR
                                                      : v1::CommandRule::SOURCE_FILE);
  message.set_unit(rule.unit);
  message.set_better(DirectionFromWord(rule.better));
  return message;
}

Result<ReadRule> FromProto(const v1::CommandRule& message) {
  ReadRule rule;
  rule.metric = message.metric();
  rule.pattern = message.pattern();
  rule.unit = message.unit();
  rule.better = message.better() == v1::DIRECTION_HIGHER  ? "higher"
                : message.better() == v1::DIRECTION_LOWER ? "lower"
                                                          : "none";
  switch (message.kind()) {
    case v1::CommandRule::KIND_REGEX:
      rule.kind = ReadRule::Kind::kRegex;
      break;
    case v1::CommandRule::KIND_JSON:
      rule.kind = ReadRule::Kind::kJson;
      break;
    case v1::CommandRule::KIND_YAML:
      rule.kind = ReadRule::Kind::kYaml;
      break;
    default:
      return InvalidArgument(fmt::format("rule {}: no kind", rule.metric));
  }
  switch (message.source()) {
    case v1::CommandRule::SOURCE_STDOUT:
      rule.source = Source::kStdout;
      break;
    case v1::CommandRule::SOURCE_STDERR:
      rule.source = Source::kStderr;
      break;
    case v1::CommandRule::SOURCE_FILE:
      rule.source = Source::kFile;
      break;
    default:
      return InvalidArgument(fmt::format("rule {}: no source", rule.metric));
  }
  PIPEYARD_RETURN_IF_ERROR(
      CheckPattern(rule.kind, rule.pattern).WithContext("rule " + rule.metric));
  return rule;
}

}  // namespace

std::string AttemptVariable(const std::string& attempt_id) {
  return "PIPEYARD_ATTEMPT=" + attempt_id;
}

std::string OutputPath(const std::string& folder) { return folder + "/program.output"; }

Result<v1::CommandToRun> ResolveCommand(const Command& command,
                                        const std::map<std::string, std::string>& given,
                                        const std::string& folder) {
  Result<std::vector<std::string>> arguments = ExpandArguments(command, given, OutputPath(folder));
  if (!arguments.ok()) return arguments.status().WithContext("command " + command.name);
  Result<std::string> program = FindProgram(command);
  if (!program.ok()) return program.status().WithContext("command " + command.name);
  PIPEYARD_ASSIGN_OR_RETURN(const std::string hash, HashProgram(*program));
  v1::CommandToRun message;
  message.set_name(command.name);
  (*arguments)[0] = *std::move(program);
  for (std::string& argument : *arguments) message.add_arguments(std::move(argument));
  message.set_program_sha256(hash);
  message.set_folder(folder);
  for (const ReadRule& rule : command.read) *message.add_rules() = ToProto(rule);
  return message;
}

Result<std::vector<ReadRule>> RulesFromProto(const v1::CommandToRun& command) {
  std::vector<ReadRule> rules;
  for (const v1::CommandRule& message : command.rules()) {
    PIPEYARD_ASSIGN_OR_RETURN(ReadRule rule, FromProto(message));
    rules.push_back(std::move(rule));
  }
  return rules;
}

v1::Direction DirectionFromWord(std::string_view better) {
  if (better == "higher") return v1::DIRECTION_HIGHER;
  return better == "lower" ? v1::DIRECTION_LOWER : v1::DIRECTION_NONE;
}

}  // namespace pipeyard::commands
