// Surroundings: what a workload is told of its machine from outside, so that tests can be the
// machine.
//
// Thread safety: a value. Ownership: borrows.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "workloads/load/commanded_placement.h"
#include "workloads/load/memory_limit.h"
#include "workloads/numa/hotplug.h"
#include "workloads/numa/node_mask.h"

namespace pipeyard::load {

struct Surroundings {
  // Hotplug of CPUs and memory during the attempt; nullptr: nobody listens.
  numa::HotplugListener* hotplug = nullptr;
  // Nodes with memory at this moment; empty: as /sys says.
  std::function<Result<numa::NodeMask>()> memory_nodes;
  // What an attempt may take; empty: as /proc and /sys say.
  std::function<std::vector<MemoryLimit>()> memory_limits;
  // What stands before a program and its arguments to make it die with this process; empty:
  // nothing.
  std::vector<std::string> launcher = {};
  // What RunWorkload() found the variant to command; set by it.
  CommandedPlacement placement = {};
};

inline std::vector<MemoryLimit> MemoryLimitsOf(const Surroundings& surroundings) {
  return surroundings.memory_limits ? surroundings.memory_limits() : ReadMemoryLimits();
}

}  // namespace pipeyard::load
