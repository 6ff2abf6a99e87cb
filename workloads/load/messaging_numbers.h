// What one messaging run measured, and what the result says of it. Pure: no thread, no clock.
//
// Thread safety: values and pure functions.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "base/units.h"
#include "pipeyard/v1/worker.pb.h"
#include "workloads/load/counts.h"
#include "workloads/load/judgement.h"
#include "workloads/load/load_workers.h"

namespace pipeyard::load {

struct MessagingParameters {
  int groups = 10;
  int fds = 20;  // senders, receivers and pipes of each group
  int64_t message_bytes = 100;
  int64_t pipe_bytes = 65536;
  int64_t loops = 100;  // rounds of each sender; without meaning where duration is above 0
  Nanos duration{0};    // 0: until all loops are done
  WorkerKind workers = WorkerKind::kThreads;

  int num_pipes() const { return groups * fds; }
  int num_workers() const { return 2 * groups * fds; }
};

struct MessagingNumbers {
  // From the start signal until the last worker has ended and was joined or reaped.
  Nanos time{0};
  uint64_t messages_sent = 0;
  uint64_t messages_received = 0;  // complete ones
  uint64_t bytes_sent = 0;
  uint64_t bytes_received = 0;
  // Of the loops, the workers' usage, the target.
  Counts counts;
};

// ok; failed/bytes_lost where what was received is not what was sent, or not as many messages as
// the loops make; failed/no_operations where there was none.
Judgement JudgeMessages(const MessagingParameters& parameters, const MessagingNumbers& numbers);

// Fills in metrics (every one that settings declare for `messaging`) and counters. Errors:
// kInternal where settings declare a metric that this does not compute.
Status FillMessagingResult(const MessagingNumbers& numbers, v1::WorkerResult& result);

}  // namespace pipeyard::load
