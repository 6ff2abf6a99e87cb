// The workload `fault`: tasks that touch their share of a region that nobody has touched, as pft
// does (kernel-mechanisms.md E4, D).
//
// Thread safety: one call at a time in a process.
#pragma once

#include "pipeyard/v1/worker.pb.h"
#include "proto/settings/variant.h"
#include "workloads/load/judgement.h"
#include "workloads/load/surroundings.h"

namespace pipeyard::load {

// Fills in what was measured; outcome and reason are the judgement's.
Judgement RunFault(const settings::Variant& variant, const Surroundings& surroundings,
                   v1::WorkerResult& result);

}  // namespace pipeyard::load
