#include "storage/sqlite/measurements.h"

#include <fmt/format.h>

#include <unordered_map>

namespace pipeyard::storage {
namespace {

v1::Direction ParseDirection(const std::string& name) {
  if (name == "higher") return v1::DIRECTION_HIGHER;
  if (name == "lower") return v1::DIRECTION_LOWER;
  if (name == "none") return v1::DIRECTION_NONE;
  return v1::DIRECTION_UNSPECIFIED;
}

// Reads name, unit, reducer, better, value, absent_reason from column `first` on.
v1::Metric ReadMetric(const Query& query, int first) {
  v1::Metric metric;
  metric.set_name(query.Text(first));
  metric.set_unit(query.Text(first + 1));
  metric.set_reducer(query.Text(first + 2));
  metric.set_better(ParseDirection(query.Text(first + 3)));
  if (query.IsNull(first + 4)) {
    metric.set_absent_reason(query.Text(first + 5));
  } else {
    metric.set_value(query.Real(first + 4));
  }
  return metric;
}

using AttemptIndex = std::unordered_map<int64_t, size_t>;  // row of `attempts` -> index in the list

Result<AttemptIndex> LoadAttempts(Connection& connection, int64_t run, const std::string& run_id,
                                  std::vector<AttemptData>& list) {
  AttemptIndex index_of;
  Query query(connection,
              "SELECT attempts.attempt, host_id, variant_index, trial_index, block, emulated, "
              "attempt_id, number, epoch, leased_utc, outcome, reason_code, reason_text, "
              "elapsed_ns, boots.boot_id, ended_utc, frames_through "
              "FROM attempts JOIN trials USING (trial) JOIN cells USING (cell) "
              "JOIN hosts ON hosts.host = cells.host LEFT JOIN boots ON boots.boot = attempts.boot "
              "WHERE attempts.run = ?1 AND outcome IS NOT NULL "
              "ORDER BY host_id, variant_index, trial_index, number",
              run);
  while (query.Next()) {
    index_of[query.Int(0)] = list.size();
    AttemptData& entry = list.emplace_back();
    entry.trial = {run_id, query.Text(1), static_cast<uint32_t>(query.Int(2)),
                   static_cast<uint32_t>(query.Int(3))};
    entry.block = static_cast<uint32_t>(query.Int(4));
    entry.emulated = query.Int(5) != 0;
    PIPEYARD_RETURN_IF_ERROR(ReadAttempt(query, 6, entry.attempt));
  }
  PIPEYARD_RETURN_IF_ERROR(query.status());
  return index_of;
}

Status AddMetrics(Connection& connection, int64_t run, const AttemptIndex& index_of,
                  std::vector<AttemptData>& list) {
  Query query(connection,
              "SELECT samples.attempt, name, unit, reducer, better, value, absent_reason "
              "FROM attempts JOIN samples USING (attempt) JOIN metrics USING (metric) "
              "WHERE run = ?1 AND outcome IS NOT NULL ORDER BY samples.attempt, samples.metric",
              run);
  while (query.Next()) list[index_of.at(query.Int(0))].metrics.push_back(ReadMetric(query, 1));
  return query.status();
}

Status AddCounters(Connection& connection, int64_t run, const AttemptIndex& index_of,
                   std::vector<AttemptData>& list) {
  Query query(connection,
              "SELECT counter_values.attempt, name, unit, value "
              "FROM attempts JOIN counter_values USING (attempt) JOIN counters USING (counter) "
              "WHERE run = ?1 AND outcome IS NOT NULL "
              "ORDER BY counter_values.attempt, counter_values.counter",
              run);
  while (query.Next()) {
    v1::Counter& counter = list[index_of.at(query.Int(0))].counters.emplace_back();
    counter.set_name(query.Text(1));
    counter.set_unit(query.Text(2));
    counter.set_value(query.Int(3));
  }
  return query.status();
}

Status AddPlacements(Connection& connection, int64_t run, const AttemptIndex& index_of,
                     std::vector<AttemptData>& list) {
  Query query(connection,
              "SELECT placements.attempt, memory, evidence, node, pages "
              "FROM attempts JOIN placements USING (attempt) "
              "WHERE run = ?1 AND outcome IS NOT NULL "
              "ORDER BY placements.attempt, memory, evidence, node",
              run);
  while (query.Next()) {
    std::vector<v1::Placement>& placements = list[index_of.at(query.Int(0))].placements;
    const std::string memory = query.Text(1);
    const std::string evidence = query.Text(2);
    if (placements.empty() || placements.back().memory() != memory ||
        placements.back().evidence() != evidence) {
      placements.emplace_back();
      placements.back().set_memory(memory);
      placements.back().set_evidence(evidence);
    }
    (*placements.back().mutable_pages_per_node())[static_cast<int32_t>(query.Int(3))] =
        query.Int(4);
  }
  return query.status();
}

Status AddSelfChecks(Connection& connection, int64_t run, const AttemptIndex& index_of,
                     std::vector<AttemptData>& list) {
  Query query(connection,
              "SELECT self_checks.attempt, name, passed, expected, measured, tolerance "
              "FROM attempts JOIN self_checks USING (attempt) "
              "WHERE run = ?1 AND outcome IS NOT NULL ORDER BY self_checks.attempt, name",
              run);
  while (query.Next()) {
    v1::SelfCheck& check = list[index_of.at(query.Int(0))].self_checks.emplace_back();
    check.set_name(query.Text(1));
    check.set_passed(query.Int(2) != 0);
    check.set_expected(query.Real(3));
    check.set_measured(query.Real(4));
    check.set_tolerance(query.Real(5));
  }
  return query.status();
}

Status AddInertSwitches(Connection& connection, int64_t run, const AttemptIndex& index_of,
                        std::vector<AttemptData>& list) {
  Query query(connection,
              "SELECT inert_switches.attempt, name "
              "FROM attempts JOIN inert_switches USING (attempt) "
              "WHERE run = ?1 AND outcome IS NOT NULL ORDER BY inert_switches.attempt, name",
              run);
  while (query.Next()) list[index_of.at(query.Int(0))].inert_switches.push_back(query.Text(1));
  return query.status();
}

}  // namespace

Result<std::vector<AttemptData>> LoadAttemptData(Connection& connection,
                                                 const std::string& run_id) {
  Query find(connection, "SELECT run FROM runs WHERE run_id = ?1", run_id);
  if (!find.Next()) {
    PIPEYARD_RETURN_IF_ERROR(find.status());
    return NotFound(fmt::format("no run {}", run_id));
  }
  const int64_t run = find.Int(0);
  std::vector<AttemptData> list;
  PIPEYARD_ASSIGN_OR_RETURN(const AttemptIndex index_of,
                            LoadAttempts(connection, run, run_id, list));
  PIPEYARD_RETURN_IF_ERROR(AddMetrics(connection, run, index_of, list));
  PIPEYARD_RETURN_IF_ERROR(AddCounters(connection, run, index_of, list));
  PIPEYARD_RETURN_IF_ERROR(AddPlacements(connection, run, index_of, list));
  PIPEYARD_RETURN_IF_ERROR(AddSelfChecks(connection, run, index_of, list));
  PIPEYARD_RETURN_IF_ERROR(AddInertSwitches(connection, run, index_of, list));
  return list;
}

Result<AttemptDetails> LoadAttemptDetails(Connection& connection, const std::string& attempt_id) {
  Query find(connection, "SELECT attempt FROM attempts WHERE attempt_id = ?1", attempt_id);
  if (!find.Next()) {
    PIPEYARD_RETURN_IF_ERROR(find.status());
    return NotFound(fmt::format("no attempt {}", attempt_id));
  }
  const int64_t attempt = find.Int(0);
  AttemptDetails details;
  Query outputs(connection,
                "SELECT stream, omitted_bytes, content FROM outputs WHERE attempt = ?1 "
                "ORDER BY sequence, output",
                attempt);
  while (outputs.Next()) {
    v1::Output& output = details.outputs.emplace_back();
    output.set_stream(outputs.Text(0));
    output.set_omitted_bytes(static_cast<uint64_t>(outputs.Int(1)));
    output.set_data(outputs.Text(2));
  }
  PIPEYARD_RETURN_IF_ERROR(outputs.status());
  Query resolved(connection,
                 "SELECT name, as_written, resolved FROM resolved_values WHERE attempt = ?1 "
                 "ORDER BY name",
                 attempt);
  while (resolved.Next()) {
    v1::ResolvedValue& value = details.resolved.emplace_back();
    value.set_name(resolved.Text(0));
    value.set_as_written(resolved.Text(1));
    value.set_resolved(resolved.Text(2));
  }
  PIPEYARD_RETURN_IF_ERROR(resolved.status());
  return details;
}

Status LoadMetrics(Connection& connection, int64_t attempt, std::vector<v1::Metric>& metrics) {
  Query query(connection,
              "SELECT name, unit, reducer, better, value, absent_reason "
              "FROM samples JOIN metrics USING (metric) WHERE attempt = ?1 ORDER BY metric",
              attempt);
  while (query.Next()) metrics.push_back(ReadMetric(query, 0));
  return query.status();
}

Status ReadAttempt(const Query& query, int first, AttemptRecord& attempt) {
  attempt.attempt_id = query.Text(first);
  attempt.number = static_cast<uint32_t>(query.Int(first + 1));
  attempt.epoch = static_cast<uint64_t>(query.Int(first + 2));
  attempt.leased_utc = query.Int(first + 3);
  if (!query.IsNull(first + 4)) {
    attempt.outcome = ParseOutcome(query.Text(first + 4));
    if (!attempt.outcome) {
      return DataLoss(fmt::format("attempt {} has the unknown outcome '{}'", attempt.attempt_id,
                                  query.Text(first + 4)));
    }
  }
  attempt.reason_code = query.Text(first + 5);
  attempt.reason_text = query.Text(first + 6);
  attempt.elapsed_ns = query.Int(first + 7);
  attempt.boot_id = query.Text(first + 8);
  attempt.ended_utc = query.Int(first + 9);
  attempt.frames_through = static_cast<uint64_t>(query.Int(first + 10));
  return Status::Ok();
}

}  // namespace pipeyard::storage
