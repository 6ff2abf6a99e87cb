#include "workloads/load/node_statistics.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <memory>

namespace pipeyard::load {
namespace {

// As workloads/numa: a machine with higher node numbers is refused there.
constexpr int kMaxNodes = 64;
constexpr const char* kWanted[] = {"numa_hit", "numa_miss", "numa_foreign"};

void AddNode(const std::string& path, int node, Counts& counts) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "re"), std::fclose);
  if (file == nullptr) return;
  char line[128];
  while (std::fgets(line, sizeof(line), file.get()) != nullptr) {
    char name[64];
    long long value = 0;
    if (std::sscanf(line, "%63s %lld", name, &value) != 2) continue;
    for (const char* wanted : kWanted) {
      if (std::strcmp(name, wanted) == 0) {
        counts.push_back({fmt::format("node{}_{}", node, name), "count", value});
      }
    }
  }
}

}  // namespace

Counts ReadNodeStatistics(const std::string& root) {
  Counts counts;
  for (int node = 0; node < kMaxNodes; ++node) {
    AddNode(fmt::format("{}/node{}/numastat", root, node), node, counts);
  }
  return counts;
}

}  // namespace pipeyard::load
