// How attempts, trials, cells and runs end.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "controller/scheduler/scheduler.h"

namespace pipeyard::scheduler {
namespace {

PendingKey KeyOf(const Cell& cell, const Trial& trial) {
  return {trial.block, trial.last_ended_attempt, trial.position, cell.cell_index,
          trial.trial_index};
}

}  // namespace

// Precondition: it has not ended.
void Scheduler::EndAttempt(Attempt& attempt, const Judgement& judgement) {
  const Place place = Find(attempt);
  actions_.mutations.push_back(storage::EndAttempt{attempt.attempt_id, judgement.outcome,
                                                   judgement.reason_code, judgement.reason_text,
                                                   now_.utc.count()});
  attempt.outcome = judgement.outcome;
  attempt.waiting_since.reset();
  HostState& host = Host(place.cell->host_id);
  if (host.current == attempt.attempt_id) host.current.clear();
  ++place.trial->num_ended;
  place.trial->last_ended_attempt = attempt.attempt_id;
  if (GivesOutcomeOfItsOwn(judgement.outcome)) place.run->was_started = true;
  ApplyOutcome(attempt, judgement);
}

void Scheduler::ApplyOutcome(Attempt& attempt, const Judgement& judgement) {
  const Place place = Find(attempt);
  Run& run = *place.run;
  Trial& trial = *place.trial;
  if (IsTerminal(trial.state)) return;
  const OutcomeRule& rule = RuleOf(judgement.outcome);
  if (rule.end_trigger == TrialTrigger::kNotApplicable) {
    return EndCellNotApplicable(run, *place.cell, judgement.reason_text);
  }
  if (rule.end_trigger == TrialTrigger::kOk) {
    MoveTrial(run, *place.cell, trial, TrialTrigger::kOk);
    return CancelOthers(attempt);
  }
  if (judgement.outcome == storage::Outcome::kFailed &&
      judgement.reason_code == kReasonHostCrashed && run.header.stops_host_on_crash) {
    return GiveUpHost(run, place.cell->host_id, kReasonHostCrashed, "host crashed");
  }
  const bool is_given_up = !run.hosts.at(place.cell->host_id).given_up.empty();
  if (rule.is_retried && is_given_up) {
    MoveTrial(run, *place.cell, trial, TrialTrigger::kGiveUp);
  } else if (rule.is_retried && trial.num_ended < run.header.attempts_limit) {
    MoveTrial(run, *place.cell, trial, TrialTrigger::kRetry);
  } else {
    MoveTrial(run, *place.cell, trial, rule.end_trigger);
  }
}

void Scheduler::CancelOthers(const Attempt& kept) {
  const Place place = Find(kept);
  for (const std::string& id : place.trial->attempts) {
    if (id == kept.attempt_id) continue;
    Attempt& other = attempts_.at(id);
    if (other.outcome) continue;
    SendCancel(other, kReasonSuperseded);
    EndAttempt(other, {storage::Outcome::kCanceled, std::string(kReasonSuperseded),
                       "an earlier attempt came back ok"});
  }
}

void Scheduler::EndCellNotApplicable(Run& run, Cell& cell, const std::string& reason) {
  cell.reason = reason.empty() ? "refused by the agent" : reason;
  for (Trial& trial : cell.trials) {
    if (!IsTerminal(trial.state)) MoveTrial(run, cell, trial, TrialTrigger::kNotApplicable);
  }
}

void Scheduler::GiveUpHost(Run& run, const std::string& host_id, std::string_view code,
                           const std::string& text) {
  RunHost& part = run.hosts.at(host_id);
  if (!part.given_up.empty()) return;
  part.given_up = text;
  Note(fmt::format("run {}: host {} is given up: {}", run.header.run_id, part.host_name, text));
  const auto current = attempts_.find(Host(host_id).current);
  if (current != attempts_.end() && current->second.run_id == run.header.run_id) {
    EndAttempt(current->second, {storage::Outcome::kLost, std::string(code), text});
  }
  for (const uint32_t cell_index : part.cells) {
    Cell& cell = run.cells[cell_index];
    for (Trial& trial : cell.trials) {
      if (!IsTerminal(trial.state)) MoveTrial(run, cell, trial, TrialTrigger::kGiveUp);
    }
  }
}

void Scheduler::MoveTrial(Run& run, Cell& cell, Trial& trial, TrialTrigger trigger) {
  const Result<storage::TrialState> next = Next(trial.state, trigger);
  if (!next.ok()) return Note("scheduler: " + next.status().ToString());
  RunHost& part = run.hosts.at(cell.host_id);
  if (trial.state == storage::TrialState::kPending) part.pending.erase(KeyOf(cell, trial));
  trial.state = *next;
  actions_.mutations.push_back(storage::SetTrialState{
      {run.header.run_id, cell.host_id, cell.variant_index, trial.trial_index}, trial.state});
  Change(run);
  if (trial.state == storage::TrialState::kPending) part.pending.insert(KeyOf(cell, trial));
  if (!IsTerminal(trial.state)) return;
  const bool is_done = trial.state == storage::TrialState::kDone;
  ++cell.num_terminal;
  ++part.num_terminal;
  ++run.num_terminal;
  if (is_done) {
    ++cell.num_done;
    ++run.num_done;
  } else {
    ++part.num_unsuccessful;
  }
  if (cell.num_terminal == cell.trials.size()) SettleCell(run, cell);
}

void Scheduler::SettleCell(Run& run, Cell& cell) {
  const bool is_refused = std::ranges::any_of(cell.trials, [](const Trial& trial) {
    return trial.state == storage::TrialState::kNotApplicable;
  });
  CellTrigger trigger = CellTrigger::kTooFewSamples;
  if (cell.num_done >= run.header.repetitions_min) {
    trigger = CellTrigger::kEnoughSamples;
    cell.reason.clear();
  } else if (is_refused) {
    trigger = CellTrigger::kNotApplicable;
  } else {
    const std::string& given_up = run.hosts.at(cell.host_id).given_up;
    cell.reason = fmt::format("{} of {} trials ok{}{}", cell.num_done, run.header.repetitions_min,
                              given_up.empty() ? "" : ": ", given_up);
  }
  const Result<storage::CellState> next = Next(cell.state, trigger);
  if (!next.ok()) return Note("scheduler: " + next.status().ToString());
  cell.state = *next;
  actions_.mutations.push_back(storage::SetCellState{run.header.run_id, cell.host_id,
                                                     cell.variant_index, cell.state, cell.reason});
  --run.num_open_cells;
  SettleRun(run);
}

void Scheduler::SettleRun(Run& run) {
  if (run.num_open_cells > 0 || IsTerminal(run.header.state)) return;
  if (run.was_started) {
    const auto num_missing =
        std::ranges::count(run.cells, storage::CellState::kMissing, &Cell::state);
    MoveRun(run, RunTrigger::kAllTerminal,
            num_missing == 0 ? "" : fmt::format("{} cells lack trials", num_missing));
  } else {
    MoveRun(run, RunTrigger::kNoneStarted, "no cell could start");
  }
}

void Scheduler::MoveRun(Run& run, RunTrigger trigger, const std::string& reason) {
  const Result<storage::RunState> next = Next(run.header.state, trigger);
  if (!next.ok()) return Note("scheduler: " + next.status().ToString());
  run.header.state = *next;
  run.header.reason = reason;
  const int64_t at = now_.utc.count();
  if (trigger == RunTrigger::kFirstAssign) run.header.started_utc = at;
  if (IsTerminal(*next)) {
    run.header.ended_utc = at;
    ended_runs_.push_back(run.header.run_id);
  }
  actions_.mutations.push_back(storage::SetRunState{run.header.run_id, *next, reason, at});
  Change(run);
}

}  // namespace pipeyard::scheduler
