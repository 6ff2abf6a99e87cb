// RunWorkload: one attempt at one variant, in this process.
//
// It knows no files and no agent: workloads/worker brings the request and takes the result away.
//
// Thread safety: one call at a time in a process; SIGPIPE is ignored from the first kernel pipe on.
#pragma once

#include "pipeyard/v1/worker.pb.h"
#include "proto/settings/variant.h"
#include "workloads/load/surroundings.h"

namespace pipeyard::load {

// Always a complete result but for attempt_id and elapsed_ns, which the caller knows. Never hangs
// longer than the variant's warm-up and duration and some 30 s. A setting that this version does
// not execute is failed/not_supported, never ignored.
v1::WorkerResult RunWorkload(const settings::Variant& variant,
                             const Surroundings& surroundings = {});

}  // namespace pipeyard::load
