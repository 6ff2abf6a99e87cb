#include "controller/spec/policy_nodes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <variant>

#include "proto/settings/allocator_text.h"
#include "proto/settings/policy_text.h"
#include "proto/settings/structure.h"

namespace pipeyard::spec {
namespace {

constexpr std::string_view kTopology = "engine.topology";
constexpr std::string_view kAllocator = "allocator";
constexpr std::array<std::string_view, 3> kNamingNodes{"engine.policy", "placement.memory",
                                                       kAllocator};

struct MemoryNodes {
  std::set<int> all;
  std::set<int> with_memory;
};

// nullopt for the host's.
std::optional<MemoryNodes> NodesOf(const std::string& topology) {
  const auto read = settings::ReadTopologySetting(topology);
  if (!read.ok() || !read->has_value()) return std::nullopt;
  MemoryNodes nodes;
  for (const settings::TopologyNode& node : (*read)->nodes) {
    const int id = static_cast<int>(nodes.all.size());
    nodes.all.insert(id);
    if (node.memory_bytes > 0) nodes.with_memory.insert(id);
  }
  return nodes;
}

// The level that gives `name` this value; nullptr where it is the default.
const Level* FindLevel(const Draft& draft, std::string_view name, const settings::Value& value) {
  if (const Factor* const factor = draft.FindFactor(name)) {
    for (const Level& level : factor->levels) {
      if (level.value == value) return &level;
    }
  }
  const Setting* const setting = draft.FindSetting(name);
  return setting != nullptr && setting->level.value == value ? &setting->level : nullptr;
}

std::string NodeWords(const std::set<int>& nodes) {
  return fmt::format("{} {}", nodes.size() == 1 ? "node" : "nodes", fmt::join(nodes, ", "));
}

Result<std::set<int>> NodesNamed(std::string_view name, const std::string& text) {
  if (name != kAllocator) return settings::ReadPolicyNodes(text);
  PIPEYARD_ASSIGN_OR_RETURN(const std::optional<int> node, settings::ReadAgedNode(text));
  return node ? std::set<int>{*node} : std::set<int>();
}

void CheckPolicy(std::string_view name, const Level& policy, const Level& topology,
                 const MemoryNodes& nodes, Problems& problems) {
  const auto named = NodesNamed(name, std::get<std::string>(policy.value));
  if (!named.ok()) return;
  std::set<int> absent;
  std::set<int> memoryless;
  for (const int node : *named) {
    if (!nodes.all.contains(node)) {
      absent.insert(node);
    } else if (!nodes.with_memory.contains(node)) {
      memoryless.insert(node);
    }
  }
  const std::string where = topology.place.line == 0
                                ? std::string(kTopology)
                                : fmt::format("{} in line {}", kTopology, topology.place.line);
  const auto report = [&](const std::set<int>& wrong, std::string_view what) {
    if (wrong.empty()) return;
    problems.Error(policy.place,
                   fmt::format("{}: '{}' names {}, which {} {}", name, policy.text,
                               NodeWords(wrong), where, what),
                   fmt::format("it has memory on {}", NodeWords(nodes.with_memory)));
  };
  report(absent, "lacks");
  report(memoryless, "has without memory");
}

}  // namespace

void CheckPolicyNodes(const Draft& draft, Problems& problems) {
  std::map<std::string, std::optional<MemoryNodes>> topologies;
  std::set<std::tuple<std::string_view, std::string, std::string>> seen;
  for (const SweepVariant& variant : draft.sweep.variants) {
    const auto& values = variant.variant.values;
    const auto given = values.find(std::string(kTopology));
    if (given == values.end()) continue;
    const Level* const topology = FindLevel(draft, kTopology, given->second);
    if (topology == nullptr) continue;
    const std::string& json = variant.variant.Json(kTopology);
    const auto [nodes, is_new] = topologies.try_emplace(json);
    if (is_new) nodes->second = NodesOf(json);
    if (!nodes->second) continue;
    for (const std::string_view name : kNamingNodes) {
      const auto value = values.find(std::string(name));
      if (value == values.end()) continue;
      const Level* const policy = FindLevel(draft, name, value->second);
      if (policy == nullptr || !seen.emplace(name, policy->text, json).second) continue;
      CheckPolicy(name, *policy, *topology, *nodes->second, problems);
    }
  }
}

}  // namespace pipeyard::spec
