// From stored runs to working state: after a start, and for a run just submitted.
#include <fmt/format.h>

#include <utility>

#include "controller/scheduler/scheduler.h"

namespace pipeyard::scheduler {

Actions Scheduler::Recover(std::vector<storage::RunRecord> runs, Now now) {
  now_ = now;
  for (storage::RunRecord& record : runs) {
    const std::string run_id = record.run_id;
    Adopt(std::move(record));
    runs_.at(run_id)->is_recovered = true;
    SettleRun(*runs_.at(run_id));
  }
  ForgetEndedRuns();
  return std::exchange(actions_, {});
}

void Scheduler::Adopt(storage::RunRecord record) {
  if (!record.request_id.empty()) requests_[record.request_id] = record.run_id;
  auto owned = std::make_unique<Run>();
  Run& run = *owned;
  std::vector<storage::CellRecord> cells = std::exchange(record.cells, {});
  run.header = std::move(record);
  run.added = now_.monotonic;
  runs_[run.header.run_id] = std::move(owned);
  run.cells.resize(cells.size());
  for (uint32_t index = 0; index < cells.size(); ++index) {
    storage::CellRecord& source = cells[index];
    Cell& cell = run.cells[index];
    cell.cell_index = index;
    cell.variant_index = source.variant_index;
    cell.host_id = source.host_id;
    cell.host_name = source.host_name;
    cell.state = source.state;
    cell.reason = source.reason;
    if (!IsTerminal(cell.state)) ++run.num_open_cells;
    Host(cell.host_id);
    RunHost& part = run.hosts[cell.host_id];
    part.host_name = cell.host_name;
    part.cells.push_back(index);
    cell.trials.resize(source.trials.size());
    for (size_t i = 0; i < source.trials.size(); ++i) {
      Trial& trial = cell.trials[i];
      trial.trial_index = source.trials[i].trial_index;
      trial.block = source.trials[i].block;
      trial.position = source.trials[i].position;
      trial.state = source.trials[i].state;
      ++part.num_trials;
      ++run.num_trials;
      if (!IsTerminal(trial.state)) continue;
      ++cell.num_terminal;
      ++part.num_terminal;
      ++run.num_terminal;
      if (trial.state == storage::TrialState::kDone) {
        ++cell.num_done;
        ++run.num_done;
      } else {
        ++part.num_unsuccessful;
      }
    }
  }
  for (uint32_t index = 0; index < cells.size(); ++index) {
    for (size_t i = 0; i < cells[index].trials.size(); ++i) {
      static const std::vector<storage::AttemptRecord> kNone;
      AdoptAttempts(run, run.cells[index], run.cells[index].trials[i],
                    i < cells[index].attempts.size() ? cells[index].attempts[i] : kNone);
    }
  }
}

void Scheduler::AdoptAttempts(Run& run, Cell& cell, Trial& trial,
                              const std::vector<storage::AttemptRecord>& records) {
  Attempt* open = nullptr;
  for (const storage::AttemptRecord& record : records) {
    Attempt& attempt = attempts_[record.attempt_id];
    attempt.attempt_id = record.attempt_id;
    attempt.run_id = run.header.run_id;
    attempt.cell_index = cell.cell_index;
    attempt.trial_index = trial.trial_index;
    attempt.number = record.number;
    attempt.frames_through = record.frames_through;
    attempt.outcome = record.outcome;
    attempt.metrics = record.metrics;
    attempt.last_news = now_.monotonic;
    trial.attempts.push_back(record.attempt_id);
    trial.last_number = record.number;
    if (record.outcome) {
      ++trial.num_ended;
      trial.last_ended_attempt = record.attempt_id;
      if (GivesOutcomeOfItsOwn(*record.outcome)) run.was_started = true;
    } else {
      attempt.is_accepted = trial.state == storage::TrialState::kRunning;
      open = &attempt;
    }
  }
  if (trial.state == storage::TrialState::kPending) {
    run.hosts.at(cell.host_id)
        .pending.insert({trial.block, trial.last_ended_attempt, trial.position, cell.cell_index,
                         trial.trial_index});
  }
  if (IsTerminal(trial.state) || trial.state == storage::TrialState::kPending) return;
  HostState& host = Host(cell.host_id);
  if (open != nullptr && host.current.empty()) {
    host.current = open->attempt_id;
    return;
  }
  // Each of our transactions leaves one open attempt for a leased trial, and one leased trial a
  // host.
  Note(fmt::format("run {}: trial {}/{} is {} without an attempt of its own", run.header.run_id,
                   cell.host_name, trial.trial_index, storage::Name(trial.state)));
  if (open != nullptr) {
    EndAttempt(*open, {storage::Outcome::kLost, "inconsistent_store", ""});
  } else {
    MoveTrial(run, cell, trial, TrialTrigger::kRetry);
  }
}

}  // namespace pipeyard::scheduler
