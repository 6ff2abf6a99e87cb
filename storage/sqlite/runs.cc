#include "storage/sqlite/runs.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>

#include "storage/sqlite/hosts.h"
#include "storage/sqlite/settings_rows.h"

namespace pipeyard::storage {
namespace {

Status CheckIsNew(Connection& connection, const RunRecord& run) {
  Query query(connection, "SELECT run_id FROM runs WHERE run_id = ?1 OR request_id = ?2",
              run.run_id, NullIfEmpty(run.request_id));
  if (query.Next()) {
    return AlreadyExists(
        fmt::format("run {} of request {} is stored already", query.Text(0), run.request_id));
  }
  return query.status();
}

Result<int64_t> InsertHead(Connection& connection, const RunRecord& run) {
  PIPEYARD_RETURN_IF_ERROR(
      RunSql(connection,
             "INSERT INTO runs (run_id, request_id, sweep, file_name, sweep_yaml, note, priority, "
             "order_kind, order_seed, compare_factor, compare_baseline, repetitions_min, "
             "repetitions_max, attempts_limit, host_wait_ns, stops_host_on_crash, state, reason, "
             "created_utc, started_utc, ended_utc) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, "
             "?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)",
             run.run_id, NullIfEmpty(run.request_id), run.sweep, run.file_name, run.sweep_yaml,
             run.note, run.priority, run.order_kind, run.order_seed, run.compare_factor,
             run.compare_baseline, run.repetitions_min, run.repetitions_max, run.attempts_limit,
             run.host_wait_ns, run.stops_host_on_crash, Name(run.state), run.reason,
             run.created_utc, NullIfZero(run.started_utc), NullIfZero(run.ended_utc)));
  return connection.last_insert_rowid();
}

Status InsertLists(Connection& connection, int64_t row, const RunRecord& run) {
  int position = 0;
  for (const std::string& text : run.sets) {
    PIPEYARD_RETURN_IF_ERROR(
        RunSql(connection, "INSERT INTO run_sets (run, position, text) VALUES (?1, ?2, ?3)", row,
               ++position, text));
  }
  for (const auto& [name, value] : run.labels) {
    PIPEYARD_RETURN_IF_ERROR(RunSql(connection,
                                    "INSERT INTO run_labels (run, name, value) VALUES (?1, ?2, ?3)",
                                    row, name, value));
  }
  for (const auto& [metric, fraction] : run.min_change) {
    PIPEYARD_RETURN_IF_ERROR(RunSql(
        connection, "INSERT INTO run_min_changes (run, metric, fraction) VALUES (?1, ?2, ?3)", row,
        metric, fraction));
  }
  return Status::Ok();
}

using VariantRows = std::map<uint32_t, int64_t>;  // variant_index -> row of `variants`

Result<VariantRows> InsertVariants(Connection& connection, int64_t row, const RunRecord& run) {
  VariantRows rows;
  for (const VariantRecord& variant : run.variants) {
    PIPEYARD_ASSIGN_OR_RETURN(const int64_t id, InternVariant(connection, variant.variant_id));
    PIPEYARD_ASSIGN_OR_RETURN(const int64_t settings, InternSettings(connection, variant.settings));
    if (!rows.emplace(variant.variant_index, id).second) {
      return InvalidArgument(fmt::format("variant {} is given twice", variant.variant_index));
    }
    std::optional<int64_t> timeout_ns;
    if (variant.variant_index < run.trial_timeout_ns.size()) {
      timeout_ns = run.trial_timeout_ns[variant.variant_index];
    }
    PIPEYARD_RETURN_IF_ERROR(
        RunSql(connection,
               "INSERT INTO run_variants (run, variant_index, variant, settings, text, arm, "
               "comparison, trial_timeout_ns) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
               row, variant.variant_index, id, settings, variant.text, variant.arm,
               variant.comparison, timeout_ns));
  }
  return rows;
}

Status InsertTrials(Connection& connection, int64_t run, int64_t cell, const CellRecord& record) {
  std::set<uint32_t> indexes;
  for (const TrialRecord& trial : record.trials) {
    if (!indexes.insert(trial.trial_index).second) {
      return InvalidArgument(fmt::format("trial {}/{}/{} is given twice", record.host_name,
                                         record.variant_index, trial.trial_index));
    }
    PIPEYARD_RETURN_IF_ERROR(
        RunSql(connection,
               "INSERT INTO trials (run, cell, trial_index, block, position, state) "
               "VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
               run, cell, trial.trial_index, trial.block, trial.position, Name(trial.state)));
  }
  return Status::Ok();
}

Status InsertCells(Connection& connection, int64_t row, const RunRecord& run,
                   const VariantRows& variants) {
  std::map<std::string, int64_t> hosts;
  std::set<std::pair<int64_t, uint32_t>> cells;
  for (const CellRecord& cell : run.cells) {
    int64_t& host = hosts[cell.host_id];
    if (host == 0) {
      PIPEYARD_ASSIGN_OR_RETURN(host, FindHost(connection, cell.host_id));
    }
    const auto variant = variants.find(cell.variant_index);
    if (variant == variants.end()) {
      return InvalidArgument(
          fmt::format("cell of variant {}, which the run lacks", cell.variant_index));
    }
    if (!cells.emplace(host, cell.variant_index).second) {
      return InvalidArgument(
          fmt::format("cell {}/{} is given twice", cell.host_name, cell.variant_index));
    }
    PIPEYARD_RETURN_IF_ERROR(
        RunSql(connection,
               "INSERT INTO cells (run, host, variant_index, variant, state, reason) "
               "VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
               row, host, cell.variant_index, variant->second, Name(cell.state), cell.reason));
    PIPEYARD_RETURN_IF_ERROR(InsertTrials(connection, row, connection.last_insert_rowid(), cell));
  }
  return Status::Ok();
}

std::string TrialName(const TrialKey& key) {
  return fmt::format("trial {}/{}/{} of run {}", key.host_id, key.variant_index, key.trial_index,
                     key.run_id);
}

}  // namespace

Status Write(Connection& connection, const InsertRun& mutation) {
  const RunRecord& run = mutation.run;
  if (run.run_id.empty()) return InvalidArgument("a run without id");
  PIPEYARD_RETURN_IF_ERROR(CheckIsNew(connection, run));
  PIPEYARD_ASSIGN_OR_RETURN(const int64_t row, InsertHead(connection, run));
  PIPEYARD_RETURN_IF_ERROR(InsertLists(connection, row, run));
  PIPEYARD_ASSIGN_OR_RETURN(const VariantRows variants, InsertVariants(connection, row, run));
  return InsertCells(connection, row, run, variants);
}

Status Write(Connection& connection, const SetRunState& mutation) {
  const bool has_started = mutation.state == RunState::kRunning;
  const bool has_ended = mutation.state == RunState::kFinished ||
                         mutation.state == RunState::kCanceled ||
                         mutation.state == RunState::kFailed;
  PIPEYARD_RETURN_IF_ERROR(
      RunSql(connection,
             "UPDATE runs SET state = ?2, reason = ?3, started_utc = coalesce(started_utc, ?4), "
             "ended_utc = coalesce(ended_utc, ?5) WHERE run_id = ?1",
             mutation.run_id, Name(mutation.state), mutation.reason,
             has_started ? NullIfZero(mutation.at_utc) : std::nullopt,
             has_ended ? NullIfZero(mutation.at_utc) : std::nullopt));
  if (connection.num_changes() == 0) return NotFound(fmt::format("no run {}", mutation.run_id));
  return Status::Ok();
}

Status Write(Connection& connection, const SetCellState& mutation) {
  PIPEYARD_RETURN_IF_ERROR(
      RunSql(connection,
             "UPDATE cells SET state = ?4, reason = ?5 "
             "WHERE run = (SELECT run FROM runs WHERE run_id = ?1) "
             "AND host = (SELECT host FROM hosts WHERE host_id = ?2) AND variant_index = ?3",
             mutation.run_id, mutation.host_id, mutation.variant_index, Name(mutation.state),
             mutation.reason));
  if (connection.num_changes() == 0) {
    return NotFound(fmt::format("no cell {}/{} of run {}", mutation.host_id, mutation.variant_index,
                                mutation.run_id));
  }
  return Status::Ok();
}

Status Write(Connection& connection, const SetTrialState& mutation) {
  PIPEYARD_ASSIGN_OR_RETURN(const TrialRows rows, FindTrial(connection, mutation.trial));
  return RunSql(connection, "UPDATE trials SET state = ?2 WHERE trial = ?1", rows.trial,
                Name(mutation.state));
}

Result<TrialRows> FindTrial(Connection& connection, const TrialKey& key) {
  Query query(connection,
              "SELECT cells.run, trials.trial, cells.host FROM cells "
              "JOIN trials ON trials.cell = cells.cell AND trials.trial_index = ?4 "
              "WHERE cells.run = (SELECT run FROM runs WHERE run_id = ?1) "
              "AND cells.host = (SELECT host FROM hosts WHERE host_id = ?2) "
              "AND cells.variant_index = ?3",
              key.run_id, key.host_id, key.variant_index, key.trial_index);
  if (query.Next()) return TrialRows{query.Int(0), query.Int(1), query.Int(2)};
  PIPEYARD_RETURN_IF_ERROR(query.status());
  return NotFound(fmt::format("no {}", TrialName(key)));
}

}  // namespace pipeyard::storage
