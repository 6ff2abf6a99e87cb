#include "workloads/worker/run_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/env.h"
#include "base/printable.h"
#include "base/process.h"
#include "base/shell.h"
#include "base/units.h"
#include "workloads/commands/command_request.h"
#include "workloads/commands/read_rules.h"
#include "workloads/load/judgement.h"
#include "workloads/load/result_fields.h"

namespace pipeyard::worker {
namespace {

using commands::ProgramOutput;
using load::Failed;
using load::Judgement;
using load::NotApplicable;

// Of the program's outputs together, on the agent's disk. The rules read less.
constexpr int64_t kMaxWrittenBytes = int64_t{256} << 20;
// Far from costing CPU time, near enough for a disk. The agent's trial_timeout ends the wait.
constexpr Nanos kLookAtOutputEach = Seconds(1);
// Of each stream; the agent keeps 64 KiB of ours, with the result's text behind it.
constexpr size_t kRepeatedBytes = size_t{48} << 10;
// Of stderr in a reason.
constexpr size_t kQuotedBytes = 600;
constexpr char kSelf[] = "/proc/self/exe";
constexpr Nanos kKillPatience = Seconds(5);
constexpr Nanos kLookAgainAfter = Milliseconds(5);

struct Files {
  explicit Files(const std::string& folder)
      : standard_output(folder + "/program.stdout"), standard_error(folder + "/program.stderr") {}
  std::string standard_output;
  std::string standard_error;
};

std::string_view Tail(std::string_view text, size_t bytes) {
  return text.substr(text.size() - std::min(text.size(), bytes));
}

void Repeat(std::FILE* stream, std::string_view text) {
  const std::string_view tail = Tail(text, kRepeatedBytes);
  if (tail.size() < text.size()) {
    std::fprintf(stream, "[%zu bytes before]\n", text.size() - tail.size());
  }
  std::fwrite(tail.data(), 1, tail.size(), stream);
  if (!tail.empty() && tail.back() != '\n') std::fputc('\n', stream);
  std::fflush(stream);
}

// Processes whose parent this one is: what the program left behind was given to us.
std::vector<pid_t> Children() {
  std::vector<pid_t> children;
  std::ifstream file(fmt::format("/proc/self/task/{}/children", ::getpid()));
  for (pid_t pid = 0; file >> pid;) children.push_back(pid);
  return children;
}

// Kills what outlived the program, in whatever process group or session it hides. Returns how many.
size_t KillDescendants() {
  // Those that ended by themselves before.
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
  std::set<pid_t> killed;
  const MonotonicTime deadline = SystemClock().Now() + kKillPatience;
  for (;;) {
    const std::vector<pid_t> children = Children();
    for (const pid_t pid : children) ::kill(pid, SIGKILL);
    killed.insert(children.begin(), children.end());
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    if (children.empty() || SystemClock().Now() >= deadline) return killed.size();
    const timespec pause{0, kLookAgainAfter.count()};
    ::nanosleep(&pause, nullptr);
  }
}

void AddCounter(v1::WorkerResult& result, const char* name, const char* unit, int64_t value) {
  v1::Counter& counter = *result.add_counters();
  counter.set_name(name);
  counter.set_unit(unit);
  counter.set_value(value);
}

// Empty where it cannot be read; the rules say so then. The program may have put anything in the
// file's place: a pipe would wait for ever, a device would never end.
std::string ReadOrEmpty(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) return {};
  struct stat status {};
  std::string text;
  if (::fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
    // One byte over the limit is refused by the rules without holding the rest.
    text.resize(std::min(static_cast<size_t>(status.st_size), commands::kMaxOutputBytes + 1));
    size_t size = 0;
    while (size < text.size()) {
      const ssize_t count = ::read(fd, text.data() + size, text.size() - size);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) break;
      size += static_cast<size_t>(count);
    }
    text.resize(size);
  }
  ::close(fd);
  return text;
}

