// AttemptTracker: which attempts the agent has not brought to an end yet, and what it does about
// each message and each restart. Pure: runs nothing, writes nothing (worker_runner and spool do).
//
//   Assign ──> journaling ──> waiting ──> running ──> (spooled: in the spool to its final frame)
//                  └ cannot be written ──> refused, forgotten
//   restart:   waiting ──> waiting        nothing was measured: it is run
//              running ──> spooled        void/agent_restarted, or by a new boot (see
//              DecideAtStartup)
//
// Thread safety: thread-compatible.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "pipeyard/v1/agent.pb.h"
#include "workloads/commands/command_folder.h"

namespace pipeyard::runner {

// What an earlier life of the agent left of one attempt.
struct AttemptRemains {
  bool is_final = false;             // its final frame is in the spool
  std::string started_boot_id = {};  // content of `started`; empty: its worker was never spawned
  // The agent of that boot ended by itself (clean-stop names the boot).
  bool was_clean_stop = false;
};

struct StartupDecision {
  enum class Action {
    kNone,  // it is in the spool to its end
    kRun,   // begin it
    kEnd,   // append a final frame with `outcome` and `reason_code`
  };
  Action action = Action::kNone;
  v1::Outcome outcome = v1::OUTCOME_UNSPECIFIED;
  std::string reason_code = {};
  std::string reason_text = {};
};

StartupDecision DecideAtStartup(const AttemptRemains& remains, const std::string& boot_id);

class AttemptTracker {
 public:
  enum class State { kJournaling, kWaiting, kRunning };

  struct Unfinished {
    std::string attempt_id = {};
    State state = State::kJournaling;
    MonotonicTime started_at{0};
    // A Cancel came while it was journaled.
    std::optional<std::string> cancel_reason = {};
  };

  struct Answer {
    enum class Kind {
      kJournal,      // write it down, then accept
      kAcceptAgain,  // it is held, or was acknowledged a moment ago
      kNone,         // its answer is on the way
      kRefuse,
    };
    Kind kind = Kind::kNone;
    v1::Refused::Reason reason = v1::Refused::REASON_UNSPECIFIED;
    std::string text = {};
  };

  // `commands`: borrowed; what workload `command` may run; nullptr: nothing.
  explicit AttemptTracker(const commands::CommandFolder* commands = nullptr)
      : commands_(commands) {}

  // `is_held`: the spool has the attempt. After kJournal the attempt is tracked as journaling.
  Answer OnAssign(const v1::Assign& assign, bool is_held);
  // From now on everything new is refused.
  void Drain() { is_draining_ = true; }

  // An attempt of an earlier life that is to be run, in kWaiting.
  void AddWaiting(const std::string& attempt_id);
  void OnJournaled(const std::string& attempt_id);
  void OnStarted(const std::string& attempt_id, MonotonicTime now);
  // Its final frame is in the spool, or it was refused after all.
  void OnFinished(const std::string& attempt_id);
  // The spool forgot it: every frame is acknowledged.
  void OnForgotten(const std::string& attempt_id);

  Unfinished* Find(const std::string& attempt_id);
  const std::deque<Unfinished>& unfinished() const { return unfinished_; }
  // Of the attempt in the spool.
  v1::AttemptPhase PhaseOf(const std::string& attempt_id, bool is_final) const;

 private:
  const commands::CommandFolder* const commands_;
  bool is_draining_ = false;
  // One as a rule; more only after a restart.
  std::deque<Unfinished> unfinished_;
  // The newest acknowledged attempts: a late duplicate of their Assign must not run them again.
  std::deque<std::string> forgotten_;
};

}  // namespace pipeyard::runner
