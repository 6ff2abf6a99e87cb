// What the kernel counts about page allocation on each node, of the whole machine.
//
// For target kernel these deltas stand in place of a proof of where pipe pages lie, which nobody
// outside the kernel can see. Thread safety: thread-safe.
#pragma once

#include <string>

#include "workloads/load/counts.h"

namespace pipeyard::load {

// nodeN_numa_hit, nodeN_numa_miss and nodeN_numa_foreign of every node below `root` that has them;
// empty on a kernel without NUMA.
Counts ReadNodeStatistics(const std::string& root = "/sys/devices/system/node");

}  // namespace pipeyard::load
