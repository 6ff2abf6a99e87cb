// poll(2) over pipes, and the events that poll and watches report.
//
// The kernel registers on a queue and then looks without the mutex; here both happen under the
// pipe's mutex, which guards the queues. Events and who is woken are the same
// (kernel-mechanisms.md A4, A5).
// Thread safety: thread-safe; a worker is in one call at a time.
#pragma once

#include <cstdint>
#include <span>

#include "base/units.h"
#include "workloads/pipe/pipe.h"
#include "workloads/pipe/worker.h"

namespace pipeyard::pipe {

// Values: poll(2)'s.
enum PollEvent : uint16_t {
  kPollIn = 0x01,   // read end: not empty
  kPollOut = 0x04,  // write end: a slot is free; bytes may fit or not all the same (merging)
  kPollErr = 0x08,  // write end: no readers; reported whether asked for or not
  kPollHup = 0x10,  // read end: no writers; reported whether asked for or not
};

struct PollEntry {
  Pipe pipe;  // an empty handle is passed over, as a negative descriptor is
  PipeEnd end = PipeEnd::kRead;
  uint16_t events = 0;   // PollEvent, wanted
  uint16_t revents = 0;  // set by Poll()
};

// Waits until one of `entries` (at most kMaxPollEntries) has an event, at most `timeout`; 0: only
// looks, below 0: without limit. Returns how many have events, or a negative errno: -EINVAL,
// -EINTR, -EOWNERDEAD. Precondition: each end is open for the whole call.
int Poll(Worker& worker, std::span<PollEntry> entries, Nanos timeout);

}  // namespace pipeyard::pipe
