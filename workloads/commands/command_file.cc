#include "workloads/commands/command_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/utf8.h"
#include "proto/settings/parse.h"
#include "proto/yaml/fields.h"
#include "workloads/commands/command_line.h"
#include "workloads/commands/metric_units.h"
#include "workloads/commands/presets.h"
#include "workloads/commands/read_rules.h"

namespace pipeyard::commands {
namespace {

using settings::CommandParameter;
using Type = CommandParameter::Type;
using yaml::Entry;
using yaml::Fields;
using yaml::Node;
using yaml::Problems;

constexpr yaml::FileKind kFileKind{"command", "a command: docs/COMMANDS.md has an example"};
// argv, parameters and rules of a command; no benchmark comes near.
constexpr size_t kMaxArguments = 256;
constexpr size_t kMaxParameters = 32;
constexpr size_t kMaxRules = 64;

constexpr std::array<std::string_view, 3> kTypes{"int", "bytes", "choice"};
constexpr std::array<std::string_view, 3> kBetter{"higher", "lower", "none"};
constexpr std::array<std::string_view, 2> kFlags{"true", "false"};
constexpr std::array<std::string_view, 3> kSources{"stdout", "stderr", "file"};
constexpr std::array<std::string_view, 3> kKinds{"regex", "json", "yaml"};

bool IsProgram(std::string_view program) {
  return !program.empty() &&
         (program.front() == '/' || program.find('/') == std::string_view::npos);
}

void CheckProgram(const std::string& program, yaml::Place place, Problems& problems) {
  if (IsProgram(program) && program.find_first_of("{}") == std::string::npos) return;
  problems.Error(place, fmt::format("'{}' is no program", program),
                 fmt::format("an absolute path, or a name that is looked for in {}", kProgramPath));
}

class CommandReader {
 public:
  CommandReader(Command& command, Problems& problems) : command_(command), problems_(problems) {}

  void Read(const Node& node) {
    Fields fields(node, command_.name, problems_);
    if (!node.IsMap()) return;
    if (fields.Find("preset") != nullptr) return ReadPreset(fields);
    command_.description = fields.Text("description").value_or("");
    command_.package = fields.Text("package").value_or("");
    ReadParameters(fields.Find("parameters"));
    ReadRules(fields.Find("read"));
    ReadArguments(fields);
    command_.repeat_safe = fields.Choice("repeat_safe", kFlags) == "true";
    fields.Finish();
    CheckSignature(node);
  }

 private:
  void ReadPreset(Fields& fields) {
    const Node& named = *fields.Find("preset");
    const std::optional<std::string> name = fields.Text("preset");
    const std::optional<std::string> program = fields.Text("program");
    if (program) CheckProgram(*program, fields.Find("program")->place, problems_);
    fields.Finish();
    if (!name) return;
    const Command* const preset = FindPreset(*name);
    if (preset == nullptr) {
      problems_.Error(named.place, fmt::format("preset: '{}' is none", *name),
                      fmt::format("one of {}", fmt::join(PresetNames(), ", ")));
      return;
    }
    const std::string own_name = command_.name;
    command_ = *preset;
    command_.name = own_name;
    if (program) {
      command_.argv[0] = *program;
      // Where it is from is no longer known.
      if (program->front() == '/') command_.package.clear();
    }
  }

  void ReadArguments(Fields& fields) {
    const Node* const node = fields.Find("argv");
    command_.argv = fields.TextList("argv");
    if (node == nullptr) {
      problems_.Error(fields_place_, fmt::format("{}: the key 'argv' is missing", command_.name),
                      "argv: [/path/of/program, argument, ...]");
      return;
    }
    if (command_.argv.empty() || command_.argv.size() != node->items.size()) {
      if (node->IsList() && node->items.empty()) {
        problems_.Error(node->place, "argv: an empty list", "the program and its arguments");
      }
      return;
    }
    if (command_.argv.size() > kMaxArguments) {
      problems_.Error(node->place, fmt::format("argv: {} arguments", command_.argv.size()),
                      fmt::format("at most {}", kMaxArguments));
    }
    CheckProgram(command_.argv[0], node->items[0].place, problems_);
    std::set<std::string> used;
    for (size_t i = 1; i < command_.argv.size(); ++i) {
      const Result<std::vector<std::string>> names = PlaceholdersOf(command_.argv[i]);
      if (!names.ok()) {
        problems_.Error(node->items[i].place, "argv", names.status());
        continue;
      }
      for (const std::string& name : *names) {
        used.insert(name);
        if (IsDeclared(name)) continue;
        problems_.Error(node->items[i].place, fmt::format("argv: {{{}}} is no parameter", name),
                        "a name under parameters, or {output}");
      }
    }
    CheckUses(*node, used);
  }

  bool IsDeclared(std::string_view name) const {
    return name == kOutputPlaceholder ||
           std::any_of(command_.parameters.begin(), command_.parameters.end(),
                       [&](const auto& parameter) { return parameter.name == name; });
  }

