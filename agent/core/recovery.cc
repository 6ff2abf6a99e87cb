#include "agent/core/recovery.h"

#include <fmt/format.h>

#include <utility>

#include "agent/core/state_folder.h"
#include "agent/runner/attempt_tracker.h"
#include "agent/runner/frames.h"
#include "agent/runner/leftover.h"
#include "agent/runner/output_tail.h"
#include "base/ids.h"
#include "base/log.h"

namespace pipeyard::agent {
namespace {

constexpr std::string_view kRoom = "agent";
// SIGKILL acts at once but for a process in an uninterruptible sleep.
constexpr Nanos kKillPatience = Seconds(10);
constexpr uint64_t kMaxOutputBytes = 64 << 10;

Result<runner::AttemptRemains> LookAt(Env& env, const AttemptPaths& paths,
                                      const spool::SpooledAttempt& attempt,
                                      const std::string& clean_stop_boot_id,
                                      const std::string& boot_id) {
  runner::AttemptRemains remains;
  remains.is_final = attempt.is_final;
  const Result<std::string> started = env.ReadFile(paths.Started());
  if (started.ok()) {
    remains.started_boot_id = started->substr(0, started->find('\n'));
    // Damaged: it began in some boot; this one is the least claim.
    if (!IsUuid(remains.started_boot_id)) remains.started_boot_id = boot_id;
    remains.was_clean_stop = remains.started_boot_id == clean_stop_boot_id;
  } else if (started.status().code() != StatusCode::kNotFound) {
    return started.status();
  }
  return remains;
}

runner::EndedAttempt MakeEnd(const AttemptPaths& paths, const std::string& attempt_id,
                             const runner::StartupDecision& decision, const Clock& clock,
                             const std::string& boot_id) {
  runner::Judgement judgement;
  judgement.end = runner::EndWithoutWorker(decision.outcome, decision.reason_code,
                                           decision.reason_text, boot_id, clock.UtcNow());
  std::vector<v1::Output> outputs;
  for (const auto& [stream, path] :
       {std::pair("stdout", paths.Stdout()), std::pair("stderr", paths.Stderr())}) {
    runner::OutputTail tail = runner::ReadOutputTail(path, kMaxOutputBytes);
    if (tail.data.empty()) continue;
    v1::Output& output = outputs.emplace_back();
    output.set_stream(stream);
    output.set_omitted_bytes(tail.omitted_bytes);
    output.set_data(std::move(tail.data));
  }
  return {attempt_id, runner::MakeFrames(std::move(judgement), std::move(outputs))};
}

void RemoveOldFolders(Env& env, const AgentPaths& paths, const spool::Spool& spool) {
  const Result<std::vector<std::string>> names = env.ListDir(paths.Attempts());
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    const auto attempt = spool.Find(name);
    if (attempt && !attempt->is_final) continue;
    // What cannot be removed now only takes room.
    (void)env.RemoveTree(AttemptPaths(paths.Attempts(), name).Folder());
  }
}

}  // namespace

Result<Recovery> RecoverAttempts(Env& env, const AgentPaths& paths, const spool::Spool& spool,
                                 const Clock& clock, const std::string& boot_id) {
  PIPEYARD_RETURN_IF_ERROR(env.CreateDirs(paths.Attempts()));
  PIPEYARD_RETURN_IF_ERROR(env.SyncDir(paths.StateFolder()));
  PIPEYARD_ASSIGN_OR_RETURN(const std::string clean_stop, TakeCleanStop(env, paths));
  Recovery recovery;
  for (const spool::SpooledAttempt& attempt : spool.List()) {
    const std::string& id = attempt.attempt_id;
    const AttemptPaths folder(paths.Attempts(), id);
    PIPEYARD_ASSIGN_OR_RETURN(const runner::AttemptRemains remains,
                              LookAt(env, folder, attempt, clean_stop, boot_id));
    const runner::StartupDecision decision = runner::DecideAtStartup(remains, boot_id);
    switch (decision.action) {
      case runner::StartupDecision::Action::kNone:
        break;
      case runner::StartupDecision::Action::kRun: {
        PIPEYARD_ASSIGN_OR_RETURN(v1::Assign assign, spool.ReadAssignment(id));
        recovery.to_run.push_back(std::move(assign));
        Log(LogLevel::kInfo, kRoom, "attempt {} had not begun: it is run now", id);
        break;
      }
      case runner::StartupDecision::Action::kEnd:
        PIPEYARD_RETURN_IF_ERROR(runner::KillLeftoverWorker(env, folder, kKillPatience));
        recovery.ended.push_back(MakeEnd(folder, id, decision, clock, remains.started_boot_id));
        Log(LogLevel::kWarning, kRoom, "attempt {} was interrupted: {}", id, decision.reason_code);
        break;
    }
  }
  RemoveOldFolders(env, paths, spool);
  return recovery;
}

}  // namespace pipeyard::agent
