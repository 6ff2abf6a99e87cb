#include "storage/sqlite/attempts.h"

#include <fmt/format.h>

#include "storage/sqlite/hosts.h"
#include "storage/sqlite/runs.h"

namespace pipeyard::storage {
namespace {

Status CheckIsRepetition(const Query& stored, const TrialRows& rows, const AttemptRecord& attempt) {
  if (stored.Int(0) == rows.trial && stored.Int(1) == attempt.number) return Status::Ok();
  return AlreadyExists(
      fmt::format("attempt {} is stored already as another one", attempt.attempt_id));
}

Status CheckNumberIsFree(Connection& connection, int64_t trial, const AttemptRecord& attempt) {
  Query query(connection, "SELECT attempt_id FROM attempts WHERE trial = ?1 AND number = ?2", trial,
              attempt.number);
  if (query.Next()) {
    return AlreadyExists(
        fmt::format("attempt {} is number {} already", query.Text(0), attempt.number));
  }
  return query.status();
}

}  // namespace

Status Write(Connection& connection, const InsertAttempt& mutation) {
  const AttemptRecord& attempt = mutation.attempt;
  if (attempt.attempt_id.empty()) return InvalidArgument("an attempt without id");
  PIPEYARD_ASSIGN_OR_RETURN(const TrialRows rows, FindTrial(connection, mutation.trial));
  Query stored(connection, "SELECT trial, number FROM attempts WHERE attempt_id = ?1",
               attempt.attempt_id);
  if (stored.Next()) return CheckIsRepetition(stored, rows, attempt);
  PIPEYARD_RETURN_IF_ERROR(stored.status());
  PIPEYARD_RETURN_IF_ERROR(CheckNumberIsFree(connection, rows.trial, attempt));
  PIPEYARD_ASSIGN_OR_RETURN(const int64_t boot,
                            InternBoot(connection, rows.host, attempt.boot_id, attempt.leased_utc));
  std::optional<std::string_view> outcome;
  if (attempt.outcome) outcome = Name(*attempt.outcome);
  return RunSql(connection,
                "INSERT INTO attempts (attempt_id, run, trial, number, epoch, facts, boot, "
                "leased_utc, ended_utc, outcome, reason_code, reason_text, elapsed_ns, emulated, "
                "frames_through) VALUES (?1, ?2, ?3, ?4, ?5, "
                "(SELECT facts FROM hosts WHERE host = ?6), ?7, ?8, ?9, ?10, ?11, ?12, ?13, 0, 0)",
                attempt.attempt_id, rows.run, rows.trial, attempt.number, attempt.epoch, rows.host,
                NullIfZero(boot), NullIfZero(attempt.leased_utc), NullIfZero(attempt.ended_utc),
                outcome, attempt.reason_code, attempt.reason_text, NullIfZero(attempt.elapsed_ns));
}

Status Write(Connection& connection, const RemoveAttempt& mutation) {
  Query stored(connection,
               "SELECT attempt, outcome IS NOT NULL OR EXISTS (SELECT 1 FROM frames WHERE "
               "frames.attempt = attempts.attempt) FROM attempts WHERE attempt_id = ?1",
               mutation.attempt_id);
  if (!stored.Next()) return stored.status();
  if (stored.Int(1) != 0) {
    return FailedPrecondition(
        fmt::format("attempt {} has results: it is not removed", mutation.attempt_id));
  }
  return RunSql(connection, "DELETE FROM attempts WHERE attempt = ?1", stored.Int(0));
}

Status Write(Connection& connection, const EndAttempt& mutation) {
  Query stored(connection, "SELECT attempt, outcome FROM attempts WHERE attempt_id = ?1",
               mutation.attempt_id);
  if (!stored.Next()) {
    PIPEYARD_RETURN_IF_ERROR(stored.status());
    return NotFound(fmt::format("no attempt {}", mutation.attempt_id));
  }
  const bool was_lost = stored.Text(1) == Name(Outcome::kLost);
  const bool gives_way = was_lost && mutation.outcome == Outcome::kOk;
  if (!stored.IsNull(1) && !gives_way) return Status::Ok();
  return RunSql(connection,
                "UPDATE attempts SET lost_utc = iif(?6, ended_utc, lost_utc), outcome = ?2, "
                "reason_code = ?3, reason_text = ?4, ended_utc = ?5 WHERE attempt = ?1",
                stored.Int(0), Name(mutation.outcome), mutation.reason_code, mutation.reason_text,
                NullIfZero(mutation.at_utc), gives_way);
}

Result<bool> KnowsAttempt(Connection& connection, const std::string& attempt_id) {
  Query query(connection, "SELECT 1 FROM attempts WHERE attempt_id = ?1", attempt_id);
  const bool is_known = query.Next();
  PIPEYARD_RETURN_IF_ERROR(query.status());
  return is_known;
}

}  // namespace pipeyard::storage
