#include "proto/settings/cpu_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "proto/settings/node_role.h"

namespace pipeyard::settings {
namespace {

// As far as Linux can be built for (CONFIG_NR_CPUS of x86-64), and its nodes (CONFIG_NODES_SHIFT
// 6, as everywhere here).
constexpr int kMaxCpu = 8191;
constexpr int kMaxNode = 63;
constexpr std::string_view kNode = "node";
constexpr std::string_view kOfCpus = "%cpus";

Status NoCpus(std::string_view text) {
  return InvalidArgument(
      fmt::format("'{}' names no CPUs; node0, \"0-3,8\", spread, one-per-core, 50%cpus or a node "
                  "role such as dram-nodes was meant",
                  text.substr(0, 60)));
}

// -1 where `text` is no number of 0..max.
int ReadNumber(std::string_view text, int max) {
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  return is_number && value >= 0 && value <= max ? value : -1;
}

// "3" or "0-2". False where the item is neither.
bool AddRange(std::string_view item, std::vector<int>& numbers) {
  const size_t dash = item.find('-');
  const int first = ReadNumber(item.substr(0, dash), kMaxCpu);
  const int last =
      dash == std::string_view::npos ? first : ReadNumber(item.substr(dash + 1), kMaxCpu);
  if (first < 0 || last < first) return false;
  for (int number = first; number <= last; ++number) numbers.push_back(number);
  return true;
}

// All items are nodes, or none is.
bool ReadItems(std::string_view list, CpuText& cpus) {
  cpus.kind = list.starts_with(kNode) ? CpuTextKind::kNodes : CpuTextKind::kCpus;
  while (true) {
    const size_t comma = list.find(',');
    const std::string_view item = list.substr(0, comma);
    if (cpus.kind == CpuTextKind::kNodes) {
      if (!item.starts_with(kNode)) return false;
      const int node = ReadNumber(item.substr(kNode.size()), kMaxNode);
      if (node < 0) return false;
      cpus.numbers.push_back(node);
    } else if (!AddRange(item, cpus.numbers)) {
      return false;
    }
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  std::sort(cpus.numbers.begin(), cpus.numbers.end());
  cpus.numbers.erase(std::unique(cpus.numbers.begin(), cpus.numbers.end()), cpus.numbers.end());
  return true;
}

}  // namespace

Result<CpuText> ParseCpuText(std::string_view text) {
  CpuText cpus;
  if (text.empty()) return cpus;
  if (text == "spread") {
    cpus.kind = CpuTextKind::kSpread;
  } else if (text == "one-per-core") {
    cpus.kind = CpuTextKind::kOnePerCore;
  } else if (IsNodeRole(text)) {
    cpus.kind = CpuTextKind::kNodeRole;
    cpus.role = text;
  } else if (text.ends_with(kOfCpus)) {
    cpus.kind = CpuTextKind::kShare;
    cpus.percent = ReadNumber(text.substr(0, text.size() - kOfCpus.size()), 100);
    if (cpus.percent < 1) return NoCpus(text);
  } else if (!ReadItems(text, cpus)) {
    return NoCpus(text);
  }
  return cpus;
}

Status CheckCpuText(std::string_view text) { return ParseCpuText(text).status(); }

}  // namespace pipeyard::settings
