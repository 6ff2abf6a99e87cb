// The workload `churn`: tasks that make and end pipes, or resize them (kernel-mechanisms.md E8).
//
// Thread safety: one call at a time in a process.
#pragma once

#include "pipeyard/v1/worker.pb.h"
#include "proto/settings/variant.h"
#include "workloads/load/judgement.h"
#include "workloads/load/surroundings.h"

namespace pipeyard::load {

// Fills in what was measured; outcome and reason are the judgement's.
Judgement RunChurn(const settings::Variant& variant, const Surroundings& surroundings,
                   v1::WorkerResult& result);

}  // namespace pipeyard::load
