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
  std::string name;  // "MemAvailable"; with what TakeMemory() took: "MemAvailable beside ..."
  int64_t available_bytes = 0;
};

// MemAvailable, and for the memory cgroup and those above it what lies between its limit and its
// use, where file pages do not count as used: the kernel drops them. Those that can be read. `root`
// stands before the paths, for tests.
std::vector<MemoryLimit> ReadMemoryLimits(const std::string& root = "");

// Takes `bytes` of every limit, for `purpose` ("3 message buffers of 64MiB"). Where one does not
// have them: not_applicable/memory_limit with its name, what it leaves, and what was taken from it
// before; nothing is taken then.
Judgement TakeMemory(int64_t bytes, const std::string& purpose, std::vector<MemoryLimit>& limits);

}  // namespace pipeyard::load
