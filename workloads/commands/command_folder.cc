#include "workloads/commands/command_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <vector>

#include "base/printable.h"
#include "base/utf8.h"
#include "proto/settings/sha256.h"
#include "proto/yaml/node.h"
#include "workloads/commands/command_file.h"
#include "workloads/commands/presets.h"

namespace pipeyard::commands {
namespace {

constexpr std::string_view kSuffix = ".yaml";
constexpr std::string_view kWrongSuffix = ".yml";
// Of a program; however long it is, no more is held.
constexpr size_t kHashedAtOnce = size_t{1} << 20;

bool MayBeExecuted(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

// What a file or the folder says is executed as this user: nobody else may write it.
Status CheckOwner(const std::string& path, const struct stat& status) {
  if ((status.st_mode & S_IWOTH) != 0) {
    return InvalidArgument(path +
                           ": can be written by everybody, who could have this agent execute "
                           "anything; chmod o-w it");
  }
  if (status.st_uid == 0 || status.st_uid == ::geteuid()) return Status::Ok();
  return InvalidArgument(fmt::format(
      "{}: belongs to user {}, who could have this agent execute anything; chown it to root or to "
      "the agent's user",
      path, status.st_uid));
}

// Whether the file may be read and believed.
Status CheckFile(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return ErrnoStatus("stat " + path, errno);
  if (!S_ISREG(status.st_mode)) return InvalidArgument(path + ": is no file");
  if (static_cast<size_t>(status.st_size) > yaml::kMaxBytes) {
    return InvalidArgument(
        fmt::format("{}: is {} bytes long; at most {}", path, status.st_size, yaml::kMaxBytes));
  }
  return CheckOwner(path, status);
}

// As a fact may be: short, one line, UTF-8.
std::string FactText(const std::string& text) {
  constexpr size_t kMaxFactBytes = 1000;
  return std::string(FirstBytes(EscapeControls(text), kMaxFactBytes));
}

Status Missing(const Command& command) {
  std::string what = command.argv[0].front() == '/'
                         ? fmt::format("{} is not there, or may not be executed", command.argv[0])
                         : fmt::format("{} is in none of {}", command.argv[0], kProgramPath);
  what += command.package.empty() ? "; install it there, or name it in the command's file"
                                  : "; install package " + command.package;
  return NotFound(what);
}

}  // namespace

CommandFolder CommandFolder::Read(Env& env, const std::string& path) {
  CommandFolder folder;
  folder.path_ = path;
  const Result<std::vector<std::string>> names = env.ListDir(path);
  if (!names.ok()) {
    if (names.status().code() != StatusCode::kNotFound) {
      folder.problems_.push_back(names.status().message());
    }
    return folder;
  }
  struct stat status {};
  Status believed = ::stat(path.c_str(), &status) == 0 ? CheckOwner(path, status)
                                                       : ErrnoStatus("stat " + path, errno);
  if (!believed.ok()) {
    folder.problems_.push_back(believed.message());
    return folder;
  }
  for (const std::string& name : *names) {
    if (name.ends_with(kSuffix) && !name.starts_with('.')) {
      folder.ReadFile(env, name);
    } else if (name.ends_with(kWrongSuffix)) {
      folder.problems_.push_back(fmt::format(
          "{}/{}: is not read; a name that ends with {} was meant", path, name, kSuffix));
    }
  }
  return folder;
}

void CommandFolder::ReadFile(Env& env, const std::string& file_name) {
  const std::string name = file_name.substr(0, file_name.size() - kSuffix.size());
  const std::string file = path_ + "/" + file_name;
  if (commands_.size() >= kMaxCommands) {
    return Refuse(name,
                  fmt::format("{}: is not read; at most {} commands are", file, kMaxCommands));
  }
  if (const Status checked = CheckFile(file); !checked.ok()) {
    return Refuse(name, checked.message());
  }
  const Result<std::string> text = env.ReadFile(file);
  if (!text.ok()) return Refuse(name, text.status().message());
  FileReading reading = ReadCommandFile(*text, name);
  for (const yaml::Problem& problem : reading.problems) Refuse(name, problem.Format(file));
  if (reading.command) {
    broken_.erase(name);
    commands_.emplace(name, *std::move(reading.command));
  }
}

void CommandFolder::Refuse(const std::string& command, std::string problem) {
  broken_.emplace(command, problem);
  problems_.push_back(std::move(problem));
}

Result<const Command*> CommandFolder::Find(std::string_view name) const {
  if (const auto found = commands_.find(name); found != commands_.end()) return &found->second;
  if (const auto broken = broken_.find(name); broken != broken_.end()) {
    return FailedPrecondition(
        fmt::format("command {} is not allowed, for its file is broken: {}", name, broken->second));
  }
  std::string remedy = fmt::format("a file {}/{}.yaml allows it",
                                   path_.empty() ? std::string("commands.d") : path_, name);
  if (FindPreset(name) != nullptr) remedy += fmt::format(": `{0}: {{ preset: {0} }}`", name);
  return NotFound(fmt::format("command {:.80} is not allowed here; {}", name, remedy));
}

Result<std::string> FindProgram(const Command& command) {
  const std::string& program = command.argv[0];
  if (program.front() == '/') {
    if (MayBeExecuted(program)) return program;
    return Missing(command);
  }
  for (std::string_view rest = kProgramPath; !rest.empty();) {
    const size_t end = std::min(rest.find(':'), rest.size());
    std::string path = fmt::format("{}/{}", rest.substr(0, end), program);
    if (MayBeExecuted(path)) return path;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return Missing(command);
}

Result<std::string> HashProgram(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return ErrnoStatus("open " + path, errno);
  settings::Sha256 digest;
  std::vector<char> part(kHashedAtOnce);
  do {
    file.read(part.data(), static_cast<std::streamsize>(part.size()));
    digest.Add({part.data(), static_cast<size_t>(file.gcount())});
  } while (file);
  if (file.bad()) return Unavailable(path + ": cannot be read");
  return digest.Hex();
}

Result<std::string> ProgramHashes::Hash(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return ErrnoStatus("stat " + path, errno);
  std::string identity = fmt::format("{} {} {} {}.{}", status.st_dev, status.st_ino, status.st_size,
                                     status.st_ctim.tv_sec, status.st_ctim.tv_nsec);
  Known& known = known_[path];
  if (known.identity == identity) return known.hash;
  PIPEYARD_ASSIGN_OR_RETURN(known.hash, HashProgram(path));
  known.identity = std::move(identity);
  return known.hash;
}

std::map<std::string, std::string> CommandFacts(const CommandFolder& folder,
                                                ProgramHashes& hashes) {
  std::map<std::string, std::string> facts;
  for (const auto& [name, command] : folder.commands()) {
    facts[settings::SignatureFact(name)] = settings::FormatSignature(command.parameters);
    const Result<std::string> path = FindProgram(command);
    const Result<std::string> hash = path.ok() ? hashes.Hash(*path) : path;
    facts[settings::ProgramFact(name)] = FactText(
        hash.ok() ? fmt::format("{} sha256:{}", *path, *hash)
                  : fmt::format("{}{}", settings::kMissingProgram, hash.status().message()));
  }
  size_t num_broken = 0;
  for (const auto& [name, problem] : folder.broken()) {
    if (!settings::IsCommandWord(name) || ++num_broken > kMaxCommands) continue;
    facts[settings::ProgramFact(name)] =
        FactText(fmt::format("{}its file is broken: {}", settings::kMissingProgram, problem));
  }
  return facts;
}

}  // namespace pipeyard::commands
