#include "agent/runner/worker_runner.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <optional>
#include <utility>

#include "agent/runner/frames.h"
#include "agent/runner/kernel_log.h"
#include "agent/runner/leftover.h"
#include "agent/runner/output_tail.h"
#include "agent/runner/reasons.h"
#include "base/log.h"
#include "proto/settings/command_parameters.h"
#include "proto/settings/definition.h"
#include "workloads/commands/command_request.h"
#include "workloads/commands/metric_units.h"

namespace pipeyard::runner {
namespace {

constexpr std::string_view kRoom = "runner";
// From SIGKILL to the end of the worker. A process in an uninterruptible sleep takes longer; it
// keeps the trial lock then, and the next trial waits for it.
constexpr Nanos kKillPatience = Seconds(10);

// Nothing of the agent's own environment reaches a trial but what sanitizer builds need.
std::vector<std::string> WorkerEnvironment() {
  std::vector<std::string> environment = {
      "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"};
  for (const char* name : {"ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"}) {
    if (const char* value = ::getenv(name))
      environment.push_back(fmt::format("{}={}", name, value));
  }
  return environment;
}

// What the attempt has to have measured. Borrows from `request`.
std::vector<settings::MetricDefinition> DeclaredMetrics(const std::string& workload,
                                                        const v1::WorkerRequest& request) {
  const auto fixed = settings::Metrics(workload);
  std::vector<settings::MetricDefinition> declared(fixed.begin(), fixed.end());
  for (const v1::CommandRule& rule : request.command().rules()) {
    const auto unit = commands::FindMetricUnit(rule.unit());
    declared.push_back({.name = rule.metric(),
                        .unit = unit ? unit->base : std::string_view(rule.unit()),
                        .better = rule.better() == v1::DIRECTION_HIGHER  ? "higher"
                                  : rule.better() == v1::DIRECTION_LOWER ? "lower"
                                                                         : "none",
                        .reducer = commands::kReducer});
  }
  return declared;
}

void FailSetup(Evidence& evidence, Status status, v1::Outcome outcome, std::string_view reason) {
  evidence.setup = std::move(status);
  evidence.setup_outcome = outcome;
  evidence.setup_reason = reason;
}

}  // namespace

WorkerRunner::WorkerRunner(Env& env, const Clock& clock, WorkerRunnerOptions options, Events events)
    : env_(env),
      clock_(clock),
      options_(std::move(options)),
      events_(std::move(events)),
      executor_("runner") {}

WorkerRunner::~WorkerRunner() {
  std::vector<std::string> ids;
  {
    MutexLock lock(mutex_);
    for (const auto& [attempt_id, current] : attempts_) ids.push_back(attempt_id);
  }
  for (const std::string& id : ids) Stop(id, StopReason::kAgentStops, "");
  executor_.Stop();
}

void WorkerRunner::Run(const v1::Assign& assign) {
  {
    MutexLock lock(mutex_);
    attempts_[assign.attempt_id()] = {};
  }
  executor_.Post([this, assign] { RunOnThread(assign); });
}

void WorkerRunner::Stop(const std::string& attempt_id, StopReason reason, const std::string& text) {
  TrialLockWait* lock_wait = nullptr;
  MutexLock lock(mutex_);
  const auto it = attempts_.find(attempt_id);
  if (it == attempts_.end() || it->second.stop_reason != StopReason::kNone) return;
  it->second.stop_reason = reason;
  it->second.stop_text = text;
  lock_wait = it->second.lock_wait;
  if (it->second.process != nullptr) (void)it->second.process->Kill(SIGKILL);
  // The wait ends without this mutex.
  if (lock_wait != nullptr) lock_wait->Interrupt();
}

bool WorkerRunner::IsStopped(const std::string& attempt_id) {
  MutexLock lock(mutex_);
  return attempts_[attempt_id].stop_reason != StopReason::kNone;
}

void WorkerRunner::RunOnThread(const v1::Assign& assign) {
  const agent::AttemptPaths paths(options_.attempts_folder, assign.attempt_id());
  Evidence evidence;
  evidence.attempt_id = assign.attempt_id();
  evidence.boot_id = options_.boot_id;
  evidence.trial_timeout = Nanos(assign.trial_timeout_ns());
  evidence.started_utc = clock_.UtcNow();
  std::optional<KernelLog> kernel_log;
  v1::WorkerRequest request;
  Execute(assign, request, kernel_log, evidence);
  evidence.ended_utc = clock_.UtcNow();

  std::vector<v1::Output> outputs;
  for (const auto& [stream, path] :
       {std::pair("stdout", paths.Stdout()), std::pair("stderr", paths.Stderr())}) {
    OutputTail tail = ReadOutputTail(path, options_.max_output_bytes);
    if (std::string_view(stream) == "stderr") evidence.stderr_tail = tail.data;
    if (tail.data.empty()) continue;
    v1::Output& output = outputs.emplace_back();
    output.set_stream(stream);
    output.set_omitted_bytes(tail.omitted_bytes);
    output.set_data(std::move(tail.data));
  }
  if (kernel_log) {
    KernelLog::Said said = kernel_log->Read(options_.max_output_bytes);
    if (!said.text.empty() || said.omitted_bytes != 0) {
      v1::Output& output = outputs.emplace_back();
      output.set_stream("kmsg");
      output.set_omitted_bytes(said.omitted_bytes);
      output.set_data(std::move(said.text));
    }
  }
  {
    MutexLock lock(mutex_);
    const Current& current = attempts_[assign.attempt_id()];
    if (evidence.stop_reason == StopReason::kNone) evidence.stop_reason = current.stop_reason;
    evidence.stop_text = current.stop_text;
    attempts_.erase(assign.attempt_id());
  }
  Judgement judgement = Judge(evidence, DeclaredMetrics(assign.variant().workload(), request));
  events_.on_ended({assign.attempt_id(), MakeFrames(std::move(judgement), std::move(outputs))});
}

void WorkerRunner::Execute(const v1::Assign& assign, v1::WorkerRequest& request,
                           std::optional<KernelLog>& kernel_log, Evidence& evidence) {
  const agent::AttemptPaths paths(options_.attempts_folder, assign.attempt_id());
  Status prepared = env_.RemoveTree(paths.Folder());
  if (prepared.ok()) prepared = env_.CreateDirs(paths.Folder());
  if (!prepared.ok()) {
    return FailSetup(evidence, std::move(prepared), v1::OUTCOME_VOID, kAgentDisk);
  }
  Result<std::unique_ptr<TrialLock>> lock = TakeLock(assign.attempt_id());
  if (IsStopped(assign.attempt_id())) return;
  if (!lock.ok()) {
    return FailSetup(evidence, lock.status(), v1::OUTCOME_VOID, kTrialLockUnavailable);
  }
  // Not before: while it waited, another trial ran.
  kernel_log.emplace();
  request.set_attempt_id(assign.attempt_id());
  *request.mutable_variant() = assign.variant();
  request.set_seed(assign.seed());
  // Programs are read to be hashed: not while another trial of the machine runs.
  if (!AddCommand(assign, paths, request, evidence)) return;
  if (Status written = env_.WriteFileAtomic(paths.Request(), request.SerializeAsString());
      !written.ok()) {
    return FailSetup(evidence, std::move(written), v1::OUTCOME_VOID, kAgentDisk);
  }
  // Durable before the spawn: an attempt that may have begun is never begun anew.
  Status started = env_.WriteFileAtomic(paths.Started(), options_.boot_id + "\n");
  if (started.ok()) started = env_.SyncDir(options_.attempts_folder);
  if (!started.ok()) return FailSetup(evidence, std::move(started), v1::OUTCOME_VOID, kAgentDisk);

  SpawnOptions spawn;
  spawn.argv = {options_.worker_program,
                "launch",
                "--parent",
                fmt::format("{}", ::getpid()),
                "--request",
                paths.Request(),
                "--",
                "run",
                "--request",
                paths.Request(),
                "--result",
                paths.Result()};
  spawn.environment = WorkerEnvironment();
  spawn.stdout_path = paths.Stdout();
  spawn.stderr_path = paths.Stderr();
  spawn.working_directory = paths.Folder();
  spawn.inherited_fd = (*lock)->fd();
  evidence.started_utc = clock_.UtcNow();
  const MonotonicTime spawned_at = clock_.Now();
  Result<std::unique_ptr<Process>> process = Process::Spawn(spawn);
  if (!process.ok()) {
    return FailSetup(evidence, process.status(), v1::OUTCOME_FAILED, kSpawnFailed);
  }
  evidence.was_started = true;
  if (const Status recorded = RecordWorker(env_, paths, (*process)->pid()); !recorded.ok()) {
    // It is found by its command line then.
    Log(LogLevel::kWarning, kRoom, "attempt {}: {}", assign.attempt_id(), recorded.message());
  }
  events_.on_started(assign.attempt_id());
  if (const Status watched = Watch(**process, evidence); !watched.ok()) {
    Log(LogLevel::kError, kRoom, "attempt {}: {}", assign.attempt_id(), watched.message());
  }
  evidence.elapsed = clock_.Now() - spawned_at;
  // While the machine's lock is held: the next trial is not to run beside them.
  if (request.has_command()) {
    if (Status killed = KillProgramsOf(assign.attempt_id(), kKillPatience); !killed.ok()) {
      return FailSetup(evidence, std::move(killed), v1::OUTCOME_VOID, kProgramsLeft);
    }
  }
  CollectResult(paths, evidence);
}

bool WorkerRunner::AddCommand(const v1::Assign& assign, const agent::AttemptPaths& paths,
                              v1::WorkerRequest& request, Evidence& evidence) {
  if (assign.variant().workload() != "command") return true;
  const auto fail = [&](Status status, v1::Outcome outcome, std::string_view reason) {
    FailSetup(evidence, std::move(status), outcome, reason);
    return false;
  };
  // It was checked when it was assigned; after a restart of the agent the folder may be another.
  const Result<settings::Variant> variant = settings::FromProto(assign.variant());
  if (!variant.ok()) return fail(variant.status(), v1::OUTCOME_FAILED, kNotSupported);
  const commands::CommandFolder nothing;
  const commands::CommandFolder& allowed =
      options_.commands == nullptr ? nothing : *options_.commands;
  const Result<const commands::Command*> command = allowed.Find(variant->Text("command"));
  if (!command.ok()) {
    return fail(command.status(), v1::OUTCOME_NOT_APPLICABLE, kCommandNotAllowed);
  }
  if (Status made = env_.CreateDirs(paths.Work()); !made.ok()) {
    return fail(std::move(made), v1::OUTCOME_VOID, kAgentDisk);
  }
  Result<v1::CommandToRun> resolved =
      commands::ResolveCommand(**command, settings::GivenCommandParameters(*variant), paths.Work());
  if (!resolved.ok()) {
    const bool is_missing = resolved.status().code() == StatusCode::kNotFound;
    return fail(resolved.status(), v1::OUTCOME_NOT_APPLICABLE,
                is_missing ? kProgramMissing : kCommandNotAllowed);
  }
  *request.mutable_command() = *std::move(resolved);
  return true;
}

Result<std::unique_ptr<TrialLock>> WorkerRunner::TakeLock(const std::string& attempt_id) {
  TrialLockWait wait;
  {
    MutexLock lock(mutex_);
    Current& current = attempts_[attempt_id];
    if (current.stop_reason != StopReason::kNone) return Cancelled("stopped");
    current.lock_wait = &wait;
  }
  Result<std::unique_ptr<TrialLock>> held = wait.Acquire(options_.trial_lock_path);
  MutexLock lock(mutex_);
  attempts_[attempt_id].lock_wait = nullptr;
  return held;
}

Status WorkerRunner::Watch(Process& process, Evidence& evidence) {
  {
    MutexLock lock(mutex_);
    Current& current = attempts_[evidence.attempt_id];
    current.process = &process;
    if (current.stop_reason != StopReason::kNone) (void)process.Kill(SIGKILL);
  }
  Result<std::optional<ExitStatus>> exit = process.Wait(evidence.trial_timeout);
  if (exit.ok() && !exit->has_value()) {
    evidence.stop_reason = StopReason::kTimeout;
    (void)process.Kill(SIGKILL);
    exit = process.Wait(kKillPatience);
  }
  MutexLock lock(mutex_);
  attempts_[evidence.attempt_id].process = nullptr;
  if (!exit.ok()) return exit.status();
  if (!exit->has_value()) return DeadlineExceeded("the worker does not end after SIGKILL");
  evidence.exit = **exit;
  return Status::Ok();
}

void WorkerRunner::CollectResult(const agent::AttemptPaths& paths, Evidence& evidence) {
  const Result<uint64_t> size = env_.FileSize(paths.Result());
  if (size.status().code() == StatusCode::kNotFound) {
    evidence.result_error = "the worker left no result";
    return;
  }
  if (size.ok() && *size > options_.max_result_bytes) {
    evidence.result_error = fmt::format("the worker left a result of {} B, over the limit of {} B",
                                        *size, options_.max_result_bytes);
    return;
  }
  Result<std::string> content = env_.ReadFile(paths.Result());
  if (content.ok()) {
    evidence.result = std::move(content).value();
  } else {
    evidence.result_error = content.status().message();
  }
}

}  // namespace pipeyard::runner
