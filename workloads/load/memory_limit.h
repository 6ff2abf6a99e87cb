// How much memory an attempt may take before the kernel has to kill something, against what it will
// take.
//
// Thread safety: thread-safe; reads /proc and /sys.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/load/judgement.h"

namespace pipeyard::load {

// One limit of memory.
struct MemoryLimit {
  std::string name;  // "MemAvailable"
  int64_t available_bytes = 0;
};

// MemAvailable, and for the memory cgroup and those above it what lies between its limit and its
// use, where file pages do not count as used: the kernel drops them. Those that can be read. `root`
// stands before the paths, for tests.
std::vector<MemoryLimit> ReadMemoryLimits(const std::string& root = "");

// ok where `needed_bytes` fit below every limit; else not_applicable/memory_limit with the limit's
// name and `purpose`, which says what they are for ("3 message buffers of 1GiB").
Judgement JudgeMemory(const std::vector<MemoryLimit>& limits, int64_t needed_bytes,
                      const std::string& purpose);

}  // namespace pipeyard::load
