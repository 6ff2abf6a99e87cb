#include "agent/runner/leftover.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/clock.h"
#include "base/process.h"
#include "workloads/commands/command_request.h"

namespace pipeyard::runner {
namespace {

constexpr Nanos kLookAgainAfter = Milliseconds(10);

bool HasArgument(const std::string& command_line, const std::string& argument) {
  // Words end with a zero byte each.
  const std::string word = std::string(1, '\0') + argument + std::string(1, '\0');
  return (std::string(1, '\0') + command_line).find(word) != std::string::npos;
}

}  // namespace

Status RecordWorker(Env& env, const agent::AttemptPaths& paths, pid_t pid) {
  PIPEYARD_ASSIGN_OR_RETURN(const uint64_t ticks, ProcessStartTicks(pid));
  PIPEYARD_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file,
                            env.OpenAppend(paths.Worker()));
  return file->Append(fmt::format("{} {}\n", pid, ticks));
}

namespace {

// Processes whose file `name` of /proc has `word` among its words.
std::vector<pid_t> FindProcesses(const char* name_in_proc, const std::string& word) {
  std::vector<pid_t> found;
  std::error_code error;
  for (std::filesystem::directory_iterator it("/proc", error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    pid_t pid = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (parsed.ec != std::errc() || parsed.ptr != name.data() + name.size()) continue;
    if (pid == ::getpid()) continue;
    std::ifstream file(it->path() / name_in_proc, std::ios::binary);
    const std::string words((std::istreambuf_iterator<char>(file)), {});
    if (HasArgument(words, word)) found.push_back(pid);
  }
  return found;
}

void Pause() {
  const timespec pause{0, kLookAgainAfter.count()};
  ::nanosleep(&pause, nullptr);
}

Status StillAlive(pid_t pid) {
  return DeadlineExceeded(fmt::format("process {} of an attempt that has ended does not end", pid));
}

}  // namespace

std::vector<pid_t> FindProcessesWithArgument(const std::string& argument) {
  return FindProcesses("cmdline", argument);
}

std::vector<pid_t> FindProgramsOf(const std::string& attempt_id) {
  return FindProcesses("environ", commands::AttemptVariable(attempt_id));
}

Status KillProgramsOf(const std::string& attempt_id, Nanos patience) {
  const MonotonicTime deadline = SystemClock().Now() + patience;
  for (;;) {
    const std::vector<pid_t> alive = FindProgramsOf(attempt_id);
    if (alive.empty()) return Status::Ok();
    for (const pid_t pid : alive) ::kill(pid, SIGKILL);
    if (SystemClock().Now() >= deadline) return StillAlive(alive.front());
    Pause();
  }
}

Status KillLeftoverWorker(Env& env, const agent::AttemptPaths& paths, Nanos patience) {
  int recorded_pid = 0;
  uint64_t start_ticks = 0;
  const Result<std::string> record = env.ReadFile(paths.Worker());
  if (record.ok() &&
      std::sscanf(record->c_str(), "%d %" SCNu64, &recorded_pid, &start_ticks) == 2 &&
      recorded_pid > 1) {
    PIPEYARD_RETURN_IF_ERROR(KillLeftoverGroup(recorded_pid, start_ticks));
  }
  const MonotonicTime deadline = SystemClock().Now() + patience;
  for (;;) {
    std::vector<pid_t> alive = FindProcessesWithArgument(paths.Request());
    // A killed process keeps its number until its parent reaps it, but not its command line.
    if (alive.empty()) return KillProgramsOf(paths.AttemptId(), patience);
    for (const pid_t pid : alive) {
      const pid_t group = ::getpgid(pid);
      // Workers lead groups of their own; anything else that names the file is killed alone.
      ::kill(group == pid ? -group : pid, SIGKILL);
    }
    if (SystemClock().Now() >= deadline) {
      return DeadlineExceeded(
          fmt::format("process {} of an earlier life of the agent does not end", alive.front()));
    }
    Pause();
  }
}

}  // namespace pipeyard::runner
