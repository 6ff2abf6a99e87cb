#include "storage/sqlite/sqlite_store.h"

#include <fmt/format.h>

#include <utility>

#include "storage/sqlite/attempts.h"
#include "storage/sqlite/hosts.h"
#include "storage/sqlite/ledger.h"
#include "storage/sqlite/measurements.h"
#include "storage/sqlite/run_list.h"
#include "storage/sqlite/run_reader.h"
#include "storage/sqlite/runs.h"

namespace pipeyard::storage {

SqliteStore::SqliteStore(std::string path, std::string vfs, std::unique_ptr<FileLock> lock,
                         std::unique_ptr<Connection> writer, StoreIdentity identity)
    : identity_(std::move(identity)),
      lock_(std::move(lock)),
      writer_(std::move(writer)),
      readers_(std::move(path), std::move(vfs)) {}

SqliteStore::~SqliteStore() = default;

Status SqliteStore::Apply(std::span<const Mutation> mutations) {
  if (mutations.empty()) return Status::Ok();
  Transaction transaction(*writer_, Transaction::Kind::kWrite);
  if (!transaction.status().ok()) return transaction.status().WithContext("store: begin");
  for (const Mutation& mutation : mutations) {
    const Status status =
        std::visit([&](const auto& change) { return Write(*writer_, change); }, mutation);
    if (!status.ok()) return status.WithContext("store");
  }
  return transaction.Commit().WithContext("store: commit");
}

template <typename Read>
auto SqliteStore::InSnapshot(Read read) -> decltype(read(std::declval<Connection&>())) {
  Result<ReadPool::Lease> lease = readers_.Acquire();
  if (!lease.ok()) return lease.status().WithContext("store");
  auto result = read(lease->connection());
  if (!result.ok()) return result.status().WithContext("store");
  return result;
}

Result<std::vector<HostRecord>> SqliteStore::ListHosts() {
  return InSnapshot([](Connection& connection) { return storage::ListHosts(connection); });
}

Result<std::vector<RunRecord>> SqliteStore::LoadActiveRuns() {
  return InSnapshot([](Connection& connection) { return storage::LoadActiveRuns(connection); });
}

Result<std::vector<RunSummaryRecord>> SqliteStore::ListRuns(uint32_t limit,
                                                            const std::string& before_run_id) {
  return InSnapshot(
      [&](Connection& connection) { return storage::ListRuns(connection, limit, before_run_id); });
}

Result<std::string> SqliteStore::ResolveRun(const std::string& reference) {
  return InSnapshot(
      [&](Connection& connection) { return storage::ResolveRun(connection, reference); });
}

Result<RunRecord> SqliteStore::LoadRun(const std::string& run_id) {
  return InSnapshot([&](Connection& connection) { return storage::LoadRun(connection, run_id); });
}

Result<RunSummaryRecord> SqliteStore::LoadRunSummary(const std::string& run_id) {
  return InSnapshot(
      [&](Connection& connection) { return storage::LoadRunSummary(connection, run_id); });
}

Result<std::string> SqliteStore::FindRunByRequest(const std::string& request_id) {
  return InSnapshot(
      [&](Connection& connection) { return storage::FindRunByRequest(connection, request_id); });
}

Result<std::vector<AttemptData>> SqliteStore::LoadAttemptData(const std::string& run_id) {
  return InSnapshot(
      [&](Connection& connection) { return storage::LoadAttemptData(connection, run_id); });
}

Result<AttemptDetails> SqliteStore::LoadAttemptDetails(const std::string& attempt_id) {
  return InSnapshot(
      [&](Connection& connection) { return storage::LoadAttemptDetails(connection, attempt_id); });
}

Result<bool> SqliteStore::KnowsAttempt(const std::string& attempt_id) {
  return InSnapshot(
      [&](Connection& connection) { return storage::KnowsAttempt(connection, attempt_id); });
}

}  // namespace pipeyard::storage