// Nothing else than a file counts as one.
bool IsRegularFile(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

ProgramOutput Collect(const Files& files, const std::string& folder) {
  ProgramOutput output;
  output.standard_output = ReadOrEmpty(files.standard_output);
  output.standard_error = ReadOrEmpty(files.standard_error);
  const std::string path = commands::OutputPath(folder);
  if (IsRegularFile(path)) output.file = ReadOrEmpty(path);
  return output;
}

Judgement JudgeExit(const v1::CommandToRun& command, const ExitStatus& exit,
                    const ProgramOutput& output) {
  std::string what = fmt::format("{} ended with {}", command.name(), exit.ToString());
  if (exit.signal != 0) what = fmt::format("{} was {}", command.name(), exit.ToString());
  std::string_view said =
      output.standard_error.empty() ? output.standard_output : output.standard_error;
  while (said.ends_with('\n')) said.remove_suffix(1);
  if (!said.empty()) what += ": " + std::string(Tail(said, kQuotedBytes));
  return Failed(exit.signal != 0 ? "program_killed" : "program_exit", what);
}

Judgement FillMetrics(const std::vector<commands::ReadRule>& rules, const ProgramOutput& output,
                      v1::WorkerResult& result) {
  std::string lacking;
  for (const commands::Reading& reading : commands::ReadMetrics(rules, output)) {
    if (!reading.status.ok()) {
      lacking += (lacking.empty() ? "" : "; ") + reading.status.message();
      continue;
    }
    v1::Metric& metric = *result.add_metrics();
    metric.set_name(reading.metric);
    metric.set_unit(reading.unit);
    metric.set_better(commands::DirectionFromWord(reading.better));
    metric.set_reducer(commands::kReducer);
    metric.set_value(reading.value);
  }
  if (lacking.empty()) return {};
  return Failed("missing_metric", lacking);
}

// As a shell would read it back.
std::string QuotedLine(const v1::CommandToRun& command) {
  std::string line;
  for (const std::string& argument : command.arguments()) {
    line += (line.empty() ? "" : " ") + ShellQuoted(argument);
  }
  return line;
}

int64_t WrittenBytes(const Files& files, const std::string& folder) {
  int64_t bytes = 0;
  for (const std::string& path :
       {files.standard_output, files.standard_error, commands::OutputPath(folder)}) {
    const Result<uint64_t> size = PosixEnv().FileSize(path);
    if (size.ok()) bytes += static_cast<int64_t>(*size);
  }
  return bytes;
}

// nullopt where the program was killed because it fills the disk with what nobody will read.
Result<std::optional<ExitStatus>> AwaitEnd(Process& process, const Files& files,
                                           const std::string& folder) {
  for (;;) {
    Result<std::optional<ExitStatus>> exit = process.Wait(kLookAtOutputEach);
    if (!exit.ok() || exit->has_value()) return exit;
    if (WrittenBytes(files, folder) <= kMaxWrittenBytes) continue;
    static_cast<void>(process.Kill(SIGKILL));
    static_cast<void>(process.Wait(kKillPatience));
    return std::optional<ExitStatus>();
  }
}

// By `launch`, so that the program dies with this process.
Judgement Spawn(const v1::CommandToRun& command, const Files& files, const std::string& attempt_id,
                std::unique_ptr<Process>& process) {
  const std::string& folder = command.folder();
  if (::access(command.arguments(0).c_str(), X_OK) != 0) {
    return NotApplicable("program_missing",
                         ErrnoStatus("execute " + command.arguments(0), errno).message());
  }
  SpawnOptions spawn;
  spawn.argv = {kSelf, "launch", "--parent", fmt::format("{}", ::getpid()), "--program", "--"};
  spawn.argv.insert(spawn.argv.end(), command.arguments().begin(), command.arguments().end());
  spawn.environment = {fmt::format("PATH={}", commands::kProgramPath), "LC_ALL=C", "HOME=" + folder,
                       "TMPDIR=" + folder, commands::AttemptVariable(attempt_id)};
  spawn.stdout_path = files.standard_output;
  spawn.stderr_path = files.standard_error;
  spawn.working_directory = folder;
  // Ours, so that whoever kills this attempt's group reaches the program.
  spawn.new_process_group = false;
  Result<std::unique_ptr<Process>> spawned = Process::Spawn(spawn);
  if (spawned.ok()) {
    process = *std::move(spawned);
    return {};
  }
  return Failed("no_process", spawned.status().message());
}

Judgement Run(const v1::CommandToRun& command, const std::string& attempt_id,
              v1::WorkerResult& result) {
  const std::string& folder = command.folder();
  const Result<std::vector<commands::ReadRule>> rules = commands::RulesFromProto(command);
  if (!rules.ok()) return Failed("internal", rules.status().message());
  if (command.arguments().empty()) return Failed("internal", "the request has no arguments");
  if (rules->empty()) {
    return Failed("not_supported",
                  fmt::format("command {} has no read rules, so nothing can be measured by it",
                              command.name()));
  }
  load::AddResolved("program_sha256", command.arguments(0), command.program_sha256(), result);
  load::AddResolved("command_line", command.name(), QuotedLine(command), result);
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
    return Failed("internal", ErrnoStatus("prctl PR_SET_CHILD_SUBREAPER", errno).message());
  }
  const Files files(folder);
  std::unique_ptr<Process> process;
  const MonotonicTime started = SystemClock().Now();
  if (Judgement spawned = Spawn(command, files, attempt_id, process); !spawned.ok()) return spawned;
  const Result<std::optional<ExitStatus>> exit = AwaitEnd(*process, files, folder);
  const Nanos wall_time = SystemClock().Now() - started;
  const size_t num_left = KillDescendants();
  if (!exit.ok()) return Failed("internal", exit.status().message());
  if (!exit->has_value()) {
    return Failed("output_limit", fmt::format("{} wrote more than {}; it was killed",
                                              command.name(), FormatBytes(kMaxWrittenBytes)));
  }
  AddCounter(result, "wall_time", "ns", wall_time.count());
  AddCounter(result, "user_time", "ns", (*exit)->user_time.count());
  AddCounter(result, "system_time", "ns", (*exit)->system_time.count());
  AddCounter(result, "exit_status", "count", (*exit)->exit_code);
  AddCounter(result, "processes_left", "count", static_cast<int64_t>(num_left));
  const ProgramOutput output = Collect(files, folder);
  Repeat(stdout, output.standard_output);
  Repeat(stderr, output.standard_error);
  if (!(*exit)->ok()) return JudgeExit(command, **exit, output);
  return FillMetrics(*rules, output, result);
}

}  // namespace

v1::WorkerResult RunCommand(const v1::CommandToRun& command, const std::string& attempt_id) {
  v1::WorkerResult result;
  Judgement judgement = Run(command, attempt_id, result);
  // It may quote what the program printed, which need not be text.
  judgement.reason_text = EscapeControls(judgement.reason_text);
  load::FillJudgement(judgement, result);
  return result;
}

}  // namespace pipeyard::worker
