#include "controller/scheduler/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace pipeyard::scheduler {

Scheduler::Scheduler(storage::StoreIdentity identity, std::function<std::string()> next_id,
                     Options options)
    : identity_(std::move(identity)), next_id_(std::move(next_id)), options_(options) {}

Scheduler::~Scheduler() = default;

Actions Scheduler::Handle(const Event& event, Now now) {
  now_ = now;
  std::visit([this](const auto& e) { On(e); }, event);
  ForgetEndedRuns();
  return std::exchange(actions_, {});
}

void Scheduler::On(const HostAttached& event) {
  HostState& host = Host(event.host_id);
  host.name = event.hello.name();
  host.is_connected = true;
  host.session = event.session;
  host.paused_until = now_.monotonic;
  host.pause = Nanos(0);
  host.last_touch = now_.utc;

  storage::HostRecord record;
  record.host_id = event.host_id;
  record.name = event.hello.name();
  record.boot_id = event.hello.boot_id();
  record.agent_version = event.hello.agent_version();
  record.capabilities.assign(event.hello.capabilities().begin(), event.hello.capabilities().end());
  record.facts = event.hello.facts();
  record.first_seen_utc = now_.utc.count();
  record.last_seen_utc = now_.utc.count();
  actions_.mutations.push_back(storage::UpsertHost{std::move(record)});

  Report(host, event.hello.held(), true);
  Dispatch(host);
  for (auto& [id, run] : runs_) {
    if (run->hosts.contains(event.host_id)) Change(*run);
  }
}

void Scheduler::On(const HostDetached& event) {
  HostState& host = Host(event.host_id);
  if (!host.is_connected || host.session != event.session) return;
  host.is_connected = false;
  host.away_since = now_.monotonic;
  host.occupied_by.clear();
  actions_.mutations.push_back(storage::TouchHost{event.host_id, now_.utc.count()});
  for (auto& [id, run] : runs_) {
    if (run->hosts.contains(event.host_id)) Change(*run);
  }
}

void Scheduler::On(const AcceptReceived& event) {
  Attempt* attempt = FindAttempt(event.host_id, event.accepted.attempt_id(), "Accepted");
  if (attempt == nullptr || event.accepted.epoch() != identity_.epoch) return;
  if (Host(event.host_id).current == attempt->attempt_id) MarkAccepted(*attempt);
}

void Scheduler::On(const RefusalReceived& event) {
  Attempt* attempt = FindAttempt(event.host_id, event.refused.attempt_id(), "Refused");
  if (attempt == nullptr || event.refused.epoch() != identity_.epoch) return;
  HostState& host = Host(event.host_id);
  // With frames stored the agent does hold it: an answer to a repeated Assign that crossed its end.
  if (host.current != attempt->attempt_id || attempt->frames_through > 0) return;
  const RefusalRule* rule = RuleOf(event.refused.reason());
  if (rule == nullptr) {
    Note(fmt::format("host {}: refusal of {} with unknown reason {} ignored", host.name,
                     attempt->attempt_id, static_cast<int>(event.refused.reason())));
    return;
  }
  if (rule->trigger == TrialTrigger::kNotApplicable) {
    EndAttempt(*attempt, {storage::Outcome::kNotApplicable, rule->word, event.refused.text()});
  } else {
    const Place place = Find(*attempt);
    actions_.mutations.push_back(storage::RemoveAttempt{attempt->attempt_id});
    std::erase(place.trial->attempts, attempt->attempt_id);
    --place.trial->last_number;
    host.current.clear();
    attempts_.erase(event.refused.attempt_id());
    MoveTrial(*place.run, *place.cell, *place.trial, rule->trigger);
    host.pause = std::clamp(host.pause * 2, options_.first_pause, options_.longest_pause);
    host.paused_until = now_.monotonic + host.pause;
    if (!host.refusing_since) host.refusing_since = now_.monotonic;
    host.refusing_why = rule->word;
  }
  Dispatch(host);
}

void Scheduler::On(const HeartbeatReceived& event) {
  HostState& host = Host(event.host_id);
  if (!host.is_connected) return;
  if (now_.utc - host.last_touch >= options_.touch_interval || now_.utc < host.last_touch) {
    host.last_touch = now_.utc;
    actions_.mutations.push_back(storage::TouchHost{event.host_id, now_.utc.count()});
  }
  Report(host, event.heartbeat.held(), false);
  CheckDeadlines(host);
  Dispatch(host);
}

