// The command line, environment and configuration file of the four programs, read in one way.
//
// An option's value comes from the first of: the command line, the environment (PIPEYARD_STATE for
// --state), the file named by
// --config (YAML, one `name: value` a line, names without dashes), its default. Not for sweep
// files. The libraries behind it (CLI11, yaml-cpp) are known to parser.cc and config_file.cc
// alone.
//
// Thread safety: values; Parse() is called once, from main.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace pipeyard::options {

struct Option {
  std::string name = {};        // "state" for --state
  char short_name = 0;          // 'o' for -o
  std::string value_name = {};  // "DIR"; empty: a flag without a value
  std::string help = {};
  std::string default_value = {};  // as if given; flags have none
  bool repeats = false;            // may be given several times; GetAll() has the values in order
  std::vector<std::string> choices = {};  // empty: any text
};

struct Positional {
  std::string name = {};  // "FILE"
  std::string help = {};
  bool is_required = true;
  bool repeats = false;
};

// "sweep submit": a noun and a verb, or one word.
struct Command {
  std::string path = {};
  std::string help = {};
  std::vector<Positional> positionals = {};
  std::vector<Option> options = {};
  // Everything after `--` is left alone and found in Parsed::rest.
  bool takes_rest = false;
};

struct Program {
  std::string name = {};    // "pipeyard-agent"
  std::string help = {};    // what it is, one sentence
  std::string footer = {};  // shown below --help; may be empty
  // Known before the command and after it; also read from the environment and the file.
  std::vector<Option> options = {};
  // Empty: the program has no commands, and `positionals` are its own.
  std::vector<Command> commands = {};
  std::vector<Positional> positionals = {};
};

class Parsed {
 public:
  // Path of the command given; empty for a program without commands.
  const std::string& command() const { return command_; }
  bool Has(const std::string& name) const { return values_.contains(name); }
  // The (last) value, or "" where there is none.
  const std::string& Get(const std::string& name) const;
  std::vector<std::string> GetAll(const std::string& name) const;
  bool Flag(const std::string& name) const { return Has(name) && Get(name) != "false"; }
  // After `--`.
  const std::vector<std::string>& rest() const { return rest_; }

 private:
  friend class Parser;
  std::string command_;
  std::map<std::string, std::vector<std::string>> values_;
  std::vector<std::string> rest_;
};

struct ParseResult {
  // Set where the program is to end at once: 0 after --help and --version, 2 after a mistake.
  std::optional<int> exit_status;
  std::string out;  // for stdout
  std::string err;  // for stderr: what is wrong and the nearest known word
  Parsed parsed;
};

// nullopt where the variable is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
Environment ProcessEnvironment();

// `--help`, `--version` and `--config FILE` are added to every program.
ParseResult Parse(const Program& program, int argc, const char* const* argv,
                  const Environment& environment);

// Prints what a ParseResult with an exit status has to say and returns that status.
int Finish(const ParseResult& result);

// "0.1.0".
std::string Version();

// $XDG_STATE_HOME/pipeyard/LEAF, else $HOME/.local/state/pipeyard/LEAF, else
// /var/lib/pipeyard/LEAF.
std::string DefaultStateDir(const std::string& leaf, const Environment& environment);

}  // namespace pipeyard::options
