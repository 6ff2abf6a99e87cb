// Agent: what the daemon decides. It answers assignments, has them run and spooled one after the
// other, and gives the session what is owed.
//
//   OnAssign ─► tracker ─► spool.Accept (disk executor) ─► session.Accept ─► runner.Run
//   runner ended ─► spool.Append (disk executor, repeated until it succeeds) ─►
//   session.FramesSpooled OnAcked ─► spool.Ack (disk executor)
//
// Every accepted attempt ends in the spool exactly once: the spool refuses a second final frame,
// and recovery.h ends what a death of this process interrupted. While a trial runs nothing happens
// here but what the session does for heartbeats.
//
// Thread safety: confined to `executor`. Ownership: everything given by reference is borrowed and
// outlives this and what the executors run.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/core/recovery.h"
#include "agent/paths.h"
#include "agent/runner/attempt_tracker.h"
#include "agent/runner/worker_runner.h"
#include "agent/spool/spool.h"
#include "base/clock.h"
#include "base/env.h"
#include "base/executor.h"
#include "proto/session/agent_session.h"
#include "workloads/commands/command_folder.h"

namespace pipeyard::agent {

struct AgentOptions {
  std::string boot_id;
  // How long an attempt waits for the machine's trial lock. Longer than other agents' trials on the
  // machine; its end is void/trial_lock_timeout.
  Nanos trial_lock_timeout = Minutes(60);
  // Between two tries to write to a disk that fails or is full; doubled up to the maximum.
  Nanos disk_retry_min = Seconds(1);
  Nanos disk_retry_max = Seconds(30);
  // From Shutdown() to giving up on the spool: what is not written then is ended at the next start.
  Nanos shutdown_timeout = Seconds(10);
  // Read anew before a Hello while nothing runs; may be empty.
  std::function<v1::HostFacts()> read_facts = {};
  // Borrowed; what workload `command` may run; nullptr: nothing.
  const commands::CommandFolder* commands = nullptr;
};

class Agent final : public session::AttemptSource, public session::AgentEvents {
 public:
  // Why the agent is to end.
  struct Finish {
    bool is_refused = false;  // by the controller, for good
    std::string text;
  };
  using OnFinished = std::function<void(const Finish&)>;

  // `disk`: runs what waits for the disk. `on_finished` is called once, on `executor`, when the
  // process may end.
  Agent(Executor& executor, Executor& disk, const Clock& clock, Env& env, AgentPaths paths,
        spool::Spool& spool, AgentOptions options, OnFinished on_finished);

  // Once, before Start(). Both are borrowed.
  void Connect(session::AgentSession& session, runner::AttemptRunner& runner);
  // Takes up what an earlier life left, then dials.
  void Start(Recovery recovery);
  // Ends the running attempt as void/agent_restarted, spools that, then on_finished. Idempotent.
  void Shutdown();

  // The runner's events, already on `executor`.
  void OnStarted(const std::string& attempt_id);
  void OnEnded(runner::EndedAttempt ended);

  // session::AttemptSource
  std::vector<Held> HeldAttempts() override;
  Result<v1::Frame> ReadFrame(const std::string& attempt_id, uint64_t sequence) override;

  // session::AgentEvents
  void OnAttached(const v1::Welcome& welcome) override;
  void OnDetached(const Status& why, Nanos retry_in) override;
  void OnRefused(const v1::HelloRefused& refused, bool is_final) override;
  void OnAssign(const v1::Assign& assign) override;
  void OnCancel(const v1::Cancel& cancel) override;
  void OnAcked(const std::string& attempt_id, uint64_t through) override;
  void OnUnsendableFrame(const std::string& attempt_id, uint64_t sequence,
                         const Status& why) override;

 private:
  // What is known of the connection, so that each change is logged once.
  enum class Link { kUnknown, kUp, kDown, kRefused };

  void Journal(const v1::Assign& assign);
  void OnJournaled(const v1::Assign& assign, const Status& status);
  void Run(const v1::Assign& assign);
  void Append(std::shared_ptr<const runner::EndedAttempt> ended, Nanos retry_in);
  void OnAppended(const std::shared_ptr<const runner::EndedAttempt>& ended, const Status& status,
                  Nanos retry_in);
  void Ack(const std::string& attempt_id, uint64_t through, Nanos retry_in);
  void OnAckWritten(const std::string& attempt_id, uint64_t through, const Status& status,
                    Nanos retry_in);
  void CancelLockTimer(const std::string& attempt_id);
  void FinishWhenIdle();
  void Conclude();

  // Constant after construction, but for the two that Connect() sets.
  Executor& executor_;
  Executor& disk_;
  const Clock& clock_;
  Env& env_;
  const AgentPaths paths_;
  spool::Spool& spool_;
  const AgentOptions options_;
  const OnFinished on_finished_;
  session::AgentSession* session_ = nullptr;
  runner::AttemptRunner* runner_ = nullptr;

  runner::AttemptTracker tracker_;
  std::map<std::string, TimerId> lock_timers_;
  Link link_ = Link::kUnknown;
  bool is_finishing_ = false;
  bool is_finished_ = false;
  Finish finish_;
};

}  // namespace pipeyard::agent
