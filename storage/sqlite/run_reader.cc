#include "storage/sqlite/run_reader.h"

#include <fmt/format.h>

#include <unordered_map>

#include "storage/sqlite/measurements.h"
#include "storage/sqlite/settings_rows.h"

namespace pipeyard::storage {
namespace {

template <typename State>
Status SetState(std::optional<State> parsed, const std::string& text, State& state) {
  if (!parsed) return DataLoss(fmt::format("unknown state '{}'", text));
  state = *parsed;
  return Status::Ok();
}

// Reads the row of `runs`; returns its row id.
Result<int64_t> LoadHead(Connection& connection, const std::string& run_id, RunRecord& run) {
  Query query(connection,
              "SELECT run, run_id, request_id, sweep, file_name, sweep_yaml, note, priority, "
              "order_kind, order_seed, compare_factor, compare_baseline, repetitions_min, "
              "repetitions_max, attempts_limit, host_wait_ns, stops_host_on_crash, state, reason, "
              "created_utc, started_utc, ended_utc FROM runs WHERE run_id = ?1",
              run_id);
  if (!query.Next()) {
    PIPEYARD_RETURN_IF_ERROR(query.status());
    return NotFound(fmt::format("no run {}", run_id));
  }
  run.run_id = query.Text(1);
  run.request_id = query.Text(2);
  run.sweep = query.Text(3);
  run.file_name = query.Text(4);
  run.sweep_yaml = query.Text(5);
  run.note = query.Text(6);
  run.priority = static_cast<int32_t>(query.Int(7));
  run.order_kind = query.Text(8);
  run.order_seed = static_cast<uint64_t>(query.Int(9));
  run.compare_factor = query.Text(10);
  run.compare_baseline = query.Text(11);
  run.repetitions_min = static_cast<uint32_t>(query.Int(12));
  run.repetitions_max = static_cast<uint32_t>(query.Int(13));
  run.attempts_limit = static_cast<uint32_t>(query.Int(14));
  run.host_wait_ns = query.Int(15);
  run.stops_host_on_crash = query.Int(16) != 0;
  const std::string state = query.Text(17);
  PIPEYARD_RETURN_IF_ERROR(SetState(ParseRunState(state), state, run.state));
  run.reason = query.Text(18);
  run.created_utc = query.Int(19);
  run.started_utc = query.Int(20);
  run.ended_utc = query.Int(21);
  return query.Int(0);
}

Status LoadLists(Connection& connection, int64_t row, RunRecord& run) {
  Query sets(connection, "SELECT text FROM run_sets WHERE run = ?1 ORDER BY position", row);
  while (sets.Next()) run.sets.push_back(sets.Text(0));
  PIPEYARD_RETURN_IF_ERROR(sets.status());
  Query labels(connection, "SELECT name, value FROM run_labels WHERE run = ?1", row);
  while (labels.Next()) run.labels[labels.Text(0)] = labels.Text(1);
  PIPEYARD_RETURN_IF_ERROR(labels.status());
  Query changes(connection, "SELECT metric, fraction FROM run_min_changes WHERE run = ?1", row);
  while (changes.Next()) run.min_change[changes.Text(0)] = changes.Real(1);
  return changes.status();
}

Status LoadVariants(Connection& connection, int64_t row, RunRecord& run) {
  Query query(connection,
              "SELECT variant_index, variant_id, settings, text, arm, comparison, trial_timeout_ns "
              "FROM run_variants JOIN variants USING (variant) WHERE run = ?1 "
              "ORDER BY variant_index",
              row);
  while (query.Next()) {
    VariantRecord& variant = run.variants.emplace_back();
    variant.variant_index = static_cast<uint32_t>(query.Int(0));
    variant.variant_id = query.Text(1);
    PIPEYARD_ASSIGN_OR_RETURN(variant.settings, LoadSettings(connection, query.Int(2)));
    variant.settings.set_variant_id(variant.variant_id);
    variant.text = query.Text(3);
    variant.arm = query.Text(4);
    variant.comparison = query.Text(5);
    if (query.IsNull(6)) continue;
    if (run.trial_timeout_ns.size() <= variant.variant_index) {
      run.trial_timeout_ns.resize(variant.variant_index + size_t{1}, 0);
    }
    run.trial_timeout_ns[variant.variant_index] = query.Int(6);
  }
  return query.status();
}

using CellIndex = std::unordered_map<int64_t, size_t>;  // row of `cells` -> index in run.cells

Result<CellIndex> LoadCells(Connection& connection, int64_t row, RunRecord& run) {
  CellIndex index_of;
  Query query(connection,
              "SELECT cell, host_id, name, variant_index, state, reason "
              "FROM cells JOIN hosts USING (host) WHERE run = ?1 ORDER BY cell",
              row);
  while (query.Next()) {
    index_of[query.Int(0)] = run.cells.size();
    CellRecord& cell = run.cells.emplace_back();
    cell.host_id = query.Text(1);
    cell.host_name = query.Text(2);
    cell.variant_index = static_cast<uint32_t>(query.Int(3));
    const std::string state = query.Text(4);
    PIPEYARD_RETURN_IF_ERROR(SetState(ParseCellState(state), state, cell.state));
    cell.reason = query.Text(5);
  }
  PIPEYARD_RETURN_IF_ERROR(query.status());
  return index_of;
}

struct TrialPlace {
  size_t cell = 0;
  size_t trial = 0;
};
using TrialIndex = std::unordered_map<int64_t, TrialPlace>;  // row of `trials` -> where it stands

Result<TrialIndex> LoadTrials(Connection& connection, const CellIndex& cells, int64_t row,
                              RunRecord& run) {
  TrialIndex index_of;
  Query query(connection,
              "SELECT trial, cell, trial_index, block, position, state FROM trials "
              "WHERE run = ?1 ORDER BY cell, trial_index",
              row);
  while (query.Next()) {
    const size_t cell_index = cells.at(query.Int(1));
    CellRecord& cell = run.cells[cell_index];
    index_of[query.Int(0)] = {cell_index, cell.trials.size()};
    TrialRecord& trial = cell.trials.emplace_back();
    cell.attempts.emplace_back();
    trial.trial_index = static_cast<uint32_t>(query.Int(2));
    trial.block = static_cast<uint32_t>(query.Int(3));
    trial.position = static_cast<uint32_t>(query.Int(4));
    const std::string state = query.Text(5);
    PIPEYARD_RETURN_IF_ERROR(SetState(ParseTrialState(state), state, trial.state));
  }
  PIPEYARD_RETURN_IF_ERROR(query.status());
  return index_of;
}

Status LoadAttempts(Connection& connection, const TrialIndex& trials, int64_t row,
                    bool wants_metrics, RunRecord& run) {
  Query query(connection,
              "SELECT trial, attempt, attempt_id, number, epoch, leased_utc, outcome, reason_code, "
              "reason_text, elapsed_ns, boot_id, ended_utc, frames_through "
              "FROM attempts LEFT JOIN boots USING (boot) WHERE run = ?1 ORDER BY trial, number",
              row);
  while (query.Next()) {
    const TrialPlace place = trials.at(query.Int(0));
    AttemptRecord& attempt = run.cells[place.cell].attempts[place.trial].emplace_back();
    PIPEYARD_RETURN_IF_ERROR(ReadAttempt(query, 2, attempt));
    if (!wants_metrics || attempt.outcome || attempt.frames_through == 0) continue;
    PIPEYARD_RETURN_IF_ERROR(LoadMetrics(connection, query.Int(1), attempt.metrics));
  }
  return query.status();
}

Result<RunRecord> Load(Connection& connection, const std::string& run_id, bool wants_metrics) {
  RunRecord run;
  PIPEYARD_ASSIGN_OR_RETURN(const int64_t row, LoadHead(connection, run_id, run));
  PIPEYARD_RETURN_IF_ERROR(LoadLists(connection, row, run));
  PIPEYARD_RETURN_IF_ERROR(LoadVariants(connection, row, run));
  PIPEYARD_ASSIGN_OR_RETURN(const CellIndex cells, LoadCells(connection, row, run));
  PIPEYARD_ASSIGN_OR_RETURN(const TrialIndex trials, LoadTrials(connection, cells, row, run));
  PIPEYARD_RETURN_IF_ERROR(LoadAttempts(connection, trials, row, wants_metrics, run));
  return run;
}

}  // namespace

Result<RunRecord> LoadRun(Connection& connection, const std::string& run_id) {
  return Load(connection, run_id, /*wants_metrics=*/false);
}

Result<std::vector<RunRecord>> LoadActiveRuns(Connection& connection) {
  std::vector<RunRecord> runs;
  Query query(connection,
              "SELECT run_id FROM runs WHERE state IN ('queued', 'running', 'paused') "
              "ORDER BY run");
  while (query.Next()) {
    PIPEYARD_ASSIGN_OR_RETURN(RunRecord run,
                              Load(connection, query.Text(0), /*wants_metrics=*/true));
    runs.push_back(std::move(run));
  }
  PIPEYARD_RETURN_IF_ERROR(query.status());
  return runs;
}

}  // namespace pipeyard::storage
