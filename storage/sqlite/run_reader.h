// Whole runs read back: variants, cells, trials, attempts.
//
// Thread safety: the Connection's; the caller holds one transaction over a call, so that all rows
// are of one moment.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "storage/records.h"
#include "storage/sqlite/connection.h"

namespace pipeyard::storage {

// kNotFound where there is no such run.
Result<RunRecord> LoadRun(Connection& connection, const std::string& run_id);
// Every run that is not terminal, oldest first; attempts that have not ended carry what their
// stored frames measured.
Result<std::vector<RunRecord>> LoadActiveRuns(Connection& connection);

}  // namespace pipeyard::storage
