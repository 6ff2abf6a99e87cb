#include "storage/sqlite/run_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace pipeyard::storage {
namespace {

// How many of the runs that a prefix matches the message names.
constexpr int kMaxNamedMatches = 3;

Result<RunSummaryRecord> ReadSummary(Connection& connection, int64_t run) {
  RunSummaryRecord summary;
  Query head(connection,
             "SELECT run_id, sweep, state, created_utc, ended_utc, note, "
             "(SELECT count(DISTINCT host) FROM cells WHERE cells.run = runs.run), "
             "(SELECT count(*) FROM run_variants WHERE run_variants.run = runs.run), "
             "(SELECT count(*) FROM trials WHERE trials.run = runs.run), "
             "(SELECT count(*) FROM trials WHERE trials.run = runs.run AND state = 'done') "
             "FROM runs WHERE run = ?1",
             run);
  if (!head.Next()) {
    PIPEYARD_RETURN_IF_ERROR(head.status());
    return NotFound(fmt::format("no run in row {}", run));
  }
  summary.run_id = head.Text(0);
  summary.sweep = head.Text(1);
  const std::optional<RunState> state = ParseRunState(head.Text(2));
  if (!state) {
    return DataLoss(fmt::format("run {} has the unknown state '{}'", summary.run_id, head.Text(2)));
  }
  summary.state = *state;
  summary.created_utc = head.Int(3);
  summary.ended_utc = head.Int(4);
  summary.note = head.Text(5);
  summary.hosts = static_cast<uint32_t>(head.Int(6));
  summary.variants = static_cast<uint32_t>(head.Int(7));
  summary.trials = static_cast<uint32_t>(head.Int(8));
  summary.trials_done = static_cast<uint32_t>(head.Int(9));
  Query labels(connection, "SELECT name, value FROM run_labels WHERE run = ?1", run);
  while (labels.Next()) summary.labels[labels.Text(0)] = labels.Text(1);
  PIPEYARD_RETURN_IF_ERROR(labels.status());
  return summary;
}

// Place of a run in the order of pages.
struct Place {
  int64_t created_utc = INT64_MAX;
  int64_t run = INT64_MAX;
};

Result<Place> FindPlace(Connection& connection, const std::string& run_id) {
  Query query(connection, "SELECT created_utc, run FROM runs WHERE run_id = ?1", run_id);
  if (query.Next()) return Place{query.Int(0), query.Int(1)};
  PIPEYARD_RETURN_IF_ERROR(query.status());
  return NotFound(fmt::format("no run {}", run_id));
}

Result<std::string> ResolveLatest(Connection& connection) {
  Query query(connection, "SELECT run_id FROM runs ORDER BY created_utc DESC, run DESC LIMIT 1");
  if (query.Next()) return query.Text(0);
  PIPEYARD_RETURN_IF_ERROR(query.status());
  return NotFound("no run 'latest': there is no run yet");
}

// nullopt where the text is not of the form SWEEP~N.
std::optional<std::pair<std::string, uint32_t>> SplitSweepReference(const std::string& text) {
  const size_t tilde = text.rfind('~');
  if (tilde == std::string::npos || tilde == 0) return std::nullopt;
  uint32_t age = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data() + tilde + 1, end, age);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return std::pair(text.substr(0, tilde), age);
}

Result<std::string> ResolveSweep(Connection& connection, const std::string& sweep, uint32_t age) {
  Query query(connection,
              "SELECT run_id FROM runs WHERE sweep = ?1 ORDER BY created_utc DESC, run DESC "
              "LIMIT 1 OFFSET ?2",
              sweep, age);
  if (query.Next()) return query.Text(0);
  PIPEYARD_RETURN_IF_ERROR(query.status());
  Query count(connection, "SELECT count(*) FROM runs WHERE sweep = ?1", sweep);
  const int64_t stored = count.Next() ? count.Int(0) : 0;
  PIPEYARD_RETURN_IF_ERROR(count.status());
  return NotFound(fmt::format("no run '{}~{}': sweep {} has {} runs", sweep, age, sweep, stored));
}

Result<std::string> ResolvePrefix(Connection& connection, const std::string& reference) {
  std::string prefix = reference;
  std::transform(prefix.begin(), prefix.end(), prefix.begin(),
                 [](char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c; });
  const bool is_id_text =
      !prefix.empty() && prefix.find_first_not_of("0123456789abcdef-") == std::string::npos;
  if (!is_id_text) return NotFound(fmt::format("no run '{}'", reference));
  // 'g' sorts after every character of an id.
  Query query(connection,
              "SELECT run_id FROM runs WHERE run_id >= ?1 AND run_id < ?1 || 'g' ORDER BY run_id",
              prefix);
  std::string matches;
  std::string first;
  int num_matches = 0;
  while (query.Next()) {
    ++num_matches;
    if (num_matches == 1) first = query.Text(0);
    if (num_matches > kMaxNamedMatches) break;
    matches += (num_matches == 1 ? "" : ", ") + query.Text(0);
  }
  PIPEYARD_RETURN_IF_ERROR(query.status());
  if (num_matches == 0) return NotFound(fmt::format("no run '{}'", reference));
  if (num_matches == 1) return first;
  return InvalidArgument(fmt::format("run '{}' is ambiguous: {}{}", reference, matches,
                                     num_matches > kMaxNamedMatches ? ", ..." : ""));
}

}  // namespace

Result<std::vector<RunSummaryRecord>> ListRuns(Connection& connection, uint32_t limit,
                                               const std::string& before_run_id) {
  Place before;
  if (!before_run_id.empty()) {
    PIPEYARD_ASSIGN_OR_RETURN(before, FindPlace(connection, before_run_id));
  }
  std::vector<RunSummaryRecord> runs;
  Query query(connection,
              "SELECT run FROM runs WHERE (created_utc, run) < (?1, ?2) "
              "ORDER BY created_utc DESC, run DESC LIMIT ?3",
              before.created_utc, before.run, limit);
  while (query.Next()) {
    PIPEYARD_ASSIGN_OR_RETURN(RunSummaryRecord summary, ReadSummary(connection, query.Int(0)));
    runs.push_back(std::move(summary));
  }
  PIPEYARD_RETURN_IF_ERROR(query.status());
  return runs;
}

Result<RunSummaryRecord> LoadRunSummary(Connection& connection, const std::string& run_id) {
  PIPEYARD_ASSIGN_OR_RETURN(const Place place, FindPlace(connection, run_id));
  return ReadSummary(connection, place.run);
}

Result<std::string> FindRunByRequest(Connection& connection, const std::string& request_id) {
  Query query(connection, "SELECT run_id FROM runs WHERE request_id = ?1", request_id);
  if (query.Next()) return query.Text(0);
  PIPEYARD_RETURN_IF_ERROR(query.status());
  return NotFound(fmt::format("no run of request {}", request_id));
}

Result<std::string> ResolveRun(Connection& connection, const std::string& reference) {
  if (reference == "latest") return ResolveLatest(connection);
  if (const auto sweep = SplitSweepReference(reference)) {
    return ResolveSweep(connection, sweep->first, sweep->second);
  }
  return ResolvePrefix(connection, reference);
}

}  // namespace pipeyard::storage
