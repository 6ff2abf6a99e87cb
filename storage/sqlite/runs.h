// Runs with their variants, cells and trials: writing them.
//
// Thread safety: the Connection's. Errors: those of Store; kNotFound where a mutation names what is
// not there.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "storage/sqlite/connection.h"
#include "storage/store.h"

namespace pipeyard::storage {

// kAlreadyExists for a known request_id or run_id; kNotFound for an unknown host; kInvalidArgument
// for a cell or trial given twice or a cell whose variant is not in the run.
Status Write(Connection& connection, const InsertRun& mutation);
// The first time of running and of ending is kept.
Status Write(Connection& connection, const SetRunState& mutation);
Status Write(Connection& connection, const SetCellState& mutation);
Status Write(Connection& connection, const SetTrialState& mutation);

// A trial with the rows that hang on it.
struct TrialRows {
  int64_t run = 0;
  int64_t trial = 0;
  int64_t host = 0;
};
Result<TrialRows> FindTrial(Connection& connection, const TrialKey& key);

}  // namespace pipeyard::storage
