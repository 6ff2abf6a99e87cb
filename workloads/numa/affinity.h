// Affinity: the CPUs that the calling thread may run on.
//
// Thread safety: thread-safe; each thread has its own.
#pragma once

#include <vector>

#include "base/status.h"
#include "workloads/numa/node_mask.h"

namespace pipeyard::numa {

// The highest CPU number that Linux can be built for (CONFIG_NR_CPUS of x86-64).
inline constexpr CpuId kMaxCpu = 8191;

// sched_setaffinity(2), which cuts `cpus` down to the cpuset. Precondition: each is 0..kMaxCpu.
// Returns 0 or an errno.
int SetAffinity(const std::vector<CpuId>& cpus);

// sched_getaffinity(2), ascending. Errors: as ErrnoStatus().
Result<std::vector<CpuId>> GetAffinity();

}  // namespace pipeyard::numa
