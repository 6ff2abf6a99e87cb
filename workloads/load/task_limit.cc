#include "workloads/load/task_limit.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <optional>
#include <utility>

#include "workloads/load/limit_files.h"

namespace pipeyard::load {
namespace {

// "0.20 0.18 0.12 1/80 11206": the fourth field ends with the number of tasks.
int64_t TasksOfMachine(const std::string& root) {
  long long tasks = 0;
  const std::string line = ReadText(root + "/proc/loadavg");
  return std::sscanf(line.c_str(), "%*s %*s %*s %*d/%lld", &tasks) == 1 ? tasks : 0;
}

}  // namespace

std::vector<TaskLimit> ReadTaskLimits(const std::string& root) {
  std::vector<TaskLimit> limits;
  const auto add = [&](std::string name, std::optional<int64_t> limit, int64_t used) {
    if (limit) limits.push_back({std::move(name), *limit, used});
  };
  const int64_t tasks = TasksOfMachine(root);
  add("kernel.threads-max", ReadNumber(root + "/proc/sys/kernel/threads-max"), tasks);
  add("kernel.pid_max", ReadNumber(root + "/proc/sys/kernel/pid_max"), tasks);
  for (const std::string& folder : CgroupFolders(root, "pids")) {
    add("pids.max of the cgroup", ReadNumber(folder + "/pids.max"),
        ReadNumber(folder + "/pids.current").value_or(0));
  }
  rlimit limit = {};
  // The user's other processes are not counted here; root is not held to it.
  if (::geteuid() != 0 && ::getrlimit(RLIMIT_NPROC, &limit) == 0 &&
      limit.rlim_cur != RLIM_INFINITY) {
    add("RLIMIT_NPROC", static_cast<int64_t>(limit.rlim_cur), 1);
  }
  return limits;
}

Judgement JudgeTasks(const std::vector<TaskLimit>& limits, int64_t more) {
  for (const TaskLimit& limit : limits) {
    if (limit.used + more <= limit.limit) continue;
    return NotApplicable(
        "task_limit",
        fmt::format(
            "{} is {} and must be at least {}: {} workers beside the {} tasks that there are",
            limit.name, limit.limit, limit.used + more, more, limit.used));
  }
  return {};
}

}  // namespace pipeyard::load
