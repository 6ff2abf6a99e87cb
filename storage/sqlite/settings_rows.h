// Variants and their complete settings as rows.
//
// A variant (its id) is the identity that series are made of; the settings are everything it ran
// with, each distinct content stored once. One variant may have several settings over the years: a
// new switch at its default keeps the id. Thread safety: the Connection's.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "pipeyard/v1/settings.pb.h"
#include "storage/sqlite/connection.h"

namespace pipeyard::storage {

// `name=kind:value\n` lines of workload, workload_version, target and every setting, sorted by name
// bytewise. Errors: kInvalidArgument for a setting without a value or given twice.
Result<std::string> SettingsText(const v1::VariantSettings& settings);

// The row of the variant, inserted where there is none.
Result<int64_t> InternVariant(Connection& connection, const std::string& variant_id);
// The row of the settings, inserted where there is none.
Result<int64_t> InternSettings(Connection& connection, const v1::VariantSettings& settings);

// Settings sorted by name; variant_id is the caller's to set. kDataLoss where there is no such row.
Result<v1::VariantSettings> LoadSettings(Connection& connection, int64_t settings);

}  // namespace pipeyard::storage
