// The commands that a folder (the agent's commands.d) allows, and the programs behind them.
//
// Each file NAME.yaml allows the command NAME. A broken file takes away its own command only, and
// its problems are kept for whoever asks for it.
//
// Thread safety: immutable once read.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/env.h"
#include "base/status.h"
#include "workloads/commands/command.h"

namespace pipeyard::commands {

class CommandFolder {
 public:
  // Nothing is allowed.
  CommandFolder() = default;
  // A folder that is not there allows nothing; one that cannot be read is a problem.
  static CommandFolder Read(Env& env, const std::string& path);

  const std::string& path() const { return path_; }
  const std::map<std::string, Command, std::less<>>& commands() const { return commands_; }
  // "FILE:LINE:COL: what; what was meant", a line each.
  const std::vector<std::string>& problems() const { return problems_; }

  // Commands whose files are broken, each with the first problem.
  const std::map<std::string, std::string, std::less<>>& broken() const { return broken_; }

  // Never nullptr. Errors: kNotFound: no file allows it, saying what to write where;
  // kFailedPrecondition: its file is broken, with the first of its problems.
  Result<const Command*> Find(std::string_view name) const;

 private:
  void ReadFile(Env& env, const std::string& file_name);
  void Refuse(const std::string& command, std::string problem);

  std::string path_;
  std::map<std::string, Command, std::less<>> commands_;
  // First problem of each command's file.
  std::map<std::string, std::string, std::less<>> broken_;
  std::vector<std::string> problems_;
};

// More files are not read: facts of all of them travel in one message.
inline constexpr size_t kMaxCommands = 100;

// Absolute path of the command's program. Errors: kNotFound: it is not there or may not be
// executed; says which package has it.
Result<std::string> FindProgram(const Command& command);

// SHA-256 of the program's file, 64 hex digits. Errors: as reading a file.
Result<std::string> HashProgram(const std::string& path);

// Hashes that need no second reading of a file that is still the same: by inode, size and time of
// change. For facts, which are told again and again; what runs is always hashed anew.
//
// Thread safety: thread-compatible.
class ProgramHashes {
 public:
  // As HashProgram().
  Result<std::string> Hash(const std::string& path);

 private:
  struct Known {
    std::string identity;
    std::string hash;
  };

  std::map<std::string, Known> known_;  // by path
};

// What a host tells of its commands (proto/settings/command_parameters.h): by fact.
std::map<std::string, std::string> CommandFacts(const CommandFolder& folder, ProgramHashes& hashes);

}  // namespace pipeyard::commands
