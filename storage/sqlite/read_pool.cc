#include "storage/sqlite/read_pool.h"

#include <utility>

namespace pipeyard::storage {

ReadPool::Lease::Lease(ReadPool& pool, std::unique_ptr<Connection> connection)
    : pool_(&pool),
      connection_(std::move(connection)),
      transaction_(std::make_unique<Transaction>(*connection_, Transaction::Kind::kRead)) {}

ReadPool::Lease::~Lease() {
  if (connection_ == nullptr) return;
  transaction_.reset();
  pool_->Return(std::move(connection_));
}

Result<ReadPool::Lease> ReadPool::Acquire() {
  std::unique_ptr<Connection> connection;
  {
    MutexLock lock(mutex_);
    while (num_in_use_ >= kMaxConnections) returned_.Wait(mutex_);
    ++num_in_use_;
    if (!idle_.empty()) {
      connection = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (connection == nullptr) {
    Result<std::unique_ptr<Connection>> opened = OpenConnection();
    if (!opened.ok()) {
      Return(nullptr);
      return opened.status();
    }
    connection = std::move(opened).value();
  }
  Lease lease(*this, std::move(connection));
  if (!lease.status().ok()) return lease.status();
  return lease;
}

Result<std::unique_ptr<Connection>> ReadPool::OpenConnection() const {
  PIPEYARD_ASSIGN_OR_RETURN(std::unique_ptr<Connection> connection,
                            Connection::Open(path_, Connection::Mode::kReadOnly, vfs_));
  PIPEYARD_RETURN_IF_ERROR(connection->Execute("PRAGMA query_only = 1"));
  PIPEYARD_RETURN_IF_ERROR(connection->Execute("PRAGMA cache_size = -8192"));
  return connection;
}

void ReadPool::Return(std::unique_ptr<Connection> connection) {
  MutexLock lock(mutex_);
  --num_in_use_;
  if (connection != nullptr) idle_.push_back(std::move(connection));
  returned_.NotifyOne();
}

}  // namespace pipeyard::storage
