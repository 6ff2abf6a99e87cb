// What the kernel counts about this process: context switches, page faults, CPU time.
//
// Thread safety: thread-safe.
#pragma once

#include "workloads/load/counts.h"

namespace pipeyard::load {

// getrusage(RUSAGE_SELF): voluntary_context_switches, involuntary_context_switches, minor_faults,
// major_faults (count), user_time, system_time (ns). All threads of the process, since its start.
Counts ReadProcessUsage();

}  // namespace pipeyard::load
