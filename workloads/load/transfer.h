// The workload `transfer`: writers and readers of one pipe, as in pipe_bench (kernel-mechanisms.md
// E3).
//
// Readers start first; after the warm-up the window opens for `duration`; then the writers end
// after their message, the last of them closes the write end, and the readers drain to end of file.
// Throughput is what the readers received in the window; latency is that of whole messages written.
//
// Thread safety: one call at a time in a process.
#pragma once

#include "pipeyard/v1/worker.pb.h"
#include "proto/settings/variant.h"
#include "workloads/load/judgement.h"
#include "workloads/load/surroundings.h"
#include "workloads/load/transfer_numbers.h"

namespace pipeyard::load {

TransferParameters TransferParametersOf(const settings::Variant& variant);

// Fills in what was measured; outcome and reason are the judgement's.
Judgement RunTransfer(const settings::Variant& variant, const Surroundings& surroundings,
                      v1::WorkerResult& result);

}  // namespace pipeyard::load
