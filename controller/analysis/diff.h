// diff: what `pipeyard diff` answers, computed from stored data alone.
//
// DiffRun compares within a run along its compared factor, block by block; DiffRuns compares two
// runs (or two parts of runs) cell by cell. Both give the same response.
//
// Thread safety: pure functions.
#pragma once

#include <vector>

#include "base/status.h"
#include "controller/analysis/operand.h"
#include "pipeyard/v1/control.pb.h"
#include "storage/records.h"
#include "storage/store.h"

namespace pipeyard::analysis {

struct DiffOptions {
  // Compare an emulated topology with a real one although the times of the former are modelled.
  bool is_forced = false;
};

// Each non-baseline level of the compared factor against the baseline, on each host, for all other
// settings equal. In the order `blocked` the pairs are those of the blocks (signed-rank); a pair
// that lacks a side is dropped and listed. In other orders the two-sample test is used. Variants
// without the compared factor become reference rows. `only` restricts hosts and variants; its run
// is not looked at. Errors: kFailedPrecondition where the run compares nothing (no `compare`) or
// has no cell with samples on both sides yet: the message says what there is. kNotFound where
// `only` matches nothing. kInvalidArgument where an emulated topology would be compared with a real
// one without force.
Result<v1::DiffResponse> DiffRun(const storage::RunRecord& run,
                                 const std::vector<storage::AttemptData>& attempts,
                                 const DiffOperand& only = {}, const DiffOptions& options = {});

// Run a against run b, matched by (host, variant id, metric id). Two operands that name one variant
// (or host) each are compared with each other although their variants (hosts) differ; where only
// one operand names it, the other is restricted likewise. Sides of one blocked run are paired by
// block, everything else is two-sample, over one median a boot where the boots differ. Errors: as
// above, and kInvalidArgument where a named variant or host is not unique or both sides are the
// same trials.
Result<v1::DiffResponse> DiffRuns(const storage::RunRecord& run_a,
                                  const std::vector<storage::AttemptData>& attempts_a,
                                  const storage::RunRecord& run_b,
                                  const std::vector<storage::AttemptData>& attempts_b,
                                  const DiffOperand& only_a = {}, const DiffOperand& only_b = {},
                                  const DiffOptions& options = {});

}  // namespace pipeyard::analysis
