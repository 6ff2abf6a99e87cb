#include "storage/sqlite/connection.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <cerrno>

namespace pipeyard::storage {
namespace {

// A writer outside the project (the sqlite3 shell) may hold the lock this long before Apply() gives
// kUnavailable.
constexpr int kBusyTimeoutMillis = 1000;

StatusCode CodeOf(int code, int system_errno) {
  switch (code & 0xff) {
    case SQLITE_FULL:
    case SQLITE_NOMEM:
      return StatusCode::kResourceExhausted;
    case SQLITE_IOERR:
      if (code == SQLITE_IOERR_NOMEM || system_errno == ENOSPC || system_errno == EDQUOT) {
        return StatusCode::kResourceExhausted;
      }
      return code == SQLITE_IOERR_CORRUPTFS ? StatusCode::kDataLoss : StatusCode::kUnavailable;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PROTOCOL:
      return StatusCode::kUnavailable;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return StatusCode::kDataLoss;
    default:
      return StatusCode::kInternal;
  }
}

}  // namespace

Status SqliteStatus(int code, sqlite3* handle, std::string_view what) {
  const int system_errno = handle == nullptr ? 0 : sqlite3_system_errno(handle);
  // The handle's message is that of its latest failure; it may be another one's after a rollback.
  const bool is_latest = handle != nullptr && sqlite3_extended_errcode(handle) == code;
  std::string cause = is_latest ? sqlite3_errmsg(handle) : sqlite3_errstr(code);
  const bool is_file_error = (code & 0xff) == SQLITE_IOERR || (code & 0xff) == SQLITE_CANTOPEN ||
                             (code & 0xff) == SQLITE_FULL;
  if (is_file_error && system_errno != 0) cause += fmt::format(": {}", ErrnoText(system_errno));
  return Status(CodeOf(code, is_file_error ? system_errno : 0),
                fmt::format("{}: {} (SQLite {})", what, cause, code));
}

Result<std::unique_ptr<Connection>> Connection::Open(const std::string& path, Mode mode,
                                                     const std::string& vfs) {
  int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  if (mode == Mode::kReadOnly) {
    flags |= SQLITE_OPEN_READONLY;
  } else {
    flags |= SQLITE_OPEN_READWRITE | (mode == Mode::kCreate ? SQLITE_OPEN_CREATE : 0);
  }
  sqlite3* handle = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &handle, flags, vfs.empty() ? nullptr : vfs.c_str());
  if (code != SQLITE_OK) {
    Status status = SqliteStatus(code, handle, fmt::format("open {}", path));
    sqlite3_close_v2(handle);
    return status;
  }
  sqlite3_busy_timeout(handle, kBusyTimeoutMillis);
  return std::unique_ptr<Connection>(new Connection(handle));
}

Connection::~Connection() {
  for (auto& [sql, prepared] : prepared_) sqlite3_finalize(prepared.statement);
  sqlite3_close_v2(handle_);
}

Status Connection::Execute(const std::string& sql) {
  const int code = sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr);
  if (code == SQLITE_OK) return Status::Ok();
  return SqliteStatus(code, handle_, sql.substr(0, sql.find('\n')));
}

int64_t Connection::last_insert_rowid() const { return sqlite3_last_insert_rowid(handle_); }
int64_t Connection::num_changes() const { return sqlite3_changes64(handle_); }
void Connection::KeepLogOnClose(bool is_kept) {
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, is_kept ? 1 : 0, nullptr);
}
bool Connection::is_in_transaction() const { return sqlite3_get_autocommit(handle_) == 0; }

Query::Query(Connection& connection, const char* sql) : connection_(connection), sql_(sql) {
  Connection::Prepared& entry = connection.prepared_[sql];
  if (entry.statement != nullptr && !entry.is_in_use) {
    entry.is_in_use = true;
    is_cached_ = true;
    statement_ = entry.statement;
    return;
  }
  Check(sqlite3_prepare_v3(connection.handle_, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement_,
                           nullptr),
        sql);
  if (!status_.ok() || entry.is_in_use) return;
  entry.statement = statement_;
  entry.is_in_use = true;
  is_cached_ = true;
}

Query::~Query() {
  if (!is_cached_) {
    sqlite3_finalize(statement_);
    return;
  }
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
  connection_.prepared_[sql_].is_in_use = false;
}

bool Query::Next() {
  if (!status_.ok()) return false;
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) Check(code, sql_);
  return false;
}

Status Query::Run() {
  while (Next()) {
  }
  return status_;
}

int Query::num_columns() const { return sqlite3_column_count(statement_); }
bool Query::IsNull(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}
int64_t Query::Int(int column) const { return sqlite3_column_int64(statement_, column); }
double Query::Real(int column) const { return sqlite3_column_double(statement_, column); }
std::string Query::Text(int column) const {
  const void* data = sqlite3_column_blob(statement_, column);
  if (data == nullptr) return "";
  return std::string(static_cast<const char*>(data),
                     static_cast<size_t>(sqlite3_column_bytes(statement_, column)));
}

void Query::BindInt(int64_t value) {
  if (status_.ok()) Check(sqlite3_bind_int64(statement_, ++num_bound_, value), "bind");
}
void Query::BindReal(double value) {
  if (status_.ok()) Check(sqlite3_bind_double(statement_, ++num_bound_, value), "bind");
}
void Query::BindText(std::string_view value) {
  // An empty view may have a null pointer, which SQLite would take for NULL.
  const char* data = value.data() == nullptr ? "" : value.data();
  if (!status_.ok()) return;
  Check(sqlite3_bind_text64(statement_, ++num_bound_, data, value.size(), SQLITE_TRANSIENT,
                            SQLITE_UTF8),
        "bind");
}
void Query::BindBlob(std::string_view value) {
  const char* data = value.data() == nullptr ? "" : value.data();
  if (!status_.ok()) return;
  Check(sqlite3_bind_blob64(statement_, ++num_bound_, data, value.size(), SQLITE_TRANSIENT),
        "bind");
}
void Query::BindNull() {
  if (status_.ok()) Check(sqlite3_bind_null(statement_, ++num_bound_), "bind");
}

void Query::Check(int code, std::string_view what) {
  if (code != SQLITE_OK) status_ = SqliteStatus(code, connection_.handle_, what);
}

Transaction::Transaction(Connection& connection, Kind kind) : connection_(connection) {
  status_ = kind == Kind::kRead ? RunSql(connection_, "BEGIN DEFERRED")
                                : RunSql(connection_, "BEGIN IMMEDIATE");
}

Transaction::~Transaction() {
  // SQLite ends the transaction by itself after some errors. A rollback that fails leaves nothing
  // to be done: it ends it as well.
  if (!connection_.is_in_transaction()) return;
  const Status ignored = RunSql(connection_, "ROLLBACK");
  static_cast<void>(ignored);
}

Status Transaction::Commit() { return RunSql(connection_, "COMMIT"); }

}  // namespace pipeyard::storage
