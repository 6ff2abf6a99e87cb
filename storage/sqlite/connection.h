// Connection and Query: SQLite's C interface behind RAII and Status. Nothing outside storage/ sees
// sqlite3.h.
//
// A Connection is one open database handle with its prepared statements; a Query is one use of a
// statement, reset when it goes. Thread safety: Thread-compatible; a Connection and its Queries are
// used by one thread at a time. Ownership: Connection owns the handle; a Query borrows the
// Connection, which outlives it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "base/status.h"

struct sqlite3;
struct sqlite3_stmt;

namespace pipeyard::storage {

// Bytes bound as a BLOB; text otherwise.
struct Blob {
  std::string_view bytes;
};

// Maps an (extended) SQLite result code to a Status:
//   BUSY, LOCKED, IOERR, CANTOPEN, READONLY, PROTOCOL -> kUnavailable: nothing was kept, the same
//   call may succeed later FULL, NOMEM, and an IOERR whose errno is ENOSPC or EDQUOT ->
//   kResourceExhausted CORRUPT, NOTADB -> kDataLoss; anything else -> kInternal
// `handle` may be null; it gives the message and the errno.
Status SqliteStatus(int code, sqlite3* handle, std::string_view what);

class Connection {
 public:
  enum class Mode { kReadOnly, kReadWrite, kCreate };

  // `vfs` names a registered VFS; empty for SQLite's default.
  static Result<std::unique_ptr<Connection>> Open(const std::string& path, Mode mode,
                                                  const std::string& vfs);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Runs one or several statements that give no rows.
  Status Execute(const std::string& sql);
  int64_t last_insert_rowid() const;
  // Rows that the latest INSERT, UPDATE or DELETE touched.
  int64_t num_changes() const;
  bool is_in_transaction() const;
  // Whether closing leaves the write-ahead log as it is, instead of copying it into the file.
  void KeepLogOnClose(bool is_kept);
  sqlite3* handle() const { return handle_; }

 private:
  friend class Query;
  struct Prepared {
    sqlite3_stmt* statement = nullptr;
    bool is_in_use = false;
  };

  explicit Connection(sqlite3* handle) : handle_(handle) {}

  sqlite3* const handle_;
  // By the address of the SQL literal.
  std::unordered_map<const char*, Prepared> prepared_;
};

// One execution of a prepared statement.
//
//   Query query(connection, "SELECT name FROM hosts WHERE host = ?1", host);
//   while (query.Next()) names.push_back(query.Text(0));
//   PIPEYARD_RETURN_IF_ERROR(query.status());
//
// An error latches: later binds and steps do nothing. `sql` is a string literal: statements are
// cached by its address.
class Query {
 public:
  template <typename... Args>
  Query(Connection& connection, const char* sql, const Args&... args) : Query(connection, sql) {
    (BindNext(args), ...);
  }
  Query(Connection& connection, const char* sql);
  ~Query();
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  // True when a row stands ready; false at the end and on an error.
  bool Next();
  // Runs to the end.
  Status Run();
  const Status& status() const { return status_; }

  // Columns from 0. Valid after Next() gave true, until the next call of it.
  int num_columns() const;
  bool IsNull(int column) const;
  int64_t Int(int column) const;  // 0 for NULL
  double Real(int column) const;
  std::string Text(int column) const;  // TEXT or BLOB; empty for NULL

 private:
  void BindInt(int64_t value);
  void BindReal(double value);
  void BindText(std::string_view value);
  void BindBlob(std::string_view value);
  void BindNull();
  void Check(int code, std::string_view what);

  template <typename T>
  void BindNext(const T& value) {
    if constexpr (std::is_same_v<T, std::nullopt_t>) {
      BindNull();
    } else if constexpr (std::is_same_v<T, Blob>) {
      BindBlob(value.bytes);
    } else if constexpr (std::is_integral_v<T>) {
      // Unsigned 64-bit values are kept as two's complement.
      BindInt(static_cast<int64_t>(value));
    } else if constexpr (std::is_floating_point_v<T>) {
      BindReal(value);
    } else {
      BindText(std::string_view(value));
    }
  }
  template <typename T>
  void BindNext(const std::optional<T>& value) {
    if (value) {
      BindNext(*value);
    } else {
      BindNull();
    }
  }

  Connection& connection_;
  const char* const sql_;
  sqlite3_stmt* statement_ = nullptr;
  bool is_cached_ = false;
  int num_bound_ = 0;
  Status status_;
};

// Runs a statement that gives no rows.
template <typename... Args>
Status RunSql(Connection& connection, const char* sql, const Args&... args) {
  Query query(connection, sql, args...);
  return query.Run();
}

// A transaction that is rolled back unless Commit() returned OK.
class Transaction {
 public:
  enum class Kind { kRead, kWrite };

  Transaction(Connection& connection, Kind kind);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  // OK when it began.
  const Status& status() const { return status_; }
  Status Commit();

 private:
  Connection& connection_;
  Status status_;
};

// NULL stands for "has not happened" where records say 0.
inline std::optional<int64_t> NullIfZero(int64_t value) {
  return value == 0 ? std::nullopt : std::optional<int64_t>(value);
}
inline std::optional<std::string_view> NullIfEmpty(std::string_view value) {
  return value.empty() ? std::nullopt : std::optional<std::string_view>(value);
}

}  // namespace pipeyard::storage
