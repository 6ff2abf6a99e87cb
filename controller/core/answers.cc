#include "controller/core/answers.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "controller/scheduler/outcome.h"

namespace pipeyard::core {
namespace {

std::string ReasonText(const storage::AttemptRecord& attempt) {
  if (attempt.reason_code.empty()) return attempt.reason_text;
  if (attempt.reason_text.empty()) return attempt.reason_code;
  return attempt.reason_code + ": " + attempt.reason_text;
}

v1::Attempt ToAttempt(const storage::AttemptRecord& record, const storage::AttemptData* data) {
  v1::Attempt attempt;
  attempt.set_attempt_id(record.attempt_id);
  attempt.set_number(record.number);
  if (record.outcome) attempt.set_outcome(storage::Name(*record.outcome));
  attempt.set_reason(ReasonText(record));
  attempt.set_elapsed_ns(record.elapsed_ns);
  attempt.set_boot_id(record.boot_id);
  if (data == nullptr) return attempt;
  attempt.mutable_metrics()->Assign(data->metrics.begin(), data->metrics.end());
  attempt.mutable_counters()->Assign(data->counters.begin(), data->counters.end());
  attempt.mutable_placements()->Assign(data->placements.begin(), data->placements.end());
  attempt.mutable_self_checks()->Assign(data->self_checks.begin(), data->self_checks.end());
  attempt.mutable_inert_switches()->Assign(data->inert_switches.begin(),
                                           data->inert_switches.end());
  attempt.set_emulated(data->emulated);
  return attempt;
}

}  // namespace

v1::RunSummary ToSummary(const storage::RunSummaryRecord& record) {
  v1::RunSummary summary;
  summary.set_run_id(record.run_id);
  summary.set_sweep(record.sweep);
  summary.set_state(storage::Name(record.state));
  summary.set_created_utc_ns(record.created_utc);
  summary.set_ended_utc_ns(record.ended_utc);
  summary.set_hosts(record.hosts);
  summary.set_variants(record.variants);
  summary.set_trials(record.trials);
  summary.set_trials_done(record.trials_done);
  summary.set_note(record.note);
  summary.mutable_labels()->insert(record.labels.begin(), record.labels.end());
  return summary;
}

v1::RunSummary ToSummary(const storage::RunRecord& run) {
  v1::RunSummary summary;
  summary.set_run_id(run.run_id);
  summary.set_sweep(run.sweep);
  summary.set_state(storage::Name(run.state));
  summary.set_created_utc_ns(run.created_utc);
  summary.set_ended_utc_ns(run.ended_utc);
  summary.set_variants(static_cast<uint32_t>(run.variants.size()));
  summary.set_note(run.note);
  summary.mutable_labels()->insert(run.labels.begin(), run.labels.end());
  std::set<std::string> hosts;
  uint32_t trials = 0, done = 0;
  for (const storage::CellRecord& cell : run.cells) {
    hosts.insert(cell.host_id);
    trials += static_cast<uint32_t>(cell.trials.size());
    done += static_cast<uint32_t>(
        std::ranges::count(cell.trials, storage::TrialState::kDone, &storage::TrialRecord::state));
  }
  summary.set_hosts(static_cast<uint32_t>(hosts.size()));
  summary.set_trials(trials);
  summary.set_trials_done(done);
  return summary;
}

v1::Run ToRun(const storage::RunRecord& run, std::span<const storage::AttemptData> data) {
  std::map<std::string, const storage::AttemptData*> by_attempt;
  for (const storage::AttemptData& item : data) by_attempt[item.attempt.attempt_id] = &item;

  v1::Run message;
  *message.mutable_summary() = ToSummary(run);
  message.set_sweep_yaml(run.sweep_yaml);
  message.set_order_seed(run.order_seed);
  message.set_exit_status(scheduler::ExitStatus(run.state, run.cells));
  message.set_compare_factor(run.compare_factor);
  message.set_compare_baseline(run.compare_baseline);
  for (const storage::CellRecord& record : run.cells) {
    v1::Cell& cell = *message.add_cells();
    cell.set_host(record.host_name);
    cell.set_host_id(record.host_id);
    if (record.variant_index < run.variants.size()) {
      const storage::VariantRecord& variant = run.variants[record.variant_index];
      cell.set_variant_id(variant.variant_id);
      cell.set_variant_text(variant.text);
      *cell.mutable_settings() = variant.settings;
    }
    cell.set_state(storage::Name(record.state));
    cell.set_reason(record.reason);
    for (size_t i = 0; i < record.trials.size(); ++i) {
      v1::Trial& trial = *cell.add_trials();
      trial.set_index(record.trials[i].trial_index);
      trial.set_block(record.trials[i].block);
      trial.set_state(storage::Name(record.trials[i].state));
      if (i >= record.attempts.size()) continue;
      for (const storage::AttemptRecord& attempt : record.attempts[i]) {
        const auto it = by_attempt.find(attempt.attempt_id);
        *trial.add_attempts() = ToAttempt(attempt, it == by_attempt.end() ? nullptr : it->second);
      }
    }
  }
  return message;
}

v1::RunProgress ToProgress(const storage::RunRecord& run) {
  v1::RunProgress progress;
  *progress.mutable_summary() = ToSummary(run);
  progress.set_exit_status(scheduler::ExitStatus(run.state, run.cells));
  std::map<std::string, v1::RunProgress::HostProgress> by_name;
  for (const storage::CellRecord& cell : run.cells) {
    v1::RunProgress::HostProgress& host = by_name[cell.host_name];
    host.set_host(cell.host_name);
    for (const storage::TrialRecord& trial : cell.trials) {
      host.set_trials(host.trials() + 1);
      if (trial.state == storage::TrialState::kDone) {
        host.set_done(host.done() + 1);
      } else if (scheduler::IsTerminal(trial.state)) {
        host.set_failed(host.failed() + 1);
      }
    }
  }
  for (auto& [name, host] : by_name) *progress.add_hosts() = std::move(host);
  return progress;
}

v1::Host ToHost(const storage::HostRecord& record, bool is_connected, const std::string& running) {
  v1::Host host;
  host.set_host_id(record.host_id);
  host.set_name(record.name);
  host.set_state(is_connected ? "connected" : "away");
  host.set_boot_id(record.boot_id);
  host.set_first_seen_utc_ns(record.first_seen_utc);
  host.set_last_seen_utc_ns(record.last_seen_utc);
  host.mutable_labels()->insert(record.labels.begin(), record.labels.end());
  *host.mutable_facts() = record.facts;
  host.set_agent_version(record.agent_version);
  host.set_running(running);
  host.mutable_capabilities()->Assign(record.capabilities.begin(), record.capabilities.end());
  return host;
}

v1::SpecProblem ToProblem(const spec::Problem& problem) {
  v1::SpecProblem message;
  message.set_line(problem.line);
  message.set_column(problem.column);
  message.set_what(problem.what);
  message.set_meant(problem.meant);
  message.set_is_warning(problem.is_warning);
  return message;
}

}  // namespace pipeyard::core
