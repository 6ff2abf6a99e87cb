#include "workloads/load/memory_limit.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <string_view>

#include "base/units.h"
#include "workloads/load/limit_files.h"

namespace pipeyard::load {
namespace {

// How one version of cgroups names its files.
struct CgroupFiles {
  const char* limit;
  const char* usage;
  // In memory.stat; version 1 counts the groups below only in total_*.
  const char* active_file;
  const char* inactive_file;
};
constexpr CgroupFiles kVersions[] = {
    {"/memory.max", "/memory.current", "active_file", "inactive_file"},
    {"/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_active_file",
     "total_inactive_file"}};

// The number after `name` in a file of lines "NAME NUMBER" or "NAME: NUMBER".
std::optional<int64_t> FindField(const std::string& text, std::string_view name) {
  std::istringstream lines(text);
  std::string field;
  int64_t value = 0;
  std::string rest;
  while (lines >> field >> value) {
    std::getline(lines, rest);
    if (field == name) return value;
  }
  return std::nullopt;
}

std::optional<int64_t> AvailableIn(const std::string& folder, const CgroupFiles& files) {
  const std::optional<int64_t> limit = ReadNumber(folder + files.limit);
  const std::optional<int64_t> usage = ReadNumber(folder + files.usage);
  if (!limit || !usage) return std::nullopt;
  const std::string stat = ReadText(folder + "/memory.stat");
  const int64_t droppable = FindField(stat, files.active_file).value_or(0) +
                            FindField(stat, files.inactive_file).value_or(0);
  return std::max<int64_t>(*limit - std::max<int64_t>(*usage - droppable, 0), 0);
}

}  // namespace

std::vector<MemoryLimit> ReadMemoryLimits(const std::string& root) {
  constexpr int64_t kKibibyte = 1024;
  std::vector<MemoryLimit> limits;
  if (const auto kibibytes = FindField(ReadText(root + "/proc/meminfo"), "MemAvailable:")) {
    limits.push_back({"MemAvailable", *kibibytes * kKibibyte});
  }
  for (const std::string& folder : CgroupFolders(root, "memory")) {
    for (const CgroupFiles& files : kVersions) {
      const std::optional<int64_t> available = AvailableIn(folder, files);
      if (available) limits.push_back({"the memory cgroup's limit", *available});
    }
  }
  return limits;
}

Judgement TakeMemory(int64_t bytes, const std::string& purpose, std::vector<MemoryLimit>& limits) {
  for (const MemoryLimit& limit : limits) {
    if (bytes <= limit.available_bytes) continue;
    return NotApplicable("memory_limit", fmt::format("{} leaves {}, and {} are needed for {}",
                                                     limit.name, FormatBytes(limit.available_bytes),
                                                     FormatBytes(bytes), purpose));
  }
  for (MemoryLimit& limit : limits) {
    limit.available_bytes -= bytes;
    limit.name += " beside " + purpose;
  }
  return {};
}

}  // namespace pipeyard::load
