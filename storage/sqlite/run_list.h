// Finding runs: summaries, pages of them, and what a person's reference to a run means.
//
// Thread safety: the Connection's; the caller holds one transaction over a call.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "storage/sqlite/connection.h"
#include "storage/store.h"

namespace pipeyard::storage {

// Newest first by created_utc, then by order of insertion. kNotFound for an unknown before_run_id.
Result<std::vector<RunSummaryRecord>> ListRuns(Connection& connection, uint32_t limit,
                                               const std::string& before_run_id);
Result<RunSummaryRecord> LoadRunSummary(Connection& connection, const std::string& run_id);
Result<std::string> FindRunByRequest(Connection& connection, const std::string& request_id);

// In this order: a whole id, "latest", "SWEEP~N" (the N-th newest of that sweep, from 0), a unique
// prefix of an id.
Result<std::string> ResolveRun(Connection& connection, const std::string& reference);

}  // namespace pipeyard::storage
