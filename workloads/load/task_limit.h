// The limits of threads and processes, against what a workload will start.
//
// Thread safety: thread-safe; reads /proc, /sys and the limits of the process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/load/judgement.h"

namespace pipeyard::load {

// One limit of tasks (threads, those of processes included).
struct TaskLimit {
  std::string name;   // "kernel.threads-max"
  int64_t limit = 0;  // how many there may be
  int64_t used = 0;   // how many there are
};

// kernel.threads-max, kernel.pid_max, pids.max of the cgroup and of those above it, and
// RLIMIT_NPROC where the process is not privileged; those that can be read. `root` stands before
// the paths, for tests.
std::vector<TaskLimit> ReadTaskLimits(const std::string& root = "");

// ok where `more` tasks fit below every limit; else not_applicable/task_limit with the limit's name
// and the number needed.
Judgement JudgeTasks(const std::vector<TaskLimit>& limits, int64_t more);

}  // namespace pipeyard::load
