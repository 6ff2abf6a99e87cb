// Supervisor: the owner's side of a measurement. It waits, for time or for workers, and looks up as
// soon as something happens that ends the attempt: a worker failed, a worker process died.
//
//   Supervisor supervisor(gate, workers);
//   while workers are started: supervisor.AwaitArrivals(n, timeout)
//   supervisor.IsAbortedBefore(deadline)
//   supervisor.AwaitEnd(timeout), else supervisor.ForceEnd(...)
//
// While nothing happens it sleeps in one system call and takes no CPU from what is measured.
//
// Thread safety: confined to the owner's thread. Ownership: borrows the gate, the workers and what
// is watched.
#pragma once

#include <functional>

#include "base/clock.h"
#include "workloads/load/judgement.h"
#include "workloads/load/load_workers.h"
#include "workloads/load/phase.h"

namespace pipeyard::load {

// How long workers may take to start, to end after they were told to stop, and to end by force. The
// defaults are far above what a loaded machine needs; a trial's timeout (at least 30 s) lies above
// all of them together.
struct LoopTimeouts {
  Nanos start = Seconds(15);
  Nanos drain = Seconds(10);
  Nanos abort = Seconds(2);
};

// A descriptor that the owner watches while it waits, such as that of hotplug events.
struct Watch {
  int fd = -1;  // -1: nothing
  std::function<void()> on_readable;
};

class Supervisor {
 public:
  // Before the first worker is started. Without an eventfd (the limit of open files) the owner
  // looks every 10 ms.
  Supervisor(PhaseGate& gate, LoadWorkers& workers, Watch watch = {});
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;
  ~Supervisor();

  // Waits until `deadline`; returns early, and true, where a worker failed or died.
  bool IsAbortedBefore(MonotonicTime deadline);
  // False where fewer than `count` arrived within `timeout`, or a worker died meanwhile.
  bool AwaitArrivals(int count, Nanos timeout);
  // False where workers have not all ended within `timeout`; early, and in kAbort, where one died.
  bool AwaitEnd(Nanos timeout);
  // Ends workers that do not end by themselves: enters kAbort, calls `interrupt` and interrupts
  // system calls until they have ended, at most `timeout`; then by the last resort. False where
  // that failed too: threads are left behind.
  bool ForceEnd(Nanos timeout, const std::function<void()>& interrupt);

 private:
  // Sleeps until `deadline`, an event, or the end of a worker; looks at what there is.
  void Wait(MonotonicTime deadline);
  void LookAtWatch();
  // Whether a worker died; enters kAbort then.
  bool HasDeath();

  PhaseGate& gate_;
  LoadWorkers& workers_;
  Watch watch_;
  const int event_fd_;
};

}  // namespace pipeyard::load
