#include "workloads/load/limit_files.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/env.h"

namespace pipeyard::load {
namespace {

bool IsListed(std::string_view name, std::string_view list) {
  const std::string bounded = "," + std::string(list) + ",";
  return bounded.find("," + std::string(name) + ",") != std::string::npos;
}

void AddFolders(const std::string& hierarchy, std::string_view group,
                std::vector<std::string>& folders) {
  while (group.size() > 1) {
    folders.push_back(hierarchy + std::string(group));
    group = group.substr(0, group.rfind('/'));
  }
  folders.push_back(hierarchy);
}

}  // namespace

std::string ReadText(const std::string& path) {
  Result<std::string> text = PosixEnv().ReadFile(path);
  return text.ok() ? std::move(*text) : "";
}

std::optional<int64_t> ReadNumber(const std::string& path) {
  const std::string text = ReadText(path);
  const std::string_view line = std::string_view(text).substr(0, text.find('\n'));
  const char* const end = line.data() + line.size();
  int64_t value = 0;
  const auto [stopped_at, error] = std::from_chars(line.data(), end, value);
  return error == std::errc() && stopped_at == end ? std::optional(value) : std::nullopt;
}

// A line: "4:cpu,pids:/the/group", mounted at cpu,pids; the unified hierarchy's has no controller.
std::vector<std::string> CgroupFolders(const std::string& root, std::string_view controller) {
  const std::string text = ReadText(root + "/proc/self/cgroup");
  std::vector<std::string> folders;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    const size_t first = line.find(':');
    const size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string_view group = line.substr(second + 1);
    if (controllers.empty()) AddFolders(root + "/sys/fs/cgroup", group, folders);
    if (IsListed(controller, controllers)) {
      AddFolders(root + "/sys/fs/cgroup/" + std::string(controllers), group, folders);
    }
  }
  return folders;
}

}  // namespace pipeyard::load
