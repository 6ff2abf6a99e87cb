// The workload `bulk`: tasks that ask for n pages at a time and give them back
// (kernel-mechanisms.md B3, C2, C4). Engine only.
//
// An operation is one request; what is timed is the allocation alone. Rates count the whole turn,
// giving back included.
//
// Thread safety: one call at a time in a process.
#pragma once

#include "pipeyard/v1/worker.pb.h"
#include "proto/settings/variant.h"
#include "workloads/load/judgement.h"
#include "workloads/load/surroundings.h"

namespace pipeyard::load {

// Fills in what was measured; outcome and reason are the judgement's.
Judgement RunBulk(const settings::Variant& variant, const Surroundings& surroundings,
                  v1::WorkerResult& result);

}  // namespace pipeyard::load
