// The samples of a run, cell by cell, as the comparison needs them: which attempt stands for each
// trial, and what else happened.
//
// A trial's sample is its first committed `ok` attempt, and only of a trial that is done: an `ok`
// that came after its trial had ended otherwise is kept by the store and is no sample.
//
// Thread safety: values. Ownership: pointers are into the RunRecord and the attempts given, which
// outlive them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "controller/analysis/operand.h"
#include "pipeyard/v1/attempt.pb.h"
#include "storage/records.h"
#include "storage/store.h"

namespace pipeyard::analysis {

// One value of one metric, with what its independence hangs on.
struct Value {
  uint32_t block = 0;  // from 1; 0 = none recorded
  std::string boot;
  double value = 0;
};

// One metric of one cell. Equal identity (name, unit, reducer) is needed for a comparison.
struct MetricSeries {
  std::string name;
  std::string unit;
  std::string reducer;
  v1::Direction better = v1::DIRECTION_NONE;
  std::vector<Value> values;
  // Why values are absent, where some are ("too-few-operations"); the first reason seen.
  std::string absent_reason;
  uint32_t num_not_finite = 0;
};

struct CellSamples {
  std::string run_id;
  std::string host_id;
  std::string host;
  const storage::VariantRecord* variant = nullptr;
  // One a done trial, by trial index.
  std::vector<const storage::AttemptData*> samples;
  uint32_t num_trials = 0;
  // Ended attempts, and those of them that were void; failed counts failed, timeout and lost.
  uint32_t num_attempts = 0;
  uint32_t num_void = 0;
  uint32_t num_failed = 0;

  bool IsEmulated() const;
  // In the order in which the workload declares them.
  std::vector<MetricSeries> Metrics() const;
};

// The cells of `run` that `only` selects, by host name, then variant index.
// Errors: kNotFound where a selection matches nothing (the message lists what there is);
// kInvalidArgument where an attempt is listed twice.
Result<std::vector<CellSamples>> SelectSamples(const storage::RunRecord& run,
                                               const std::vector<storage::AttemptData>& attempts,
                                               const DiffOperand& only);

// The first 13 characters of a UUIDv7: its milliseconds, enough as a prefix for people.
std::string ShortId(const std::string& id);

}  // namespace pipeyard::analysis
