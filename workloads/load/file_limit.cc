#include "workloads/load/file_limit.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>

namespace pipeyard::load {
namespace {

// What the owner itself opens meanwhile: an eventfd, a file of /sys or /proc, the result.
constexpr int64_t kReserve = 16;

int64_t CountOpenFiles() {
  DIR* folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return 64;  // no /proc: more than a worker is born with
  int64_t count = 0;
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count;
}

}  // namespace

Judgement RaiseFileLimit(int64_t more) {
  const int64_t open = CountOpenFiles();
  const auto needed = static_cast<rlim_t>(open + more + kReserve);
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return {};
  const rlimit raised = {needed, std::max(needed, limit.rlim_max)};
  if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) return {};
  return NotApplicable(
      "file_limit", fmt::format("RLIMIT_NOFILE is {} and must be at least {}: {} files more than "
                                "the {} that are open",
                                limit.rlim_max, needed, more, open));
}

}  // namespace pipeyard::load
