// SqliteStore: the Store over one SQLite database in WAL mode, and how it is opened with other than
// the usual surroundings (tests).
//
// Thread safety: Store's.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/env.h"
#include "base/status.h"
#include "storage/sqlite/connection.h"
#include "storage/sqlite/read_pool.h"
#include "storage/store.h"

namespace pipeyard::storage {

inline constexpr std::string_view kStoreFileName = "store.db";

struct SqliteOptions {
  std::string state_dir;
  // Borrowed; both outlive the store.
  const Clock* clock = &SystemClock();
  Env* env = &PosixEnv();
  // A registered VFS; empty for SQLite's default.
  std::string vfs;
  // The write-ahead log is copied into the database whenever it has this many pages of 4 KiB. A
  // larger log costs disk and saves rewriting the same pages (docs/STORE.md, "Durability").
  int wal_autocheckpoint_pages = 10'000;
};

// As OpenStore().
Result<std::unique_ptr<Store>> OpenSqliteStore(const SqliteOptions& options);

class SqliteStore final : public Store {
 public:
  // `writer` is open on `path`; `lock` keeps other controllers out while this lives.
  SqliteStore(std::string path, std::string vfs, std::unique_ptr<FileLock> lock,
              std::unique_ptr<Connection> writer, StoreIdentity identity);
  ~SqliteStore() override;

  StoreIdentity identity() const override { return identity_; }
  Status Apply(std::span<const Mutation> mutations) override;
  Result<std::vector<HostRecord>> ListHosts() override;
  Result<std::vector<RunRecord>> LoadActiveRuns() override;
  Result<std::vector<RunSummaryRecord>> ListRuns(uint32_t limit,
                                                 const std::string& before_run_id) override;
  Result<std::string> ResolveRun(const std::string& reference) override;
  Result<RunRecord> LoadRun(const std::string& run_id) override;
  Result<RunSummaryRecord> LoadRunSummary(const std::string& run_id) override;
  Result<std::string> FindRunByRequest(const std::string& request_id) override;
  Result<std::vector<AttemptData>> LoadAttemptData(const std::string& run_id) override;
  Result<AttemptDetails> LoadAttemptDetails(const std::string& attempt_id) override;
  Result<bool> KnowsAttempt(const std::string& attempt_id) override;

 private:
  // Calls `read` with a connection that holds a snapshot.
  template <typename Read>
  auto InSnapshot(Read read) -> decltype(read(std::declval<Connection&>()));

  // Constant after construction; destroyed in reverse: readers, writer, lock.
  const StoreIdentity identity_;
  const std::unique_ptr<FileLock> lock_;
  const std::unique_ptr<Connection> writer_;  // Apply()'s thread
  ReadPool readers_;
};

}  // namespace pipeyard::storage
