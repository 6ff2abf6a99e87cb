#include "storage/sqlite/ledger.h"

namespace pipeyard::storage {

Status Write(Connection& connection, const StoreOrphan& mutation) {
  return RunSql(connection,
                "INSERT INTO orphans (host_id, attempt_id, sequence, received_utc, frame) "
                "VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (attempt_id, sequence) DO NOTHING",
                mutation.host_id, mutation.frame.attempt_id(), mutation.frame.sequence(),
                mutation.received_utc, Blob{mutation.frame.SerializeAsString()});
}

Status Write(Connection& connection, const Audit& mutation) {
  return RunSql(connection,
                "INSERT INTO audit (at_utc, actor, action, subject, detail) "
                "VALUES (?1, ?2, ?3, ?4, ?5)",
                mutation.at_utc, mutation.actor, mutation.action, mutation.subject,
                mutation.detail);
}

Status WriteIdentity(Connection& connection, const std::string& store_id, UtcTime now) {
  return RunSql(connection,
                "INSERT INTO identity (only_row, store_id, created_utc) VALUES (1, ?1, ?2)",
                store_id, now.count());
}

Result<StoreIdentity> BeginEpoch(Connection& connection, UtcTime now) {
  Transaction transaction(connection, Transaction::Kind::kWrite);
  PIPEYARD_RETURN_IF_ERROR(transaction.status());
  StoreIdentity identity;
  {
    Query query(connection, "SELECT store_id FROM identity");
    if (query.Next()) identity.store_id = query.Text(0);
    PIPEYARD_RETURN_IF_ERROR(query.status());
  }
  if (identity.store_id.empty()) return DataLoss("the store has lost its identity");
  PIPEYARD_RETURN_IF_ERROR(RunSql(connection,
                                  "INSERT INTO epochs (epoch, opened_utc) "
                                  "SELECT coalesce(max(epoch), 0) + 1, ?1 FROM epochs",
                                  now.count()));
  identity.epoch = static_cast<uint64_t>(connection.last_insert_rowid());
  PIPEYARD_RETURN_IF_ERROR(transaction.Commit());
  return identity;
}

}  // namespace pipeyard::storage
