// The store's own ledger: its identity and epochs, frames set aside as orphans, and who did what.
//
// Thread safety: the Connection's. Errors: those of Store.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "storage/sqlite/connection.h"
#include "storage/store.h"

namespace pipeyard::storage {

// A repeated (attempt, sequence) changes nothing.
Status Write(Connection& connection, const StoreOrphan& mutation);
Status Write(Connection& connection, const Audit& mutation);

// Gives a new store its id.
Status WriteIdentity(Connection& connection, const std::string& store_id, UtcTime now);
// Begins the next epoch, in a transaction of its own.
Result<StoreIdentity> BeginEpoch(Connection& connection, UtcTime now);

}  // namespace pipeyard::storage
