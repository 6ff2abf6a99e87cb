#include "storage/sqlite/schema.h"

#include <fmt/format.h>

namespace pipeyard::storage {

std::span<const Migration> Migrations() { return {}; }

Result<int32_t> ReadSchemaNumber(Connection& connection) {
  Query query(connection, "PRAGMA user_version");
  if (query.Next()) return static_cast<int32_t>(query.Int(0));
  if (!query.status().ok()) return query.status();
  return Internal("PRAGMA user_version gave no row");
}

Status CreateSchema(Connection& connection) {
  Transaction transaction(connection, Transaction::Kind::kWrite);
  PIPEYARD_RETURN_IF_ERROR(transaction.status());
  PIPEYARD_RETURN_IF_ERROR(connection.Execute(std::string(SchemaText())));
  PIPEYARD_RETURN_IF_ERROR(
      connection.Execute(fmt::format("PRAGMA application_id = {}", kApplicationId)));
  PIPEYARD_RETURN_IF_ERROR(
      connection.Execute(fmt::format("PRAGMA user_version = {}", kSchemaNumber)));
  return transaction.Commit();
}

Status Migrate(Connection& connection, std::span<const Migration> migrations) {
  PIPEYARD_ASSIGN_OR_RETURN(int32_t number, ReadSchemaNumber(connection));
  for (const Migration& migration : migrations) {
    if (migration.to <= number) continue;
    const auto context = [&](const Status& status) {
      return status.WithContext(fmt::format("migrate schema {} to {}", number, migration.to));
    };
    if (migration.to != number + 1) return context(Internal("no migration leads there"));
    Transaction transaction(connection, Transaction::Kind::kWrite);
    if (!transaction.status().ok()) return context(transaction.status());
    Status status = connection.Execute(std::string(migration.sql));
    if (status.ok()) {
      status = connection.Execute(fmt::format("PRAGMA user_version = {}", migration.to));
    }
    if (status.ok()) status = transaction.Commit();
    if (!status.ok()) return context(status);
    number = migration.to;
  }
  return Status::Ok();
}

}  // namespace pipeyard::storage
