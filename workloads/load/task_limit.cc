#include "workloads/load/task_limit.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

namespace pipeyard::load {
namespace {

constexpr int64_t kUnknown = -1;

// The file's first line without its end; "" where there is none.
std::string FirstLine(const std::string& path) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "re"), std::fclose);
  char line[512] = "";
  if (file == nullptr || std::fgets(line, sizeof(line), file.get()) == nullptr) return "";
  std::string text = line;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

// kUnknown for what is no number ("max").
int64_t ReadNumber(const std::string& path) {
  const std::string line = FirstLine(path);
  char* end = nullptr;
  const long long value = std::strtoll(line.c_str(), &end, 10);
  return end == line.c_str() || *end != '\0' ? kUnknown : value;
}

// "0.20 0.18 0.12 1/80 11206": the fourth field ends with the number of tasks.
int64_t TasksOfMachine(const std::string& root) {
  long long tasks = 0;
  const std::string line = FirstLine(root + "/proc/loadavg");
  return std::sscanf(line.c_str(), "%*s %*s %*s %*d/%lld", &tasks) == 1 ? tasks : 0;
}

// Folders of the cgroup that counts tasks: the unified one, and that of version 1.
std::vector<std::string> CgroupFolders(const std::string& root) {
  const std::string path = root + "/proc/self/cgroup";
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "re"), std::fclose);
  std::vector<std::string> folders;
  char line[4096];
  while (file != nullptr && std::fgets(line, sizeof(line), file.get()) != nullptr) {
    std::string text = line;
    while (!text.empty() && text.back() == '\n') text.pop_back();
    const size_t first = text.find(':');
    const size_t second = first == std::string::npos ? first : text.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = text.substr(first + 1, second - first - 1);
    const std::string group = text.substr(second + 1);
    if (controllers.empty()) folders.push_back(root + "/sys/fs/cgroup" + group);
    if (controllers == "pids") folders.push_back(root + "/sys/fs/cgroup/pids" + group);
  }
  return folders;
}

}  // namespace

std::vector<TaskLimit> ReadTaskLimits(const std::string& root) {
  std::vector<TaskLimit> limits;
  const auto add = [&](std::string name, int64_t limit, int64_t used) {
    if (limit != kUnknown) limits.push_back({std::move(name), limit, used});
  };
  const int64_t tasks = TasksOfMachine(root);
  add("kernel.threads-max", ReadNumber(root + "/proc/sys/kernel/threads-max"), tasks);
  add("kernel.pid_max", ReadNumber(root + "/proc/sys/kernel/pid_max"), tasks);
  for (const std::string& folder : CgroupFolders(root)) {
    add("pids.max of the cgroup", ReadNumber(folder + "/pids.max"),
        ReadNumber(folder + "/pids.current"));
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
