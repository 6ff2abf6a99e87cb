#include "agent/core/agent.h"

#include <algorithm>
#include <utility>

#include "agent/core/state_folder.h"
#include "agent/runner/text.h"
#include "base/log.h"

namespace pipeyard::agent {
namespace {

constexpr std::string_view kRoom = "agent";
// Foreign text in log lines.
constexpr size_t kMaxLoggedBytes = 300;

using Answer = runner::AttemptTracker::Answer;
using State = runner::AttemptTracker::State;

std::string EndText(const v1::AttemptEnd& end) {
  if (end.outcome() == v1::OUTCOME_OK) return "ok";
  std::string outcome = v1::Outcome_Name(end.outcome()).substr(sizeof "OUTCOME_" - 1);
  for (char& c : outcome) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return outcome + "/" + end.reason_code() + ": " +
         runner::Printable(end.reason_text(), kMaxLoggedBytes);
}

}  // namespace

Agent::Agent(Executor& executor, Executor& disk, const Clock& clock, Env& env, AgentPaths paths,
             spool::Spool& spool, AgentOptions options, OnFinished on_finished)
    : executor_(executor),
      disk_(disk),
      clock_(clock),
      env_(env),
      paths_(std::move(paths)),
      spool_(spool),
      options_(std::move(options)),
      on_finished_(std::move(on_finished)),
      tracker_(options_.commands) {}

void Agent::Connect(session::AgentSession& session, runner::AttemptRunner& runner) {
  session_ = &session;
  runner_ = &runner;
}

void Agent::Start(Recovery recovery) {
  for (runner::EndedAttempt& ended : recovery.ended) {
    tracker_.AddWaiting(ended.attempt_id);
    tracker_.OnStarted(ended.attempt_id, clock_.Now());
    OnEnded(std::move(ended));
  }
  for (const v1::Assign& assign : recovery.to_run) {
    tracker_.AddWaiting(assign.attempt_id());
    Run(assign);
  }
  session_->Start();
}

void Agent::OnAssign(const v1::Assign& assign) {
  const std::string& id = assign.attempt_id();
  const Answer answer = tracker_.OnAssign(assign, spool_.Find(id).has_value());
  switch (answer.kind) {
    case Answer::Kind::kNone:
      return;
    case Answer::Kind::kAcceptAgain:
      session_->Accept(id);
      return;
    case Answer::Kind::kRefuse:
      Log(LogLevel::kInfo, kRoom, "refused attempt {}: {}", runner::Printable(id, 64), answer.text);
      session_->Refuse(id, answer.reason, answer.text);
      return;
    case Answer::Kind::kJournal:
      Journal(assign);
      return;
  }
}

void Agent::Journal(const v1::Assign& assign) {
  disk_.Post([this, assign] {
    const Status status = spool_.Accept(assign);
    executor_.Post([this, assign, status] { OnJournaled(assign, status); });
  });
}

void Agent::OnJournaled(const v1::Assign& assign, const Status& status) {
  const std::string& id = assign.attempt_id();
  if (!status.ok() && status.code() != StatusCode::kAlreadyExists) {
    Log(LogLevel::kError, kRoom, "refused attempt {}: {}", id, status.message());
    tracker_.OnFinished(id);
    session_->Refuse(id, v1::Refused::REASON_DISK,
                     runner::Printable(status.message(), runner::kMaxReasonTextBytes));
    FinishWhenIdle();
    return;
  }
  tracker_.OnJournaled(id);
  session_->Accept(id);
  Run(assign);
  const auto* unfinished = tracker_.Find(id);
  if (unfinished != nullptr && unfinished->cancel_reason) {
    runner_->Stop(id, runner::StopReason::kCanceled, *unfinished->cancel_reason);
  } else if (is_finishing_ && !finish_.is_refused) {
    runner_->Stop(id, runner::StopReason::kAgentStops, "");
  }
}

void Agent::Run(const v1::Assign& assign) {
  const std::string id = assign.attempt_id();
  Log(LogLevel::kInfo, kRoom, "attempt {} of {} accepted", id, assign.trial_name());
  lock_timers_[id] = executor_.PostAfter(options_.trial_lock_timeout, [this, id] {
    lock_timers_.erase(id);
    const auto* unfinished = tracker_.Find(id);
    if (unfinished == nullptr || unfinished->state != State::kWaiting) return;
    runner_->Stop(id, runner::StopReason::kLockTimeout, "");
  });
  runner_->Run(assign);
}

void Agent::OnStarted(const std::string& attempt_id) {
  CancelLockTimer(attempt_id);
  tracker_.OnStarted(attempt_id, clock_.Now());
  session_->HeldChanged();
}

void Agent::OnEnded(runner::EndedAttempt ended) {
  CancelLockTimer(ended.attempt_id);
  Append(std::make_shared<const runner::EndedAttempt>(std::move(ended)), options_.disk_retry_min);
}

void Agent::Append(std::shared_ptr<const runner::EndedAttempt> ended, Nanos retry_in) {
  disk_.Post([this, ended, retry_in] {
    const Status status = spool_.Append(ended->attempt_id, ended->frames);
    // Only once the end is safe: the folder is what a later life would judge by.
    if (status.ok()) {
      (void)env_.RemoveTree(AttemptPaths(paths_.Attempts(), ended->attempt_id).Folder());
    }
    executor_.Post([this, ended, status, retry_in] { OnAppended(ended, status, retry_in); });
  });
}

void Agent::OnAppended(const std::shared_ptr<const runner::EndedAttempt>& ended,
                       const Status& status, Nanos retry_in) {
  const std::string& id = ended->attempt_id;
  // These do not pass by waiting; the attempt has its end, or none can be written.
  const bool is_hopeless = status.code() == StatusCode::kFailedPrecondition ||
                           status.code() == StatusCode::kNotFound ||
                           status.code() == StatusCode::kInvalidArgument;
  if (!status.ok() && !is_hopeless) {
    Log(LogLevel::kError, kRoom, "attempt {} ended and cannot be written down, next try in {}: {}",
        id, FormatDuration(retry_in), status.message());
    const Nanos next = std::min(retry_in * 2, options_.disk_retry_max);
    executor_.PostAfter(retry_in, [this, ended, next] { Append(ended, next); });
    return;
  }
  if (is_hopeless) {
    Log(LogLevel::kError, kRoom, "attempt {}: {}", id, status.message());
  } else {
    Log(LogLevel::kInfo, kRoom, "attempt {} ended: {}", id, EndText(ended->frames.back().end()));
  }
  tracker_.OnFinished(id);
  session_->FramesSpooled();
  FinishWhenIdle();
}

void Agent::OnAcked(const std::string& attempt_id, uint64_t through) {
  Ack(attempt_id, through, options_.disk_retry_min);
}

void Agent::Ack(const std::string& attempt_id, uint64_t through, Nanos retry_in) {
  disk_.Post([this, attempt_id, through, retry_in] {
    const Status status = spool_.Ack(attempt_id, through);
    executor_.Post([this, attempt_id, through, status, retry_in] {
      OnAckWritten(attempt_id, through, status, retry_in);
    });
  });
}

void Agent::OnAckWritten(const std::string& attempt_id, uint64_t through, const Status& status,
                         Nanos retry_in) {
  if (!status.ok() && spool_.Find(attempt_id) && status.code() != StatusCode::kInvalidArgument) {
    Log(LogLevel::kError, kRoom, "next try in {}: {}", FormatDuration(retry_in), status.message());
    const Nanos next = std::min(retry_in * 2, options_.disk_retry_max);
    executor_.PostAfter(retry_in,
                        [this, attempt_id, through, next] { Ack(attempt_id, through, next); });
    return;
  }
  if (!spool_.Find(attempt_id)) tracker_.OnForgotten(attempt_id);
  session_->FramesSpooled();
}

void Agent::OnCancel(const v1::Cancel& cancel) {
  auto* unfinished = tracker_.Find(cancel.attempt_id());
  if (unfinished == nullptr) return;
  const std::string reason = runner::Printable(cancel.reason(), runner::kMaxReasonTextBytes);
  if (unfinished->state == State::kJournaling) {
    unfinished->cancel_reason = reason;
  } else {
    runner_->Stop(cancel.attempt_id(), runner::StopReason::kCanceled, reason);
  }
}

std::vector<session::AttemptSource::Held> Agent::HeldAttempts() {
  std::vector<Held> held;
  for (const spool::SpooledAttempt& attempt : spool_.List()) {
    Held& entry = held.emplace_back();
    v1::HeldAttempt& message = entry.attempt;
    message.set_attempt_id(attempt.attempt_id);
    message.set_store_id(attempt.store_id);
    message.set_phase(tracker_.PhaseOf(attempt.attempt_id, attempt.is_final));
    message.set_spooled_through(attempt.num_frames);
    const auto* unfinished = tracker_.Find(attempt.attempt_id);
    if (unfinished != nullptr && unfinished->state == State::kRunning) {
      message.set_running_ns((clock_.Now() - unfinished->started_at).count());
    }
    entry.acked_through = attempt.acked_through;
  }
  return held;
}

Result<v1::Frame> Agent::ReadFrame(const std::string& attempt_id, uint64_t sequence) {
  return spool_.ReadFrame(attempt_id, sequence);
}

void Agent::OnAttached(const v1::Welcome& welcome) {
  if (link_ != Link::kUp) {
    Log(LogLevel::kInfo, kRoom, "attached to controller {} of store {}",
        runner::Printable(welcome.controller_version(), 64), welcome.store_id());
  }
  link_ = Link::kUp;
}

void Agent::OnDetached(const Status& why, Nanos) {
  if (link_ == Link::kUnknown || link_ == Link::kUp) {
    Log(LogLevel::kWarning, kRoom, "{}: {}; dialing until it answers",
        link_ == Link::kUp ? "the controller is gone" : "the controller does not answer",
        runner::Printable(why.message(), kMaxLoggedBytes));
    link_ = Link::kDown;
  }
  if (options_.read_facts && tracker_.unfinished().empty()) {
    session_->SetFacts(options_.read_facts());
  }
}

void Agent::OnRefused(const v1::HelloRefused& refused, bool is_final) {
  const std::string text = runner::Printable(refused.text(), kMaxLoggedBytes);
  if (link_ != Link::kRefused || is_final) {
    Log(LogLevel::kError, kRoom, "the controller refused this agent ({}): {}{}",
        v1::HelloRefused::Reason_Name(refused.reason()), text,
        is_final ? "" : "; dialing until it does not");
  }
  link_ = Link::kRefused;
  if (!is_final || is_finishing_) return;
  tracker_.Drain();
  is_finishing_ = true;
  finish_ = {.is_refused = true, .text = text};
  FinishWhenIdle();
}

void Agent::OnUnsendableFrame(const std::string&, uint64_t, const Status& why) {
  // The session has logged it. Damage stays until the next start cuts it off; a disk that failed to
  // read may do better on the next stream.
  if (why.code() == StatusCode::kDataLoss || why.code() == StatusCode::kInvalidArgument) return;
  executor_.PostAfter(options_.disk_retry_max, [this] {
    if (is_finished_ || session_->state() != session::AgentSession::State::kAttached) return;
    session_->Stop();
    session_->Start();
  });
}

void Agent::Shutdown() {
  if (is_finishing_ && !finish_.is_refused) return;
  tracker_.Drain();
  is_finishing_ = true;
  finish_ = {};
  for (const auto& unfinished : tracker_.unfinished()) {
    if (unfinished.state == State::kJournaling) continue;
    runner_->Stop(unfinished.attempt_id, runner::StopReason::kAgentStops, "");
  }
  executor_.PostAfter(options_.shutdown_timeout, [this] { Conclude(); });
  FinishWhenIdle();
}

void Agent::FinishWhenIdle() {
  if (!is_finishing_ || !tracker_.unfinished().empty()) return;
  Conclude();
}

void Agent::Conclude() {
  if (std::exchange(is_finished_, true)) return;
  session_->Stop();
  disk_.Post([this] {
    // Without the mark the next start is only less sure of what happened.
    (void)MarkCleanStop(env_, paths_, options_.boot_id);
    executor_.Post([this] { on_finished_(finish_); });
  });
}

void Agent::CancelLockTimer(const std::string& attempt_id) {
  const auto it = lock_timers_.find(attempt_id);
  if (it == lock_timers_.end()) return;
  executor_.Cancel(it->second);
  lock_timers_.erase(it);
}

}  // namespace pipeyard::agent
