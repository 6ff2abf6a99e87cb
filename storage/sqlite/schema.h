// The schema of store.db: its text, its number, and how an older store becomes a newer one.
//
// A released schema never changes: a change is a new number with a Migration from the one before
// (docs/STORE.md, "Changing the schema"). A golden test freezes each schema's text. Thread safety:
// immutable and pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/status.h"
#include "storage/sqlite/connection.h"

namespace pipeyard::storage {

// "PYRD" in the header of the file (PRAGMA application_id): tells our databases from others.
inline constexpr int32_t kApplicationId = 0x50595244;
// PRAGMA user_version of a store that this program writes.
inline constexpr int32_t kSchemaNumber = 1;

// The SQL text that makes an empty database a store of schema kSchemaNumber.
std::string_view SchemaText();

// Leads from schema `to - 1` to schema `to`.
struct Migration {
  int32_t to;
  std::string_view sql;
};

// Those of this program, ascending and without gaps up to kSchemaNumber; none yet.
std::span<const Migration> Migrations();

Result<int32_t> ReadSchemaNumber(Connection& connection);

// Makes the empty database behind `connection` a store of schema kSchemaNumber, in one transaction.
Status CreateSchema(Connection& connection);

// Applies each of `migrations` that is above the store's schema, each in one transaction with its
// user_version: a crash or an error leaves the old schema or the new one. Precondition: ascending,
// without gaps above the store's schema.
Status Migrate(Connection& connection, std::span<const Migration> migrations);

}  // namespace pipeyard::storage