void Scheduler::On(const RunSubmitted& event) {
  actions_.mutations.push_back(storage::InsertRun{event.run});
  actions_.mutations.push_back(storage::Audit{now_.utc.count(), event.actor, "submit run",
                                              event.run.run_id, event.run.sweep});
  if (!event.run.request_id.empty()) requests_[event.run.request_id] = event.run.run_id;
  Adopt(event.run);
  Run& run = *runs_.at(event.run.run_id);
  Change(run);
  SettleRun(run);
  for (const auto& [host_id, part] : run.hosts) Dispatch(Host(host_id));
}

void Scheduler::On(const CancelRequested& event) {
  const auto it = runs_.find(event.run_id);
  if (it == runs_.end() || IsTerminal(it->second->header.state)) return;
  Run& run = *it->second;
  actions_.mutations.push_back(
      storage::Audit{now_.utc.count(), event.actor, "cancel run", event.run_id, ""});
  // First, so that settling its cells does not finish it.
  MoveRun(run, RunTrigger::kCancel, "canceled by " + event.actor);
  for (auto& [host_id, part] : run.hosts) {
    HostState& host = Host(host_id);
    const auto current = attempts_.find(host.current);
    if (current == attempts_.end() || current->second.run_id != event.run_id) continue;
    SendCancel(current->second, kReasonRunCanceled);
    EndAttempt(current->second, {storage::Outcome::kCanceled, std::string(kReasonRunCanceled), ""});
  }
  for (Cell& cell : run.cells) {
    for (Trial& trial : cell.trials) {
      if (!IsTerminal(trial.state)) MoveTrial(run, cell, trial, TrialTrigger::kCancel);
    }
  }
  for (const auto& [host_id, part] : run.hosts) Dispatch(Host(host_id));
}

void Scheduler::On(const Tick&) {
  for (auto& [host_id, host] : hosts_) {
    CheckDeadlines(host);
    Dispatch(host);
  }
}

Scheduler::Place Scheduler::Find(const Attempt& attempt) {
  Run& run = *runs_.at(attempt.run_id);
  Cell& cell = run.cells[attempt.cell_index];
  return {&run, &cell, &cell.trials[attempt.trial_index - 1]};
}

Attempt* Scheduler::FindAttempt(const std::string& host_id, const std::string& attempt_id,
                                const char* message) {
  const auto it = attempts_.find(attempt_id);
  if (it == attempts_.end()) return nullptr;
  if (Find(it->second).cell->host_id != host_id) {
    Note(fmt::format("host {}: {} of attempt {}, which is another host's, ignored", host_id,
                     message, attempt_id));
    return nullptr;
  }
  return &it->second;
}

HostState& Scheduler::Host(const std::string& host_id) {
  const auto [it, is_new] = hosts_.try_emplace(host_id);
  HostState& host = it->second;
  if (is_new) {
    host.host_id = host_id;
    host.away_since = now_.monotonic;
  }
  return host;
}

void Scheduler::Change(Run& run) {
  const std::string& run_id = run.header.run_id;
  if (std::ranges::find(actions_.changed_runs, run_id) == actions_.changed_runs.end()) {
    actions_.changed_runs.push_back(run_id);
  }
}

void Scheduler::ForgetEndedRuns() {
  for (const std::string& run_id : ended_runs_) {
    const auto it = runs_.find(run_id);
    if (it == runs_.end()) continue;
    const auto is_missing = [](const Cell& cell) {
      return cell.state == storage::CellState::kMissing;
    };
    v1::RunProgress progress = *Progress(run_id);
    progress.set_exit_status(
        ExitStatus(it->second->header.state, std::ranges::any_of(it->second->cells, is_missing)));
    actions_.ended.push_back(std::move(progress));
    for (const Cell& cell : it->second->cells) {
      for (const Trial& trial : cell.trials) {
        for (const std::string& attempt : trial.attempts) attempts_.erase(attempt);
      }
    }
    runs_.erase(it);
  }
  ended_runs_.clear();
}

}  // namespace pipeyard::scheduler
