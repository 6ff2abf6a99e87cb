// pipeyard-agent: wires the agent's decisions (agent/core) to this machine's clock, disk, processes
// and network.
//
//   executor "agent"   decisions and the session          never waits
//   executor "disk"    spool writes and syncs             posts outcomes back
//   executor "runner"  one attempt at a time              sleeps while it waits or runs
//   gRPC's threads     the stream                         post only
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "agent/core/agent.h"
#include "agent/core/recovery.h"
#include "agent/core/state_folder.h"
#include "agent/daemon/agent_flags.h"
#include "agent/host/facts.h"
#include "agent/runner/assign_check.h"
#include "agent/runner/trial_lock.h"
#include "agent/runner/worker_runner.h"
#include "agent/spool/spool.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/printable.h"
#include "base/process.h"
#include "base/signals.h"
#include "proto/grpc/agent_channel.h"
#include "proto/session/agent_session.h"
#include "workloads/commands/command_folder.h"

namespace pipeyard::agent {
namespace {

constexpr int kDone = 0;
constexpr int kCannotRun = 1;
constexpr int kWrong = 2;
constexpr int kRefused = 4;

constexpr std::string_view kRoom = "agent";

// Handed from the executor to main.
class FinishedAgent {
 public:
  void Set(const Agent::Finish& finish) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    finish_ = finish;
    changed_.NotifyAll();
  }
  Agent::Finish Wait() EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (!finish_) changed_.Wait(mutex_);
    return *finish_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::optional<Agent::Finish> finish_ GUARDED_BY(mutex_);
};

Result<std::string> FindWorker(const AgentFlags& flags) {
  std::string path = flags.worker_program;
  if (path.empty()) {
    PIPEYARD_ASSIGN_OR_RETURN(path, ProgramDir());
    path += "/pipeyard-worker";
  }
  if (::access(path.c_str(), X_OK) != 0) {
    return ErrnoStatus(path + " cannot be executed; name the worker with --worker", errno);
  }
  return path;
}

Status CheckTrialLock(const std::string& path) {
  const Result<int> fd = runner::OpenTrialLockFile(path);
  if (!fd.ok()) return fd.status().WithContext("trial lock");
  ::close(*fd);
  return Status::Ok();
}

void LogRecovery(const spool::RecoveryCounts& counts) {
  if (counts.num_attempts + counts.num_quarantined + counts.num_unreadable == 0) return;
  Log(counts.num_quarantined + counts.num_unreadable > 0 ? LogLevel::kWarning : LogLevel::kInfo,
      "spool", "{} attempts held, {} torn tails ({} B) cut off, {} logs set aside, {} unreadable",
      counts.num_attempts, counts.num_torn_logs, counts.cut_bytes, counts.num_quarantined,
      counts.num_unreadable);
}

void LogCommands(const AgentFlags& flags, const commands::CommandFolder& commands) {
  if (flags.has_commands_folder && !PosixEnv().Exists(flags.commands_folder)) {
    Log(LogLevel::kWarning, "commands", "{} is not there, so no command is allowed",
        flags.commands_folder);
  }
  for (const std::string& problem : commands.problems()) {
    Log(LogLevel::kWarning, "commands", "{}", problem);
  }
  if (commands.commands().empty()) return;
  std::string names;
  for (const auto& [name, command] : commands.commands()) {
    names += (names.empty() ? "" : ", ") + name;
  }
  Log(LogLevel::kInfo, "commands", "{} allows {}", commands.path(), names);
}

// Of the host and of its commands.
host::HostFactsReport ReadFacts(const commands::CommandFolder& commands,
                                commands::ProgramHashes& hashes) {
  host::HostFactsReport report = host::ReadHostFacts();
  for (auto& [name, value] : commands::CommandFacts(commands, hashes)) {
    (*report.facts.mutable_more())[name] = value;
  }
  return report;
}

v1::Hello MakeHello(const AgentFlags& flags, const std::string& agent_id,
                    const std::string& boot_id, const v1::HostFacts& facts, IdSource& ids) {
  v1::Hello hello;
  hello.set_agent_id(agent_id);
  hello.set_name(flags.name);
  hello.set_boot_id(boot_id);
  hello.set_agent_version(options::Version());
  hello.set_instance_id(ids.Next());
  for (const std::string& pair : runner::Capabilities()) hello.add_capabilities(pair);
  *hello.mutable_facts() = facts;
  return hello;
}

Result<Agent::Finish> Serve(const AgentFlags& flags, SignalWatcher& signals) {
  const Clock& clock = SystemClock();
  Env& env = PosixEnv();
  const AgentPaths paths(flags.state_folder);
  IdSource ids(clock);
  PIPEYARD_ASSIGN_OR_RETURN(const std::string boot_id, ReadBootId());
  PIPEYARD_ASSIGN_OR_RETURN(const std::string worker_program, FindWorker(flags));
  PIPEYARD_RETURN_IF_ERROR(CheckTrialLock(flags.trial_lock_path));
  PIPEYARD_ASSIGN_OR_RETURN(const std::unique_ptr<StateFolder> folder,
                            StateFolder::Open(env, paths, ids));
  PIPEYARD_ASSIGN_OR_RETURN(
      const std::unique_ptr<spool::Spool> spool,
      spool::Spool::Open(env, {.folder = paths.Spool(), .min_free_bytes = flags.min_free_bytes}));
  LogRecovery(spool->recovered());
  PIPEYARD_ASSIGN_OR_RETURN(Recovery recovery, RecoverAttempts(env, paths, *spool, clock, boot_id));
  Log(LogLevel::kInfo, kRoom, "{} is agent {} version {}, state in {}, controller {}", flags.name,
      folder->agent_id(), options::Version(), flags.state_folder, flags.controller);

  // Read once: what a controller is told and what is run are the same.
  const commands::CommandFolder commands =
      commands::CommandFolder::Read(env, flags.commands_folder);
  LogCommands(flags, commands);

  commands::ProgramHashes hashes;
  const host::HostFactsReport report = ReadFacts(commands, hashes);
  for (const std::string& problem : report.problems) Log(LogLevel::kWarning, "host", "{}", problem);

  FinishedAgent finished;
  SerialExecutor executor("agent");
  SerialExecutor disk("disk");
  Agent agent(executor, disk, clock, env, paths, *spool,
              {.boot_id = boot_id,
               .trial_lock_timeout = flags.trial_lock_timeout,
               .read_facts = [&commands, &hashes] { return ReadFacts(commands, hashes).facts; },
               .commands = &commands},
              [&finished](const Agent::Finish& finish) { finished.Set(finish); });
  auto runner = std::make_unique<runner::WorkerRunner>(
      env, clock,
      runner::WorkerRunnerOptions{.worker_program = worker_program,
                                  .trial_lock_path = flags.trial_lock_path,
                                  .attempts_folder = paths.Attempts(),
                                  .boot_id = boot_id,
                                  .commands = &commands},
      runner::AttemptRunner::Events{
          .on_started =
              [&](const std::string& attempt_id) {
                executor.Post([&agent, attempt_id] { agent.OnStarted(attempt_id); });
              },
          .on_ended =
              [&](runner::EndedAttempt ended) {
                executor.Post([&agent, ended = std::move(ended)]() mutable {
                  agent.OnEnded(std::move(ended));
                });
              }});
  grpc_edge::AgentDialer dialer(executor, flags.controller);
  session::AgentSession session(executor, clock, dialer, agent, agent,
                                MakeHello(flags, folder->agent_id(), boot_id, report.facts, ids),
                                {.welcome_timeout = flags.welcome_timeout,
                                 .backoff_max = flags.backoff_max,
                                 .seed = std::hash<std::string>{}(folder->agent_id()) ^
                                         static_cast<uint64_t>(clock.UtcNow().count())});
  agent.Connect(session, *runner);
  executor.Post(
      [&agent, recovery = std::move(recovery)]() mutable { agent.Start(std::move(recovery)); });
  signals.OnSignal([&executor, &agent](int signal) {
    Log(LogLevel::kInfo, kRoom, "signal {}: stopping", signal);
    executor.Post([&agent] { agent.Shutdown(); });
  });

  const Agent::Finish finish = finished.Wait();
  signals.StopCalling();
  // In the order in which they post to one another; what is dropped is found at the next start.
  runner.reset();
  disk.Stop();
  executor.Stop();
  return finish;
}

int Main(int argc, const char* const* argv, SignalWatcher& signals) {
  const options::Environment environment = options::ProcessEnvironment();
  const options::ParseResult result =
      options::Parse(Description(environment), argc, argv, environment);
  if (result.exit_status) return options::Finish(result);
  const Result<AgentFlags> flags = ReadFlags(result.parsed);
  if (!flags.ok()) {
    std::fprintf(stderr, "pipeyard-agent: %s\n", EscapeControls(flags.status().message()).c_str());
    return kWrong;
  }
  const Result<Agent::Finish> finish = Serve(*flags, signals);
  if (!finish.ok()) {
    std::fprintf(stderr, "pipeyard-agent: %s\n", EscapeControls(finish.status().message()).c_str());
    return kCannotRun;
  }
  return finish->is_refused ? kRefused : kDone;
}

}  // namespace
}  // namespace pipeyard::agent

int main(int argc, char** argv) {
  pipeyard::SignalWatcher signals;
  return pipeyard::agent::Main(argc, argv, signals);
}
