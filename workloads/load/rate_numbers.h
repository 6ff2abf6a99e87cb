// What tasks that repeat one operation measured, and the metrics that follow. Pure: no thread, no
// clock.
//
// Thread safety: values and pure functions.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "workloads/load/counts.h"
#include "workloads/load/histogram.h"
#include "workloads/load/load_workers.h"
#include "workloads/load/result_fields.h"

namespace pipeyard::load {

struct RateParameters {
  int tasks = 1;
  Nanos duration = Seconds(3);
  Nanos warmup = Milliseconds(500);
  WorkerKind workers = WorkerKind::kThreads;
};

struct RateNumbers {
  // Between the two readings of the tasks' counts.
  Nanos window{0};
  // What the tasks' operations did in the window, in the workload's own unit (pages, bytes).
  uint64_t window_units = 0;
  // Operations that ended in the window, ns each, of the part that the workload times; one that
  // began before it counts whole.
  Histogram latency;
  // Sum of what `latency` counts, ns, exact.
  uint64_t latency_sum = 0;
  // Units of the operations that `latency` counts.
  uint64_t timed_units = 0;
  // Differences over the window: of the loops, of the workers' usage, of the target.
  Counts counts;
};

// Units a second in the window; 0 for an empty window.
double UnitsPerSecond(const RateNumbers& numbers);

// Timed ns for each unit; absent without one.
Measured NanosPerUnit(const RateNumbers& numbers);

// Absent (too-few-operations, overflow) where statistics.md 1.7 allows none.
Measured LatencyPercentile(const Histogram& latency, double percentile);

}  // namespace pipeyard::load
