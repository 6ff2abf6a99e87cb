// `pipeyard command`: the commands that Pipeyard knows or a commands.d allows, and what their rules
// read. Needs no controller.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/units.h"
#include "controller/cli/commands.h"
#include "controller/cli/exit_code.h"
#include "controller/report/table.h"
#include "controller/report/words.h"
#include "workloads/commands/command_folder.h"
#include "workloads/commands/presets.h"
#include "workloads/commands/read_rules.h"

namespace pipeyard::cli {
namespace {

using commands::Command;
using commands::CommandFolder;
using commands::ReadRule;
using Json = nlohmann::ordered_json;
using Type = settings::CommandParameter::Type;

// A command as it is listed: of the folder, or a preset that the folder does not allow.
struct Listed {
  const Command* command = nullptr;
  bool is_allowed = false;
};

CommandFolder ReadFolder(const Console& console, const options::Parsed& parsed) {
  const std::string usual =
      options::DefaultStateDir("agent", options::ProcessEnvironment()) + "/commands.d";
  CommandFolder folder =
      CommandFolder::Read(console.env, parsed.Has("commands") ? parsed.Get("commands") : usual);
  for (const std::string& problem : folder.problems()) console.SayLine(problem);
  return folder;
}

std::vector<Listed> ListAll(const CommandFolder& folder) {
  std::vector<Listed> all;
  for (const auto& [name, command] : folder.commands()) all.push_back({&command, true});
  for (const std::string_view name : commands::PresetNames()) {
    if (!folder.commands().contains(name)) all.push_back({commands::FindPreset(name), false});
  }
  return all;
}

// nullptr, said, where there is none.
Listed FindListed(const Console& console, const CommandFolder& folder, const std::string& name) {
  if (const auto found = folder.commands().find(name); found != folder.commands().end()) {
    return {&found->second, true};
  }
  if (const Command* preset = commands::FindPreset(name)) return {preset, false};
  console.Say(fmt::format("{}; presets are {}", folder.Find(name).status().message(),
                          fmt::join(commands::PresetNames(), ", ")));
  return {};
}

std::string ValuesOf(const settings::CommandParameter& parameter) {
  if (parameter.type == Type::kChoice) return fmt::format("{}", fmt::join(parameter.choices, ", "));
  const auto bound = [&](int64_t value) {
    return parameter.type == Type::kBytes ? FormatBytes(value) : fmt::format("{}", value);
  };
  if (parameter.max == INT64_MAX) return bound(parameter.min) + " or more";
  return fmt::format("{} to {}", bound(parameter.min), bound(parameter.max));
}

Json ToJson(const Listed& listed) {
  const Command& command = *listed.command;
  const Result<std::string> program = commands::FindProgram(command);
  Json parameters = Json::array();
  for (const settings::CommandParameter& parameter : command.parameters) {
    const bool is_choice = parameter.type == Type::kChoice;
    parameters.push_back(
        {{"name", parameter.name},
         {"type", settings::CommandParameterTypeName(parameter.type)},
         {"min", is_choice ? Json(nullptr) : Json(parameter.min)},
         {"max", is_choice || parameter.max == INT64_MAX ? Json(nullptr) : Json(parameter.max)},
         {"values", parameter.choices},
         {"default", parameter.default_text ? Json(*parameter.default_text) : Json(nullptr)}});
  }
  Json rules = Json::array();
  for (const ReadRule& rule : command.read) {
    rules.push_back({{"metric", rule.metric},
                     {"kind", commands::KindName(rule.kind)},
                     {"pattern", rule.pattern},
                     {"from", commands::SourceName(rule.source)},
                     {"unit", rule.unit},
                     {"better", rule.better}});
  }
  return {{"command", command.name},
          {"allowed", listed.is_allowed},
          {"description", command.description},
          {"package", command.package.empty() ? Json(nullptr) : Json(command.package)},
          {"program", program.ok() ? Json(*program) : Json(nullptr)},
          {"argv", command.argv},
          {"parameters", std::move(parameters)},
          {"read", std::move(rules)},
          {"repeat_safe", command.repeat_safe}};
}

void Print(const Console& console, const Json& json) {
  console.Out(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

std::string CommandText(const Listed& listed, const std::string& folder, bool use_colour) {
  const Command& command = *listed.command;
  const Result<std::string> program = commands::FindProgram(command);
  std::string text;
  const auto line = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) text += fmt::format("{:<12} {}\n", name, report::Printable(value));
  };
  line("command", command.name);
  line("what", command.description);
  line("allowed", listed.is_allowed
                      ? "yes"
                      : fmt::format("no: a file {0}/{1}.yaml would: {1}: {{ preset: {1} }}", folder,
                                    command.name));
  line("program", program.ok() ? *program : program.status().message());
  line("package", command.package);
  line("arguments", fmt::format("{}", fmt::join(command.argv, " ")));
  line("repeat safe", command.repeat_safe ? "yes" : "not said");
  if (!command.parameters.empty()) {
    report::Table table({{"parameter"}, {"type"}, {"values"}, {"default"}}, "  ");
    for (const settings::CommandParameter& parameter : command.parameters) {
      table.Row({parameter.name, std::string(settings::CommandParameterTypeName(parameter.type)),
                 ValuesOf(parameter), parameter.default_text.value_or("must be given")});
    }
    text += "\nparameters\n" + table.Render(use_colour);
  }
  report::Table table({{"metric"}, {"unit"}, {"better"}, {"from"}, {"rule"}}, "  ");
  for (const ReadRule& rule : command.read) {
    table.Row(
        {rule.metric, rule.unit, rule.better, std::string(commands::SourceName(rule.source)),
         report::Printable(fmt::format("{}: {}", commands::KindName(rule.kind), rule.pattern))});
  }
  text += table.empty() ? "\nno read rules: it measures nothing\n"
                        : "\nmetrics\n" + table.Render(use_colour);
  return text;
}

}  // namespace

int CommandList(const Console& console, const options::Parsed& parsed) {
  const CommandFolder folder = ReadFolder(console, parsed);
  const std::vector<Listed> all = ListAll(folder);
  if (console.format == Format::kJson) {
    Json json{{"schema", "pipeyard.commands/v1"},
              {"folder", folder.path()},
              {"commands", Json::array()},
              {"problems", folder.problems()}};
    for (const Listed& listed : all) json["commands"].push_back(ToJson(listed));
    Print(console, json);
  } else {
    report::Table table({{"command"}, {"allowed"}, {"program"}, {"metrics"}, {"parameters"}});
    for (const Listed& listed : all) {
      const Result<std::string> program = commands::FindProgram(*listed.command);
      std::vector<std::string> metrics;
      for (const ReadRule& rule : listed.command->read) metrics.push_back(rule.metric);
      std::vector<std::string> parameters;
      for (const auto& parameter : listed.command->parameters) parameters.push_back(parameter.name);
      table.Row({listed.command->name, listed.is_allowed ? "yes" : "no",
                 report::Printable(program.ok() ? *program : "missing"),
                 fmt::format("{}", fmt::join(metrics, ", ")),
                 fmt::format("{}", fmt::join(parameters, ", "))});
    }
    console.Out(table.Render(console.is_colored));
  }
  return folder.problems().empty() ? kDone : kUsage;
}

int CommandShow(const Console& console, const options::Parsed& parsed) {
  const CommandFolder folder = ReadFolder(console, parsed);
  const Listed listed = FindListed(console, folder, parsed.Get("NAME"));
  if (listed.command == nullptr) return kNoSuchThing;
  if (console.format == Format::kJson) {
    Json json{{"schema", "pipeyard.command/v1"}};
    json.update(ToJson(listed));
    Print(console, json);
  } else {
    console.Out(CommandText(listed, folder.path(), console.is_colored));
  }
  return kDone;
}

int CommandTest(const Console& console, const options::Parsed& parsed) {
  const CommandFolder folder = ReadFolder(console, parsed);
  const Listed listed = FindListed(console, folder, parsed.Get("NAME"));
  if (listed.command == nullptr) return kNoSuchThing;
  const Result<std::string> sample =
      ReadInput(console.env, parsed.Has("FILE") ? parsed.Get("FILE") : "-");
  if (!sample.ok()) {
    console.Say(sample.status().message());
    return kUsage;
  }
  std::vector<ReadRule> rules;
  for (const ReadRule& rule : listed.command->read) {
    if (!parsed.Has("from") || parsed.Get("from") == commands::SourceName(rule.source)) {
      rules.push_back(rule);
    }
  }
  if (rules.empty()) {
    console.Say(fmt::format("command {} has no read rules{}", listed.command->name,
                            parsed.Has("from") ? " from " + parsed.Get("from") : ""));
    return kUsage;
  }
  const std::vector<commands::Reading> readings =
      commands::ReadMetrics(rules, {*sample, *sample, *sample});
  Json metrics = Json::array();
  report::Table table({{"metric"}, {"value", report::Align::kRight}, {"better"}});
  bool is_complete = true;
  for (const commands::Reading& reading : readings) {
    const bool ok = reading.status.ok();
    is_complete = is_complete && ok;
    metrics.push_back({{"metric", reading.metric},
                       {"value", ok ? Json(reading.value) : Json(nullptr)},
                       {"unit", reading.unit},
                       {"better", reading.better},
                       {"problem", ok ? Json(nullptr) : Json(reading.status.message())}});
    table.Row(
        {reading.metric, ok ? FormatQuantity(reading.value, reading.unit) : "-", reading.better});
    if (!ok) console.Say(reading.status.message());
  }
  if (console.format == Format::kJson) {
    Print(console, {{"schema", "pipeyard.readings/v1"},
                    {"command", listed.command->name},
                    {"metrics", std::move(metrics)}});
  } else {
    console.Out(table.Render(console.is_colored));
  }
  return is_complete ? kDone : kUsage;
}

}  // namespace pipeyard::cli
