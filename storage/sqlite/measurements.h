// What attempts measured, read back.
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

// Every ended attempt of the run, by host_id, variant, trial, number. kNotFound where there is no
// such run.
Result<std::vector<AttemptData>> LoadAttemptData(Connection& connection, const std::string& run_id);

// kNotFound where there is no such attempt.
Result<AttemptDetails> LoadAttemptDetails(Connection& connection, const std::string& attempt_id);

// Metrics of one attempt, in the order in which the store first saw them.
Status LoadMetrics(Connection& connection, int64_t attempt, std::vector<v1::Metric>& metrics);

// Reads the eleven columns attempt_id, number, epoch, leased_utc, outcome, reason_code,
// reason_text, elapsed_ns, boot_id, ended_utc, frames_through from column `first` on.
Status ReadAttempt(const Query& query, int first, AttemptRecord& attempt);

}  // namespace pipeyard::storage
