// The workload `bandwidth`: tasks that read, write, copy or add up memory that a policy has placed,
// without pause (kernel-mechanisms.md C6, E7): what weights are chosen by.
//
// Thread safety: one call at a time in a process.
#pragma once

#include "pipeyard/v1/worker.pb.h"
#include "proto/settings/variant.h"
#include "workloads/load/judgement.h"
#include "workloads/load/surroundings.h"

namespace pipeyard::load {

// Fills in what was measured; outcome and reason are the judgement's.
Judgement RunBandwidth(const settings::Variant& variant, const Surroundings& surroundings,
                       v1::WorkerResult& result);

}  // namespace pipeyard::load
