// Who runs what: leases, what the agents report, deadlines.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "controller/scheduler/order.h"
#include "controller/scheduler/scheduler.h"

namespace pipeyard::scheduler {
namespace {

// A connected agent that says nothing of an attempt gets at least this long, however short
// host_wait is.
constexpr Nanos kLeastSilence = Minutes(1);

}  // namespace

bool Scheduler::IsFree(const HostState& host) const {
  return host.is_connected && host.current.empty() && host.occupied_by.empty() &&
         now_.monotonic >= host.paused_until;
}

void Scheduler::Dispatch(HostState& host) {
  if (!IsFree(host)) return;
  for (auto& [run_id, run] : runs_) {
    const storage::RunState state = run->header.state;
    if (state != storage::RunState::kQueued && state != storage::RunState::kRunning) continue;
    const auto part = run->hosts.find(host.host_id);
    if (part == run->hosts.end() || part->second.pending.empty()) continue;
    // A copy: leasing takes the key out of the set.
    const PendingKey key = *part->second.pending.begin();
    return Lease(host, *run, key);
  }
}

void Scheduler::Lease(HostState& host, Run& run, const PendingKey& key) {
  Cell& cell = run.cells[key.cell_index];
  Trial& trial = cell.trials[key.trial_index - 1];
  Attempt attempt;
  attempt.attempt_id = next_id_();
  attempt.run_id = run.header.run_id;
  attempt.cell_index = key.cell_index;
  attempt.trial_index = key.trial_index;
  attempt.number = ++trial.last_number;
  attempt.last_news = now_.monotonic;

  storage::AttemptRecord record;
  record.attempt_id = attempt.attempt_id;
  record.number = attempt.number;
  record.epoch = identity_.epoch;
  record.leased_utc = now_.utc.count();
  actions_.mutations.push_back(storage::InsertAttempt{
      {run.header.run_id, cell.host_id, cell.variant_index, trial.trial_index}, std::move(record)});

  trial.attempts.push_back(attempt.attempt_id);
  host.current = attempt.attempt_id;
  Attempt& stored = attempts_[attempt.attempt_id] = std::move(attempt);
  MoveTrial(run, cell, trial, TrialTrigger::kAssign);
  if (run.header.state == storage::RunState::kQueued) MoveRun(run, RunTrigger::kFirstAssign, "");
  SendAssign(stored);
}

void Scheduler::SendAssign(Attempt& attempt) {
  const Place place = Find(attempt);
  const storage::RunRecord& header = place.run->header;
  const storage::VariantRecord& variant = header.variants[place.cell->variant_index];
  v1::ControllerMessage message;
  v1::Assign& assign = *message.mutable_assign();
  assign.set_attempt_id(attempt.attempt_id);
  assign.set_store_id(identity_.store_id);
  assign.set_epoch(identity_.epoch);
  assign.set_run_id(header.run_id);
  assign.set_trial_name(
      fmt::format("{}/{}/{}", place.cell->host_name, variant.variant_id, place.trial->trial_index));
  *assign.mutable_variant() = variant.settings;
  assign.set_trial_timeout_ns(header.trial_timeout_ns[place.cell->variant_index]);
  assign.set_seed(TrialSeed(header.order_seed, place.cell->host_id, place.trial->block));
  attempt.last_assign = now_.monotonic;
  actions_.sends.push_back({place.cell->host_id, std::move(message)});
}

void Scheduler::SendCancel(const Attempt& attempt, std::string_view reason) {
  v1::ControllerMessage message;
  message.mutable_cancel()->set_attempt_id(attempt.attempt_id);
  message.mutable_cancel()->set_reason(std::string(reason));
  actions_.sends.push_back({Find(attempt).cell->host_id, std::move(message)});
}

void Scheduler::MarkAccepted(Attempt& attempt) {
  const Place place = Find(attempt);
  attempt.last_news = now_.monotonic;
  HostState& host = Host(place.cell->host_id);
  host.pause = Nanos(0);
  host.refusing_since.reset();
  host.refusing_why.clear();
  if (attempt.is_accepted) return;
  attempt.is_accepted = true;
  if (place.trial->state == storage::TrialState::kLeased) {
    MoveTrial(*place.run, *place.cell, *place.trial, TrialTrigger::kAccept);
  }
}

// What a Hello or a Heartbeat says of the attempts that the agent holds.
void Scheduler::Report(HostState& host,
                       const google::protobuf::RepeatedPtrField<v1::HeldAttempt>& held,
                       bool is_hello) {
  host.occupied_by.clear();
  bool lists_current = false;
  for (const v1::HeldAttempt& item : held) {
    const bool is_ours = item.store_id() == identity_.store_id;
    const bool is_current = is_ours && item.attempt_id() == host.current;
    lists_current = lists_current || is_current;
    if (item.phase() == v1::ATTEMPT_PHASE_SPOOLED) continue;
    if (is_current) {
      Attempt& attempt = attempts_.at(host.current);
      MarkAccepted(attempt);
      if (item.phase() == v1::ATTEMPT_PHASE_WAITING) {
        if (!attempt.waiting_since) attempt.waiting_since = now_.monotonic;
        continue;
      }
      attempt.waiting_since.reset();
      const Place place = Find(attempt);
      const Nanos timeout(place.run->header.trial_timeout_ns[place.cell->variant_index]);
      if (Nanos(item.running_ns()) > timeout + options_.deadline_grace) {
        SendCancel(attempt, kReasonDeadline);
        host.occupied_by.insert(attempt.attempt_id);
        EndAttempt(attempt, {storage::Outcome::kTimeout, std::string(kReasonDeadline),
                             fmt::format("ran for {} of {}, and its agent did not end it",
                                         FormatDuration(Nanos(item.running_ns())),
                                         FormatDuration(timeout))});
      }
      continue;
    }
    host.occupied_by.insert(item.attempt_id());
    if (!is_ours) continue;
    const auto it = attempts_.find(item.attempt_id());
    // A lost attempt may still give its trial the sample.
    const bool may_count = it != attempts_.end() && it->second.outcome == storage::Outcome::kLost &&
                           !IsTerminal(Find(it->second).trial->state);
    if (may_count) continue;
    v1::ControllerMessage message;
    message.mutable_cancel()->set_attempt_id(item.attempt_id());
    message.mutable_cancel()->set_reason(std::string(kReasonSuperseded));
    actions_.sends.push_back({host.host_id, std::move(message)});
  }

  if (!host.current.empty() && !lists_current) {
    Attempt& attempt = attempts_.at(host.current);
    const bool is_due = is_hello || now_.monotonic - attempt.last_assign >= options_.assign_repeat;
    if (attempt.frames_through == 0) {
      if (is_due) SendAssign(attempt);
    } else if (is_hello) {
      // It would run a second time under one id, and its frames would mix with those stored.
      EndAttempt(attempt,
                 {storage::Outcome::kLost, "spool_lost",
                  "the agent no longer holds an attempt whose frames were stored in part"});
    }
  }
  if (!host.occupied_by.empty() && host.current.empty()) {
    if (!host.refusing_since) host.refusing_since = now_.monotonic;
    host.refusing_why = "busy";
  }
}

void Scheduler::CheckDeadlines(HostState& host) {
  if (!host.current.empty()) {
    Attempt& attempt = attempts_.at(host.current);
    const Nanos host_wait(Find(attempt).run->header.host_wait_ns);
    if (host.is_connected && attempt.waiting_since &&
        now_.monotonic - *attempt.waiting_since > options_.max_waiting) {
      SendCancel(attempt, kReasonWaitedTooLong);
      host.occupied_by.insert(attempt.attempt_id);
      EndAttempt(attempt, {storage::Outcome::kTimeout, std::string(kReasonWaitedTooLong),
                           "other agents of its machine left it no turn"});
    } else if (host.is_connected &&
               now_.monotonic - attempt.last_news > std::max(host_wait, kLeastSilence)) {
      EndAttempt(attempt, {storage::Outcome::kLost, "no_news",
                           "the agent is connected but says nothing of it"});
    }
  }
  if (host.is_connected && !host.refusing_since) return;
  const MonotonicTime since = host.is_connected ? *host.refusing_since : host.away_since;
  const char* const why = host.is_connected ? host.refusing_why.c_str() : "away";
  for (auto& [run_id, run] : runs_) {
    const auto part = run->hosts.find(host.host_id);
    if (part == run->hosts.end() || part->second.num_terminal == part->second.num_trials) continue;
    const Nanos host_wait(run->header.host_wait_ns);
    // It was we who were away: however short host_wait is, agents get the time to dial again.
    const bool is_our_absence = run->is_recovered && since <= run->added;
    const Nanos patience = is_our_absence ? std::max(host_wait, kLeastSilence) : host_wait;
    if (now_.monotonic - std::max(since, run->added) <= patience) continue;
    GiveUpHost(
        *run, host.host_id, host.is_connected ? kReasonHostUnavailable : kReasonHostAway,
        fmt::format("host {} for longer than host_wait ({})", why, FormatDuration(host_wait)));
  }
}

}  // namespace pipeyard::scheduler
