// Opening the store: what stands in the state folder is looked at before anything is written to it.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/ids.h"
#include "base/log.h"
#include "storage/sqlite/file_header.h"
#include "storage/sqlite/ledger.h"
#include "storage/sqlite/schema.h"
#include "storage/sqlite/sqlite_store.h"

namespace pipeyard::storage {
namespace {

constexpr const char* kWriterPragmas =
    "PRAGMA journal_mode = WAL;"
    "PRAGMA synchronous = FULL;"
    "PRAGMA foreign_keys = ON;"
    "PRAGMA journal_size_limit = 67108864;"
    "PRAGMA cache_size = -32768;"
    "PRAGMA trusted_schema = OFF";

Status NotWritable(const std::string& state_dir, const Status& cause) {
  if (cause.code() == StatusCode::kResourceExhausted) {
    return cause.WithContext(fmt::format("state folder {}", state_dir));
  }
  return Status(StatusCode::kPermissionDenied,
                fmt::format("state folder {} is not writable: {}; make it writable for this user "
                            "or choose another with --state DIR",
                            state_dir, cause.message()));
}

Result<std::unique_ptr<FileLock>> LockStateFolder(Env& env, const std::string& state_dir) {
  const Status made = CreateDirsDurably(env, state_dir);
  if (!made.ok()) return NotWritable(state_dir, made);
  Result<std::unique_ptr<FileLock>> lock = env.LockFile(state_dir + "/lock");
  if (lock.ok()) return lock;
  if (lock.status().code() == StatusCode::kFailedPrecondition) {
    return FailedPrecondition(
        fmt::format("state folder {} is in use by another controller; stop that one or choose "
                    "another folder with --state DIR",
                    state_dir));
  }
  return NotWritable(state_dir, lock.status());
}

Status RefuseForeign(const std::string& path, const std::string& what) {
  return FailedPrecondition(fmt::format(
      "{} {}; nothing was changed: move it away or choose another folder with --state DIR", path,
      what));
}

Status RefuseSchema(const std::string& path, int32_t number) {
  return FailedPrecondition(
      fmt::format("{} has schema {}, and this program knows up to schema {}; nothing was changed: "
                  "use a newer pipeyard-controller",
                  path, number, kSchemaNumber));
}

// Whether a store stands there, judged by the file's first bytes, which reading leaves untouched.
Result<bool> HasStore(Env& env, const std::string& path) {
  if (!env.Exists(path)) {
    for (const char* suffix : {"-wal", "-journal"}) {
      if (env.Exists(path + suffix)) {
        return FailedPrecondition(
            fmt::format("{} is missing but its log {}{} stands; put the database back, or move the "
                        "log away to begin anew",
                        path, path, suffix));
      }
    }
    return false;
  }
  PIPEYARD_ASSIGN_OR_RETURN(const std::optional<FileHeader> header, ReadFileHeader(path));
  if (!header) return RefuseForeign(path, "is not a database");
  if (header->application_id != kApplicationId) {
    return RefuseForeign(path, "is a database of another application");
  }
  if (header->schema_number > kSchemaNumber) return RefuseSchema(path, header->schema_number);
  return true;
}

// Makes the store beside its final name, so that a crash leaves none or a whole one.
Status CreateStore(const SqliteOptions& options, const std::string& path) {
  const std::string unfinished = path + ".new";
  for (const char* suffix : {"", "-journal", "-wal", "-shm"}) {
    if (!options.env->Exists(unfinished + suffix)) continue;
    PIPEYARD_RETURN_IF_ERROR(options.env->RemoveFile(unfinished + suffix));
  }
  {
    PIPEYARD_ASSIGN_OR_RETURN(const std::unique_ptr<Connection> connection,
                              Connection::Open(unfinished, Connection::Mode::kCreate, options.vfs));
    PIPEYARD_RETURN_IF_ERROR(connection->Execute("PRAGMA synchronous = FULL"));
    PIPEYARD_RETURN_IF_ERROR(CreateSchema(*connection));
    IdSource ids(*options.clock);
    PIPEYARD_RETURN_IF_ERROR(WriteIdentity(*connection, ids.Next(), options.clock->UtcNow()));
  }
  PIPEYARD_RETURN_IF_ERROR(options.env->Rename(unfinished, path));
  return options.env->SyncDir(options.state_dir);
}

// Reads the whole file: its cost is in docs/STORE.md, "Opening".
Status CheckIntegrity(Connection& connection, const std::string& path) {
  Query query(connection, "PRAGMA quick_check(1)");
  std::string verdict = query.Next() ? query.Text(0) : "";
  std::ranges::replace(verdict, '\n', ' ');
  if (!query.status().ok() && query.status().code() != StatusCode::kDataLoss) return query.status();
  if (query.status().ok() && verdict == "ok") return Status::Ok();
  return DataLoss(fmt::format(
      "{} is damaged ({}); nothing was changed: restore a backup, or save what is readable with "
      "sqlite3 {} .recover",
      path, query.status().ok() ? verdict : query.status().message(), path));
}

Result<std::unique_ptr<Connection>> OpenWriter(const SqliteOptions& options,
                                               const std::string& path) {
  PIPEYARD_ASSIGN_OR_RETURN(std::unique_ptr<Connection> writer,
                            Connection::Open(path, Connection::Mode::kReadWrite, options.vfs));
  // What is refused stays as it is: closing would copy the log into the file and remove it.
  writer->KeepLogOnClose(true);
  // The log may hold a newer number than the file's first page.
  PIPEYARD_ASSIGN_OR_RETURN(const int32_t number, ReadSchemaNumber(*writer));
  if (number > kSchemaNumber) return RefuseSchema(path, number);
  PIPEYARD_RETURN_IF_ERROR(CheckIntegrity(*writer, path));
  writer->KeepLogOnClose(false);
  PIPEYARD_RETURN_IF_ERROR(writer->Execute(kWriterPragmas));
  PIPEYARD_RETURN_IF_ERROR(writer->Execute(
      fmt::format("PRAGMA wal_autocheckpoint = {}", options.wal_autocheckpoint_pages)));
  PIPEYARD_RETURN_IF_ERROR(Migrate(*writer, Migrations()));
  return writer;
}

}  // namespace

Result<std::unique_ptr<Store>> OpenStore(const std::string& state_dir, const Clock& clock) {
  SqliteOptions options;
  options.state_dir = state_dir;
  options.clock = &clock;
  return OpenSqliteStore(options);
}

Result<std::unique_ptr<Store>> OpenSqliteStore(const SqliteOptions& options) {
  const std::string path = fmt::format("{}/{}", options.state_dir, kStoreFileName);
  PIPEYARD_ASSIGN_OR_RETURN(std::unique_ptr<FileLock> lock,
                            LockStateFolder(*options.env, options.state_dir));
  PIPEYARD_ASSIGN_OR_RETURN(const bool has_store, HasStore(*options.env, path));
  if (!has_store) {
    const Status created = CreateStore(options, path);
    if (!created.ok()) return created.WithContext(fmt::format("create {}", path));
  }
  PIPEYARD_ASSIGN_OR_RETURN(std::unique_ptr<Connection> writer, OpenWriter(options, path));
  PIPEYARD_ASSIGN_OR_RETURN(StoreIdentity identity, BeginEpoch(*writer, options.clock->UtcNow()));
  Log(LogLevel::kInfo, "storage", "opened {} store={} epoch={} schema={}", path, identity.store_id,
      identity.epoch, kSchemaNumber);
  return std::unique_ptr<Store>(std::make_unique<SqliteStore>(
      path, options.vfs, std::move(lock), std::move(writer), std::move(identity)));
}

}  // namespace pipeyard::storage