  void CheckUses(const Node& argv, const std::set<std::string>& used) {
    for (const CommandParameter& parameter : command_.parameters) {
      if (used.contains(parameter.name)) continue;
      problems_.Error(argv.place, fmt::format("argv: parameter {} is not used", parameter.name),
                      fmt::format("\"{{{}}}\" in an argument", parameter.name));
    }
    const bool reads_file =
        std::any_of(command_.read.begin(), command_.read.end(),
                    [](const ReadRule& rule) { return rule.source == Source::kFile; });
    if (reads_file && !used.contains(kOutputPlaceholder)) {
      problems_.Error(argv.place, "argv: a rule reads from a file that the program is not told of",
                      "\"{output}\" in an argument");
    }
  }

  void ReadParameters(const Node* node) {
    if (node == nullptr) return;
    const Fields checked(*node, "parameters", problems_);
    if (node->entries.size() > kMaxParameters) {
      problems_.Error(node->place, fmt::format("parameters: {} of them", node->entries.size()),
                      fmt::format("at most {}", kMaxParameters));
      return;
    }
    for (const Entry& entry : node->entries) {
      if (!settings::IsCommandParameterName(entry.key.text)) {
        problems_.Error(entry.key.place, fmt::format("parameters: '{}' is no name", entry.key.text),
                        "lower-case letters, digits, - and _, not command, target or output");
        continue;
      }
      if (!IsDeclared(entry.key.text)) ReadParameter(entry);
    }
  }

  void ReadParameter(const Entry& entry) {
    CommandParameter parameter;
    parameter.name = entry.key.text;
    Fields fields(entry.value, "parameters." + parameter.name, problems_);
    const std::optional<std::string> type = fields.Choice("type", kTypes);
    if (!type) {
      if (fields.Find("type") == nullptr) {
        problems_.Error(entry.key.place,
                        fmt::format("parameters.{}: the key 'type' is missing", parameter.name),
                        "type: int, bytes or choice");
      }
      return;
    }
    parameter.type =
        static_cast<Type>(std::find(kTypes.begin(), kTypes.end(), *type) - kTypes.begin());
    if (parameter.type == Type::kChoice) {
      ReadChoices(fields.Find("values"), entry, parameter);
    } else {
      ReadBound(fields, "min", parameter.min, parameter);
      ReadBound(fields, "max", parameter.max, parameter);
      if (parameter.min > parameter.max) {
        problems_.Error(entry.key.place,
                        fmt::format("parameters.{}: min is above max", parameter.name));
      }
    }
    if (const Node* usual = fields.Find("default")) {
      if (const auto text = yaml::ScalarText(*usual, fields.PathOf("default"), problems_)) {
        const Status checked = settings::CheckCommandParameter(parameter, *text);
        if (!checked.ok()) problems_.Error(usual->place, fields.PathOf("default"), checked);
        parameter.default_text = *text;
      }
    }
    fields.Finish();
    command_.parameters.push_back(std::move(parameter));
  }

  // min and max, in the parameter's own grammar.
  void ReadBound(Fields& fields, std::string_view key, int64_t& bound,
                 const CommandParameter& parameter) {
    const Node* const node = fields.Find(key);
    if (node == nullptr) return;
    const auto text = yaml::ScalarText(*node, fields.PathOf(key), problems_);
    if (!text) return;
    settings::Definition any;
    any.kind = parameter.type == Type::kInt ? settings::Kind::kCount : settings::Kind::kBytes;
    any.min = parameter.type == Type::kInt ? INT64_MIN : 0;
    const Result<settings::Value> value = settings::ParseValue(any, *text);
    if (!value.ok()) {
      problems_.Error(node->place, fields.PathOf(key), value.status());
    } else {
      bound = std::get<int64_t>(*value);
    }
  }

  // A list of words, or a map from a word to what the program gets for it.
  void ReadChoices(const Node* values, const Entry& entry, CommandParameter& parameter) {
    const std::string path = fmt::format("parameters.{}.values", parameter.name);
    if (values == nullptr || (!values->IsList() && !values->IsMap())) {
      problems_.Error(values == nullptr ? entry.key.place : values->place,
                      fmt::format("{}: a list or a map is missing", path),
                      "values: [a, b], or values: { a: --argument }");
      return;
    }
    const auto add = [&](const Node& word) {
      const auto text = yaml::ScalarText(word, path, problems_);
      if (!text) return false;
      if (!settings::IsCommandWord(*text)) {
        problems_.Error(word.place, fmt::format("{}: '{}' is no word", path, *text),
                        "lower-case letters, digits, - and _");
        return false;
      }
      parameter.choices.push_back(*text);
      return true;
    };
    for (const Node& item : values->items) add(item);
    for (const Entry& choice : values->entries) {
      if (!add(choice.key)) continue;
      const auto argument = choice.value.kind == Node::Kind::kNull
                                ? std::optional<std::string>("")
                                : yaml::ScalarText(choice.value, path, problems_);
      if (argument) command_.choice_arguments[parameter.name][choice.key.text] = *argument;
      if (argument && HoldsControl(*argument)) {
        problems_.Error(choice.value.place, fmt::format("{}: holds a control character", path));
      }
    }
    if (parameter.choices.empty()) {
      problems_.Error(values->place, fmt::format("{}: an empty list", path), "at least one word");
    }
  }

