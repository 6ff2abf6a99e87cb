// What the passes of the workload `fault` measured, and the metrics that follow. Pure: no thread,
// no clock.
//
// Thread safety: values and pure functions.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "base/units.h"
#include "pipeyard/v1/worker.pb.h"
#include "workloads/load/counts.h"
#include "workloads/load/load_workers.h"
#include "workloads/load/thread_usage.h"

namespace pipeyard::load {

struct FaultParameters {
  int tasks = 1;
  int64_t pages_per_task = 1;
  int cachelines = 1;  // written in each page
  // Passes that begin before are not kept; the first pass is one of them unless this is 0.
  Nanos warmup = Milliseconds(500);
  // No pass begins after it, counted from the first kept one; that one is always made.
  Nanos duration = Seconds(3);
  WorkerKind workers = WorkerKind::kThreads;
  bool is_page_path = false;  // engine: alloc_page() in place of the fault path

  uint64_t pages_per_pass() const {
    return static_cast<uint64_t>(tasks) * static_cast<uint64_t>(pages_per_task);
  }
};

struct FaultNumbers {
  // Kept passes, and pages that all tasks touched in them.
  uint64_t passes = 0;
  uint64_t pages = 0;
  // Sum over passes of the time from the earliest begin of a task to the latest end, ns.
  uint64_t wall_ns = 0;
  // Sums over passes and tasks: from a task's begin to its end, and CPU time of its thread, ns.
  uint64_t busy_ns = 0;
  uint64_t cpu_ns = 0;
  // Of the tasks' threads within their passes.
  ThreadUsage usage = {};
  // Differences over the kept passes and what lies between them: of the target.
  Counts counts;
};

// "minor-faults": of each touched page one is expected; passed within 10 %, as pft has it
// (kernel-mechanisms.md E4).
v1::SelfCheck CheckMinorFaults(const FaultNumbers& numbers);

// Metrics and counters. Errors: kInternal.
Status FillFaultResult(const FaultNumbers& numbers, v1::WorkerResult& result);

}  // namespace pipeyard::load
