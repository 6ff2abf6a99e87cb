// ReadPool: a few read-only connections for readers on any thread, so that none waits for the
// writer.
//
// Thread safety: Thread-safe. Ownership: owns the connections; outlives every Lease.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "storage/sqlite/connection.h"

namespace pipeyard::storage {

class ReadPool {
 public:
  // One connection with an open read transaction: a snapshot of one moment. Returned to the pool
  // when it goes.
  class Lease {
   public:
    Lease(ReadPool& pool, std::unique_ptr<Connection> connection);
    ~Lease();
    Lease(Lease&&) = default;
    Lease& operator=(Lease&&) = delete;
    Connection& connection() { return *connection_; }
    const Status& status() const { return transaction_->status(); }

   private:
    ReadPool* pool_;
    std::unique_ptr<Connection> connection_;
    std::unique_ptr<Transaction> transaction_;
  };

  ReadPool(std::string path, std::string vfs) : path_(std::move(path)), vfs_(std::move(vfs)) {}

  // Waits while kMaxConnections are in use.
  Result<Lease> Acquire() EXCLUDES(mutex_);

 private:
  // Enough for the API's threads; each holds a page cache of its own.
  static constexpr int kMaxConnections = 4;

  Result<std::unique_ptr<Connection>> OpenConnection() const;
  void Return(std::unique_ptr<Connection> connection) EXCLUDES(mutex_);

  // Constant after construction.
  const std::string path_;
  const std::string vfs_;

  Mutex mutex_;
  CondVar returned_;
  // Guarded by mutex_.
  std::vector<std::unique_ptr<Connection>> idle_ GUARDED_BY(mutex_);
  int num_in_use_ GUARDED_BY(mutex_) = 0;
};

}  // namespace pipeyard::storage