  void ReadRules(const Node* node) {
    if (node == nullptr) return;
    const Fields checked(*node, "read", problems_);
    if (node->entries.size() > kMaxRules) {
      problems_.Error(node->place, fmt::format("read: {} rules", node->entries.size()),
                      fmt::format("at most {}", kMaxRules));
      return;
    }
    for (const Entry& entry : node->entries) {
      if (settings::IsCommandWord(entry.key.text)) {
        ReadRuleOf(entry);
      } else {
        problems_.Error(entry.key.place, fmt::format("read: '{}' is no name", entry.key.text),
                        "lower-case letters, digits, - and _");
      }
    }
  }

  void ReadRuleOf(const Entry& entry) {
    ReadRule rule;
    rule.metric = entry.key.text;
    Fields fields(entry.value, "read." + rule.metric, problems_);
    if (!entry.value.IsMap()) {
      if (entry.value.kind == Node::Kind::kNull) {
        problems_.Error(entry.key.place, fmt::format("read.{}: nothing stands here", rule.metric),
                        "{ regex: EXPRESSION, from: stdout, unit: UNIT, better: DIRECTION }");
      }
      return;
    }
    size_t num_kinds = 0;
    for (size_t i = 0; i < kKinds.size(); ++i) {
      if (fields.Find(kKinds[i]) == nullptr) continue;
      ++num_kinds;
      rule.kind = static_cast<ReadRule::Kind>(i);
      const auto pattern = fields.Text(kKinds[i]);
      if (!pattern) continue;
      rule.pattern = *pattern;
      const Status valid = CheckPattern(rule.kind, rule.pattern);
      if (!valid.ok()) {
        problems_.Error(fields.Find(kKinds[i])->place, fields.PathOf(kKinds[i]), valid);
      }
    }
    if (num_kinds != 1) {
      problems_.Error(entry.key.place,
                      fmt::format("read.{}: {} of regex, json and yaml", rule.metric, num_kinds),
                      "exactly one of them");
    }
    if (const auto source = fields.Choice("from", kSources)) {
      rule.source = static_cast<Source>(std::find(kSources.begin(), kSources.end(), *source) -
                                        kSources.begin());
    }
    rule.unit = Required(fields, "unit", entry);
    if (!rule.unit.empty() && !FindMetricUnit(rule.unit)) {
      problems_.Error(fields.Find("unit")->place,
                      fmt::format("read.{}.unit: '{}' is unknown", rule.metric, rule.unit),
                      "one of " + KnownMetricUnits());
    }
    rule.better = fields.Choice("better", kBetter).value_or("none");
    fields.Finish();
    command_.read.push_back(std::move(rule));
  }

  std::string Required(Fields& fields, std::string_view key, const Entry& entry) {
    if (fields.Find(key) == nullptr) {
      problems_.Error(entry.key.place, fmt::format("{}: the key is missing", fields.PathOf(key)),
                      "one of " + KnownMetricUnits());
    }
    return fields.Text(key).value_or("");
  }

  void CheckSignature(const Node& node) {
    const size_t size = settings::FormatSignature(command_.parameters).size();
    if (size <= settings::kMaxSignatureBytes) return;
    problems_.Error(
        node.place, fmt::format("parameters: {} bytes of signature", size),
        fmt::format("at most {}: fewer or shorter words", settings::kMaxSignatureBytes));
  }

 public:
  // Where the command stands in its file.
  void SetPlace(yaml::Place place) { fields_place_ = place; }

 private:
  Command& command_;
  Problems& problems_;
  yaml::Place fields_place_{1, 1};
};

}  // namespace

FileReading ReadCommandFile(std::string_view text, std::string_view name) {
  FileReading reading;
  Problems problems;
  Command command;
  command.name = std::string(name);
  if (!settings::IsCommandWord(name)) {
    problems.Error({1, 1}, fmt::format("'{}' is no name of a command", name),
                   "a file NAME.yaml of lower-case letters, digits, - and _");
  } else if (const std::optional<Node> root = yaml::LoadYaml(text, problems, kFileKind)) {
    const Fields checked(*root, "", problems);
    bool is_found = false;
    for (const Entry& entry : root->entries) {
      if (entry.key.text == name) {
        if (is_found) continue;
        is_found = true;
        CommandReader reader(command, problems);
        reader.SetPlace(entry.key.place);
        reader.Read(entry.value);
        if (!entry.value.IsMap() && entry.value.kind == Node::Kind::kNull) {
          problems.Error(entry.key.place, fmt::format("{}: nothing stands here", name),
                         std::string(kFileKind.meant));
        }
      } else {
        problems.Error(entry.key.place,
                       fmt::format("'{}' is not the name of the file", entry.key.text),
                       fmt::format("one command a file: '{}:'", name));
      }
    }
    if (root->IsMap() && root->entries.empty()) {
      problems.Error(root->place, "the file holds nothing", std::string(kFileKind.meant));
    }
  }
  if (!problems.has_errors()) reading.command = std::move(command);
  reading.problems = problems.Take();
  return reading;
}

}  // namespace pipeyard::commands
