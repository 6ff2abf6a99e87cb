#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>

#include "base/env.h"
#include "base/printable.h"
#include "proto/options/config_file.h"
#include "proto/options/options.h"
#include "proto/settings/definition.h"

namespace pipeyard::options {
namespace {

constexpr int kExitUsage = 2;

std::vector<std::string> SplitWords(const std::string& text) {
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    if (end > at) words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

std::string EnvironmentName(const std::string& option) {
  std::string name = "PIPEYARD_" + option;
  for (char& c : name)
    c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

std::string Nearest(const std::string& word, const std::vector<std::string>& known) {
  const std::vector<std::string_view> views(known.begin(), known.end());
  return std::string(settings::NearestName(word, views));
}

std::string DidYouMean(const std::string& word, const std::vector<std::string>& known,
                       std::string_view prefix = "") {
  const std::string nearest = Nearest(word, known);
  return nearest.empty() ? std::string() : fmt::format("; did you mean '{}{}'?", prefix, nearest);
}

}  // namespace

// Holds what CLI11 writes into while it parses.
class Parser {
 public:
  Parser(const Program& program, const Environment& environment)
      : program_(program), environment_(environment), app_(program.help, program.name) {}

  ParseResult Run(int argc, const char* const* argv) {
    CutRest(argc, argv);
    if (std::optional<std::string> mistake = UnknownCommand()) return Mistake(*mistake);
    try {
      Build();
      std::vector<std::string> reversed(arguments_.rbegin(), arguments_.rend());
      app_.parse(reversed);
    } catch (const CLI::CallForHelp&) {
      return Say(Help());
    } catch (const CLI::CallForAllHelp&) {
      return Say(app_.help("", CLI::AppFormatMode::All));
    } catch (const CLI::CallForVersion&) {
      return Say(fmt::format("{} {}\n", program_.name, Version()));
    } catch (const CLI::ParseError& error) {
      return Mistake(Explain(error));
    } catch (const std::exception& error) {
      return Mistake(error.what());
    }
    return Collect();
  }

 private:
  struct Slot {
    std::string name;
    bool is_flag = false;
    CLI::Option* given = nullptr;
    const Option* option = nullptr;  // null for positionals
    bool is_program_wide = false;
  };

  void CutRest(int argc, const char* const* argv) {
    int i = 1;
    const bool keeps_rest = std::any_of(program_.commands.begin(), program_.commands.end(),
                                        [](const Command& c) { return c.takes_rest; });
    for (; i < argc; ++i) {
      if (keeps_rest && std::string_view(argv[i]) == "--") break;
      arguments_.emplace_back(argv[i]);
    }
    for (++i; i < argc; ++i) result_.parsed.rest_.emplace_back(argv[i]);
  }

  // CLI11 says no more than "a subcommand is required"; a person wants to know which word is wrong.
  std::optional<std::string> UnknownCommand() const {
    if (program_.commands.empty()) return std::nullopt;
    std::string prefix;
    size_t depth = 0;
    for (size_t i = 0; i < arguments_.size(); ++i) {
      const std::string& word = arguments_[i];
      if (word.starts_with("-")) {
        if (TakesValue(word)) ++i;
        continue;
      }
      std::vector<std::string> known;
      bool is_complete = false;
      for (const Command& command : program_.commands) {
        const std::vector<std::string> words = SplitWords(command.path);
        if (command.path == prefix) is_complete = true;
        if (words.size() > depth && (depth == 0 || words[0] == prefix))
          known.push_back(words[depth]);
      }
      if (is_complete || depth >= 2) return std::nullopt;
      if (std::find(known.begin(), known.end(), word) == known.end()) {
        return depth == 0 ? fmt::format("there is no command '{}'{}", word, DidYouMean(word, known))
                          : fmt::format("there is no command '{} {}'{}", prefix, word,
                                        DidYouMean(word, known, prefix + " "));
      }
      prefix += (depth == 0 ? "" : " ") + word;
      ++depth;
    }
    return std::nullopt;
  }

  bool TakesValue(const std::string& word) const {
    if (word.find('=') != std::string::npos) return false;
    if (word == "--config") return true;
    return std::any_of(program_.options.begin(), program_.options.end(), [&](const Option& option) {
      return !option.value_name.empty() &&
             (word == "--" + option.name ||
              (option.short_name != 0 && word == std::string("-") + option.short_name));
    });
  }

  void Build() {
    app_.set_version_flag("--version", Version(), "print the version");
    app_.set_help_flag("--help,-h", "print this help");
    app_.footer(program_.footer);
    app_.require_subcommand(program_.commands.empty() ? 0 : 1);
    config_ = app_.add_option("--config", config_path_, "read options from this YAML file")
                  ->type_name("FILE");
    for (const Option& option : program_.options) Add(app_, option, true);
    for (const Positional& positional : program_.positionals) Add(app_, positional);
    for (const Command& command : program_.commands) {
      CLI::App* at = &app_;
      const std::vector<std::string> words = SplitWords(command.path);
      for (size_t i = 0; i < words.size(); ++i) {
        const bool is_last = i + 1 == words.size();
        CLI::App* next = nullptr;
        for (CLI::App* sub :
             at->get_subcommands([&](CLI::App* s) { return s->get_name() == words[i]; }))
          next = sub;
        if (next == nullptr)
          next = at->add_subcommand(words[i], is_last ? command.help : NounHelp(words[i]));
        next->set_help_flag("--help,-h", "print this help");
        // Options of the program are known after the command too.
        next->fallthrough();
        at = next;
      }
      if (words.size() == 2) at->get_parent()->require_subcommand(1);
      commands_.emplace_back(at, &command);
      for (const Positional& positional : command.positionals) Add(*at, positional);
      for (const Option& option : command.options) Add(*at, option, false);
    }
  }

  std::string NounHelp(const std::string& noun) const {
    std::vector<std::string> verbs;
    for (const Command& command : program_.commands) {
      const std::vector<std::string> words = SplitWords(command.path);
      if (words.size() == 2 && words[0] == noun) verbs.push_back(words[1]);
    }
    return fmt::format("{}", fmt::join(verbs, ", "));
  }

  void Add(CLI::App& app, const Option& option, bool is_program_wide) {
    std::string names = "--" + option.name;
    if (option.short_name != 0) names = fmt::format("-{},{}", option.short_name, names);
    CLI::Option* made = nullptr;
    if (option.value_name.empty()) {
      made = app.add_flag(names, option.help);
    } else {
      // const: CLI11 takes a text that it could write to for the option's variable.
      const std::string help =
          option.default_value.empty()
              ? option.help
              : fmt::format("{} (default {})", option.help, option.default_value);
      made = app.add_option(names, help)
                 ->type_name(option.choices.empty()
                                 ? option.value_name
                                 : fmt::format("{}", fmt::join(option.choices, "|")));
      made->multi_option_policy(option.repeats ? CLI::MultiOptionPolicy::TakeAll
                                               : CLI::MultiOptionPolicy::TakeLast);
      made->expected(1);
      if (option.repeats) made->expected(1, 1)->allow_extra_args(false);
    }
    slots_.push_back({option.name, option.value_name.empty(), made, &option, is_program_wide});
  }

  void Add(CLI::App& app, const Positional& positional) {
    CLI::Option* made = app.add_option(positional.name, positional.help)->type_name("");
    if (positional.is_required) made->required();
    if (positional.repeats) made->expected(positional.is_required ? 1 : 0, 1'000);
    slots_.push_back({positional.name, false, made, nullptr, false});
  }

  CLI::App* Deepest() {
    CLI::App* at = &app_;
    for (;;) {
      const std::vector<CLI::App*> parsed = at->get_subcommands();
      if (parsed.empty()) return at;
      at = parsed.back();
    }
  }

  // CLI11 names a subcommand alone in its usage line, and says nothing there of the program's
  // options.
  std::string Help() {
    CLI::App* const deepest = Deepest();
    return deepest->help(deepest->get_parent() == nullptr ? "" : Path(deepest->get_parent()));
  }

  std::string Explain(const CLI::ParseError& error) {
    const std::string text = error.what();
    if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr &&
        text == "A subcommand is required") {
      std::vector<std::string> names;
      for (const CLI::App* app : Deepest()->get_subcommands([](const CLI::App*) { return true; }))
        names.push_back(app->get_name());
      return fmt::format("a command is missing after '{}': {}", Path(Deepest()),
                         fmt::join(names, ", "));
    }
    if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
      const std::vector<std::string> extras = app_.remaining(true);
      if (!extras.empty()) {
        const std::string word = extras.front().substr(0, extras.front().find('='));
        std::vector<std::string> known{"--help"};
        for (const Slot& slot : slots_) {
          if (slot.option != nullptr) known.push_back("--" + slot.name);
        }
        return fmt::format("'{}' is not known here{}", extras.front(), DidYouMean(word, known));
      }
    }
    return text;
  }

  // "pipeyard sweep".
  static std::string Path(const CLI::App* app) {
    std::string words;
    for (; app != nullptr; app = app->get_parent())
      words = app->get_name() + (words.empty() ? "" : " ") + words;
    return words;
  }

  ParseResult Say(std::string text) {
    result_.exit_status = 0;
    result_.out = std::move(text);
    return std::move(result_);
  }

  ParseResult Mistake(const std::string& what) {
    result_.exit_status = kExitUsage;
    result_.err = fmt::format("{}: {}\nTry '{} --help'.\n", program_.name, EscapeControls(what),
                              Path(Deepest()));
    return std::move(result_);
  }

  ParseResult Collect() {
    const CLI::App* const deepest = Deepest();
    for (const auto& [app, command] : commands_) {
      if (app == deepest) result_.parsed.command_ = command->path;
    }
    for (const Slot& slot : slots_) {
      if (slot.given->count() == 0) continue;
      if (slot.is_flag) {
        result_.parsed.values_[slot.name] = {"true"};
      } else {
        result_.parsed.values_[slot.name] = slot.given->results();
      }
    }
    for (const Slot& slot : slots_) {
      if (!slot.is_program_wide || result_.parsed.Has(slot.name)) continue;
      if (std::optional<std::string> value = environment_(EnvironmentName(slot.name))) {
        if (!slot.is_flag || !(value->empty() || *value == "0" || *value == "false")) {
          result_.parsed.values_[slot.name] = {slot.is_flag ? "true" : *value};
        }
      }
    }
    if (std::optional<std::string> mistake = ReadFile()) return Mistake(*mistake);
    for (const Slot& slot : slots_) {
      if (slot.option == nullptr) continue;
      if (!slot.option->default_value.empty() && !result_.parsed.Has(slot.name) && IsActive(slot)) {
        result_.parsed.values_[slot.name] = {slot.option->default_value};
      }
      if (slot.option->choices.empty() || !result_.parsed.Has(slot.name)) continue;
      for (const std::string& value : result_.parsed.values_[slot.name]) {
        const std::vector<std::string>& choices = slot.option->choices;
        if (std::find(choices.begin(), choices.end(), value) != choices.end()) continue;
        return Mistake(fmt::format("--{} takes {}, not '{}'{}", slot.name, fmt::join(choices, ", "),
                                   value, DidYouMean(value, choices)));
      }
    }
    return std::move(result_);
  }

  bool IsActive(const Slot& slot) const {
    if (slot.is_program_wide) return true;
    for (const auto& [app, command] : commands_) {
      if (command->path != result_.parsed.command_) continue;
      for (const Option& option : command->options) {
        if (&option == slot.option) return true;
      }
    }
    return false;
  }

  std::optional<std::string> ReadFile() {
    std::string path = config_path_;
    if (path.empty()) path = environment_("PIPEYARD_CONFIG").value_or("");
    if (path.empty()) return std::nullopt;
    const Result<std::string> text = PosixEnv().ReadFile(path);
    if (!text.ok()) return text.status().message();
    const Result<std::vector<ConfigEntry>> entries = ReadConfig(*text, path);
    if (!entries.ok()) return entries.status().message();
    std::vector<std::string> known;
    for (const Slot& slot : slots_) {
      if (slot.is_program_wide) known.push_back(slot.name);
    }
    for (const ConfigEntry& entry : *entries) {
      const auto slot = std::find_if(slots_.begin(), slots_.end(), [&](const Slot& s) {
        return s.is_program_wide && s.name == entry.name;
      });
      if (slot == slots_.end()) {
        return fmt::format("{}:{}:{}: unknown key '{}'{}", path, entry.line, entry.column,
                           entry.name, DidYouMean(entry.name, known));
      }
      if (entry.values.size() != 1 && !slot->option->repeats) {
        return fmt::format("{}:{}:{}: '{}' takes one value", path, entry.line, entry.column,
                           entry.name);
      }
      if (slot->is_flag && entry.values[0] != "true" && entry.values[0] != "false") {
        return fmt::format("{}:{}:{}: '{}' takes true or false", path, entry.line, entry.column,
                           entry.name);
      }
      if (!result_.parsed.Has(entry.name)) result_.parsed.values_[entry.name] = entry.values;
    }
    return std::nullopt;
  }

  const Program& program_;
  const Environment& environment_;
  CLI::App app_;
  CLI::Option* config_ = nullptr;
  std::string config_path_;
  std::vector<std::string> arguments_;
  std::vector<Slot> slots_;
  std::vector<std::pair<CLI::App*, const Command*>> commands_;
  ParseResult result_;
};

ParseResult Parse(const Program& program, int argc, const char* const* argv,
                  const Environment& environment) {
  return Parser(program, environment).Run(argc, argv);
}

}  // namespace pipeyard::options
