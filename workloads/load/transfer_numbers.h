// What one transfer measured, and what the result says of it. Pure: no thread, no clock.
//
// Thread safety: values and pure functions.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "pipeyard/v1/worker.pb.h"
#include "workloads/load/counts.h"
#include "workloads/load/histogram.h"
#include "workloads/load/load_workers.h"

namespace pipeyard::load {

struct TransferParameters {
  int writers = 1;
  int readers = 1;
  int64_t message_bytes = 65536;
  int64_t pipe_bytes = 1048576;
  Nanos duration = Seconds(3);
  Nanos warmup = Milliseconds(500);
  WorkerKind workers = WorkerKind::kThreads;
};

struct TransferNumbers {
  // Between the two readings of the readers' byte counts.
  Nanos window{0};
  // Bytes that readers received in the window.
  uint64_t window_bytes = 0;
  // Write calls that ended in the window, ns each; a call that began before it counts whole.
  Histogram latency;
  // Sum of what `latency` counts, ns, exact.
  uint64_t latency_sum = 0;
  // Differences over the window: of the process, of the loops, of the target.
  Counts counts;
};

// Bytes a second that readers received in the window; 0 for an empty window.
double Throughput(const TransferNumbers& numbers);

// A closed loop of `writers` calls has mean latency = writers * message_bytes / throughput
// (kernel-mechanisms.md E3; Little's law). The tolerance is 1 % for what happens between two calls
// of a thread, plus what the edges of the window cut: the longest call relative to the window, what
// may lie in the pipe or be half-done relative to the bytes moved; plus the two clock readings
// relative to the expected latency.
v1::SelfCheck CheckClosedLoop(const TransferParameters& parameters, const TransferNumbers& numbers);

// Fills in metrics (every one that settings declares for `transfer`), counters, the histogram and
// the self-check. Errors: kInternal where settings declare a metric that this does not compute.
Status FillTransferResult(const TransferParameters& parameters, const TransferNumbers& numbers,
                          v1::WorkerResult& result);

}  // namespace pipeyard::load
