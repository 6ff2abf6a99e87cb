#include "agent/runner/attempt_tracker.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/runner/assign_check.h"
#include "agent/runner/reasons.h"
#include "agent/runner/text.h"

namespace pipeyard::runner {
namespace {

// Duplicates come within one connection, a few messages late at most.
constexpr size_t kMaxForgotten = 64;

AttemptTracker::Answer Refuse(v1::Refused::Reason reason, std::string text) {
  return {AttemptTracker::Answer::Kind::kRefuse, reason, std::move(text)};
}

}  // namespace

StartupDecision DecideAtStartup(const AttemptRemains& remains, const std::string& boot_id) {
  using Action = StartupDecision::Action;
  if (remains.is_final) return {};
  if (remains.started_boot_id.empty()) return {.action = Action::kRun};
  if (remains.started_boot_id == boot_id) {
    return {Action::kEnd, v1::OUTCOME_VOID, std::string(kAgentRestarted),
            "the agent was restarted while the worker ran"};
  }
  if (remains.was_clean_stop) {
    return {Action::kEnd, v1::OUTCOME_VOID, std::string(kHostRebooted),
            "the host was rebooted before the attempt ended"};
  }
  return {Action::kEnd, v1::OUTCOME_FAILED, std::string(kHostCrashed),
          "the host started anew, without a clean shutdown, while the worker ran"};
}

AttemptTracker::Answer AttemptTracker::OnAssign(const v1::Assign& assign, bool is_held) {
  const std::string& id = assign.attempt_id();
  if (const Unfinished* unfinished = Find(id);
      unfinished != nullptr && unfinished->state == State::kJournaling) {
    return {Answer::Kind::kNone};
  }
  const bool was_forgotten =
      std::find(forgotten_.begin(), forgotten_.end(), id) != forgotten_.end();
  if (is_held || was_forgotten) return {Answer::Kind::kAcceptAgain};
  if (const Status status = CheckAssign(assign, commands_); !status.ok()) {
    return Refuse(v1::Refused::REASON_NOT_APPLICABLE,
                  Printable(status.message(), kMaxReasonTextBytes));
  }
  if (is_draining_) return Refuse(v1::Refused::REASON_DRAINING, "the agent is stopping");
  if (!unfinished_.empty()) {
    return Refuse(v1::Refused::REASON_BUSY,
                  fmt::format("the agent holds attempt {}", unfinished_.front().attempt_id));
  }
  unfinished_.push_back({.attempt_id = id});
  return {Answer::Kind::kJournal};
}

void AttemptTracker::AddWaiting(const std::string& attempt_id) {
  unfinished_.push_back({.attempt_id = attempt_id, .state = State::kWaiting});
}

void AttemptTracker::OnJournaled(const std::string& attempt_id) {
  if (Unfinished* unfinished = Find(attempt_id)) unfinished->state = State::kWaiting;
}

void AttemptTracker::OnStarted(const std::string& attempt_id, MonotonicTime now) {
  if (Unfinished* unfinished = Find(attempt_id)) {
    unfinished->state = State::kRunning;
    unfinished->started_at = now;
  }
}

void AttemptTracker::OnFinished(const std::string& attempt_id) {
  std::erase_if(unfinished_, [&](const auto& entry) { return entry.attempt_id == attempt_id; });
}

void AttemptTracker::OnForgotten(const std::string& attempt_id) {
  if (std::find(forgotten_.begin(), forgotten_.end(), attempt_id) != forgotten_.end()) return;
  forgotten_.push_back(attempt_id);
  if (forgotten_.size() > kMaxForgotten) forgotten_.pop_front();
}

AttemptTracker::Unfinished* AttemptTracker::Find(const std::string& attempt_id) {
  for (Unfinished& unfinished : unfinished_) {
    if (unfinished.attempt_id == attempt_id) return &unfinished;
  }
  return nullptr;
}

v1::AttemptPhase AttemptTracker::PhaseOf(const std::string& attempt_id, bool is_final) const {
  if (is_final) return v1::ATTEMPT_PHASE_SPOOLED;
  for (const Unfinished& unfinished : unfinished_) {
    if (unfinished.attempt_id != attempt_id) continue;
    return unfinished.state == State::kRunning ? v1::ATTEMPT_PHASE_RUNNING
                                               : v1::ATTEMPT_PHASE_WAITING;
  }
  return v1::ATTEMPT_PHASE_RUNNING;
}

}  // namespace pipeyard::runner
