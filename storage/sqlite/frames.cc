// Frames: one frame of an attempt's result becomes rows. A repeated frame changes nothing; frames
// may come in any order.
#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>

#include "storage/sqlite/attempts.h"
#include "storage/sqlite/hosts.h"

namespace pipeyard::storage {
namespace {

struct AttemptRow {
  int64_t attempt = 0;
  int64_t host = 0;
  int64_t frames_through = 0;
  std::string workload;
};

const char* DirectionName(v1::Direction better) {
  switch (better) {
    case v1::DIRECTION_HIGHER:
      return "higher";
    case v1::DIRECTION_LOWER:
      return "lower";
    case v1::DIRECTION_NONE:
      return "none";
    default:
      return "";
  }
}

// As Outcome's names; nullopt where the frame says none that this version knows.
std::optional<std::string_view> OutcomeName(v1::Outcome outcome) {
  switch (outcome) {
    case v1::OUTCOME_OK:
      return Name(Outcome::kOk);
    case v1::OUTCOME_VOID:
      return Name(Outcome::kVoid);
    case v1::OUTCOME_FAILED:
      return Name(Outcome::kFailed);
    case v1::OUTCOME_TIMEOUT:
      return Name(Outcome::kTimeout);
    case v1::OUTCOME_LOST:
      return Name(Outcome::kLost);
    case v1::OUTCOME_CANCELED:
      return Name(Outcome::kCanceled);
    case v1::OUTCOME_NOT_APPLICABLE:
      return Name(Outcome::kNotApplicable);
    default:
      return std::nullopt;
  }
}

Result<AttemptRow> FindAttempt(Connection& connection, const std::string& attempt_id) {
  Query query(connection,
              "SELECT attempts.attempt, cells.host, attempts.frames_through, settings.workload "
              "FROM attempts JOIN trials USING (trial) JOIN cells USING (cell) "
              "JOIN run_variants ON run_variants.run = cells.run "
              "AND run_variants.variant_index = cells.variant_index "
              "JOIN settings ON settings.settings = run_variants.settings "
              "WHERE attempts.attempt_id = ?1",
              attempt_id);
  if (query.Next()) return AttemptRow{query.Int(0), query.Int(1), query.Int(2), query.Text(3)};
  PIPEYARD_RETURN_IF_ERROR(query.status());
  return NotFound(fmt::format("no attempt {}", attempt_id));
}

Result<int64_t> InternMetric(Connection& connection, const std::string& workload,
                             const v1::Metric& metric) {
  const std::string metric_id =
      fmt::format("{}:{}:{}:{}", workload, metric.name(), metric.unit(), metric.reducer());
  const char* better = DirectionName(metric.better());
  Query find(connection, "SELECT metric FROM metrics WHERE metric_id = ?1 AND better = ?2",
             metric_id, better);
  if (find.Next()) return find.Int(0);
  PIPEYARD_RETURN_IF_ERROR(find.status());
  PIPEYARD_RETURN_IF_ERROR(
      RunSql(connection,
             "INSERT INTO metrics (metric_id, workload, name, unit, reducer, better) "
             "VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
             metric_id, workload, metric.name(), metric.unit(), metric.reducer(), better));
  return connection.last_insert_rowid();
}

Result<int64_t> InternCounter(Connection& connection, const v1::Counter& counter) {
  Query find(connection, "SELECT counter FROM counters WHERE name = ?1 AND unit = ?2",
             counter.name(), counter.unit());
  if (find.Next()) return find.Int(0);
  PIPEYARD_RETURN_IF_ERROR(find.status());
  PIPEYARD_RETURN_IF_ERROR(RunSql(connection, "INSERT INTO counters (name, unit) VALUES (?1, ?2)",
                                  counter.name(), counter.unit()));
  return connection.last_insert_rowid();
}

Status InsertSamples(Connection& connection, const AttemptRow& row, const v1::Frame& frame) {
  for (const v1::Metric& metric : frame.metrics()) {
    PIPEYARD_ASSIGN_OR_RETURN(const int64_t id, InternMetric(connection, row.workload, metric));
    std::optional<double> value;
    std::optional<std::string> absent_reason;
    if (metric.has_value() && !std::isnan(metric.value())) {
      value = metric.value();
    } else if (metric.has_value()) {
      absent_reason = "not-a-number";
    } else {
      absent_reason = metric.absent_reason();
    }
    PIPEYARD_RETURN_IF_ERROR(
        RunSql(connection,
               "INSERT OR IGNORE INTO samples (attempt, metric, value, absent_reason) "
               "VALUES (?1, ?2, ?3, ?4)",
               row.attempt, id, value, absent_reason));
  }
  return Status::Ok();
}

Status InsertCounters(Connection& connection, const AttemptRow& row, const v1::Frame& frame) {
  for (const v1::Counter& counter : frame.counters()) {
    PIPEYARD_ASSIGN_OR_RETURN(const int64_t id, InternCounter(connection, counter));
    PIPEYARD_RETURN_IF_ERROR(
        RunSql(connection,
               "INSERT OR IGNORE INTO counter_values (attempt, counter, value) VALUES (?1, ?2, ?3)",
               row.attempt, id, counter.value()));
  }
  return Status::Ok();
}

Status InsertHistograms(Connection& connection, const AttemptRow& row, const v1::Frame& frame) {
  for (const v1::Histogram& histogram : frame.histograms()) {
    uint64_t total = histogram.overflow();
    for (const uint64_t count : histogram.count()) total += count;
    PIPEYARD_RETURN_IF_ERROR(
        RunSql(connection,
               "INSERT INTO histograms (attempt, sequence, name, unit, total, content) "
               "VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
               row.attempt, frame.sequence(), histogram.name(), histogram.unit(), total,
               Blob{histogram.SerializeAsString()}));
  }
  return Status::Ok();
}

Status InsertProofs(Connection& connection, const AttemptRow& row, const v1::Frame& frame) {
  for (const v1::Placement& placement : frame.placements()) {
    for (const auto& [node, pages] : placement.pages_per_node()) {
      PIPEYARD_RETURN_IF_ERROR(
          RunSql(connection,
                 "INSERT OR IGNORE INTO placements (attempt, memory, evidence, node, pages) "
                 "VALUES (?1, ?2, ?3, ?4, ?5)",
                 row.attempt, placement.memory(), placement.evidence(), node, pages));
    }
  }
  for (const v1::SelfCheck& check : frame.self_checks()) {
    PIPEYARD_RETURN_IF_ERROR(
        RunSql(connection,
               "INSERT OR IGNORE INTO self_checks (attempt, name, passed, expected, measured, "
               "tolerance) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
               row.attempt, check.name(), check.passed(), check.expected(), check.measured(),
               check.tolerance()));
  }
  return Status::Ok();
}

Status InsertDetails(Connection& connection, const AttemptRow& row, const v1::Frame& frame) {
  for (const v1::ResolvedValue& value : frame.resolved()) {
    PIPEYARD_RETURN_IF_ERROR(
        RunSql(connection,
               "INSERT OR IGNORE INTO resolved_values (attempt, name, as_written, resolved) "
               "VALUES (?1, ?2, ?3, ?4)",
               row.attempt, value.name(), value.as_written(), value.resolved()));
  }
  for (const std::string& name : frame.inert_switches()) {
    PIPEYARD_RETURN_IF_ERROR(
        RunSql(connection, "INSERT OR IGNORE INTO inert_switches (attempt, name) VALUES (?1, ?2)",
               row.attempt, name));
  }
  for (const v1::Output& output : frame.outputs()) {
    PIPEYARD_RETURN_IF_ERROR(
        RunSql(connection,
               "INSERT INTO outputs (attempt, sequence, stream, omitted_bytes, content) "
               "VALUES (?1, ?2, ?3, ?4, ?5)",
               row.attempt, frame.sequence(), output.stream(), output.omitted_bytes(),
               Blob{output.data()}));
  }
  return Status::Ok();
}

// What the agent says about the end. The judgement is EndAttempt's.
Status StoreReport(Connection& connection, const AttemptRow& row, const StoreFrame& mutation) {
  const v1::AttemptEnd& end = mutation.frame.end();
  PIPEYARD_ASSIGN_OR_RETURN(const int64_t boot,
                            InternBoot(connection, row.host, end.boot_id(), mutation.received_utc));
  return RunSql(connection,
                "UPDATE attempts SET boot = coalesce(?2, boot), reported_outcome = ?3, "
                "reported_reason_code = ?4, reported_reason_text = ?5, elapsed_ns = ?6, "
                "agent_started_utc = ?7, agent_ended_utc = ?8, exit_code = ?9, exit_signal = ?10, "
                "emulated = ?11, final_sequence = ?12 WHERE attempt = ?1",
                row.attempt, NullIfZero(boot), OutcomeName(end.outcome()), end.reason_code(),
                end.reason_text(), end.elapsed_ns(), NullIfZero(end.agent_started_utc_ns()),
                NullIfZero(end.agent_ended_utc_ns()), end.exit_code(), end.exit_signal(),
                end.emulated(), mutation.frame.sequence());
}

// Frames 1..frames_through are stored without a gap.
Status AdvanceFramesThrough(Connection& connection, const AttemptRow& row) {
  int64_t through = row.frames_through;
  Query query(connection,
              "SELECT sequence FROM frames WHERE attempt = ?1 AND sequence > ?2 ORDER BY sequence",
              row.attempt, through);
  while (query.Next() && query.Int(0) == through + 1) ++through;
  PIPEYARD_RETURN_IF_ERROR(query.status());
  if (through == row.frames_through) return Status::Ok();
  return RunSql(connection, "UPDATE attempts SET frames_through = ?2 WHERE attempt = ?1",
                row.attempt, through);
}

}  // namespace

Status Write(Connection& connection, const StoreFrame& mutation) {
  const v1::Frame& frame = mutation.frame;
  if (frame.sequence() == 0 || frame.sequence() > INT64_MAX) {
    return InvalidArgument(fmt::format("frame {} of attempt {}: frames count from 1",
                                       frame.sequence(), frame.attempt_id()));
  }
  if (frame.is_final() && !frame.has_end()) {
    return InvalidArgument(fmt::format("final frame {} of attempt {} has no end", frame.sequence(),
                                       frame.attempt_id()));
  }
  PIPEYARD_ASSIGN_OR_RETURN(const AttemptRow row, FindAttempt(connection, frame.attempt_id()));
  PIPEYARD_RETURN_IF_ERROR(
      RunSql(connection,
             "INSERT OR IGNORE INTO frames (attempt, sequence, received_utc) VALUES (?1, ?2, ?3)",
             row.attempt, frame.sequence(), mutation.received_utc));
  if (connection.num_changes() == 0) return Status::Ok();
  PIPEYARD_RETURN_IF_ERROR(InsertSamples(connection, row, frame));
  PIPEYARD_RETURN_IF_ERROR(InsertCounters(connection, row, frame));
  PIPEYARD_RETURN_IF_ERROR(InsertHistograms(connection, row, frame));
  PIPEYARD_RETURN_IF_ERROR(InsertProofs(connection, row, frame));
  PIPEYARD_RETURN_IF_ERROR(InsertDetails(connection, row, frame));
  if (frame.is_final()) PIPEYARD_RETURN_IF_ERROR(StoreReport(connection, row, mutation));
  return AdvanceFramesThrough(connection, row);
}

}  // namespace pipeyard::storage
