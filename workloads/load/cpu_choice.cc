#include "workloads/load/cpu_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string>

#include "workloads/numa/affinity.h"

namespace pipeyard::load {
namespace {

using numa::CpuId;
using numa::NodeId;
using settings::CpuTextKind;

Status NoSuchNode(NodeId node, const numa::Topology& topology) {
  return NotFound(
      fmt::format("there is no node {}; nodes {} are there", node, topology.online().ToString()));
}

// The lowest CPU of the core that has `cpu`.
CpuId CoreOf(CpuId cpu, const numa::Topology& topology, const numa::ReadFile& read) {
  if (topology.is_emulated()) return cpu;
  const Result<std::string> text =
      read(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu));
  if (!text.ok()) return cpu;
  const Result<std::vector<int>> siblings = numa::ParseNumberList(*text, numa::kMaxCpu);
  return siblings.ok() && !siblings->empty() ? siblings->front() : cpu;
}

bool IsUsable(CpuId cpu, const numa::Topology& topology) {
  if (topology.is_emulated()) return true;
  const std::vector<CpuId>& usable = topology.host_cpus();
  return std::binary_search(usable.begin(), usable.end(), cpu);
}

std::vector<CpuId> Usable(const std::vector<CpuId>& cpus, const numa::Topology& topology) {
  std::vector<CpuId> usable;
  std::copy_if(cpus.begin(), cpus.end(), std::back_inserter(usable),
               [&](CpuId cpu) { return IsUsable(cpu, topology); });
  return usable;
}

Result<std::vector<CpuId>> CpusOfNodes(const std::vector<NodeId>& nodes,
                                       const numa::Topology& topology) {
  std::vector<CpuId> cpus;
  for (const NodeId id : nodes) {
    const numa::Node* const node = topology.Find(id);
    if (node == nullptr) return NoSuchNode(id, topology);
    const std::vector<CpuId> usable = Usable(node->cpus, topology);
    cpus.insert(cpus.end(), usable.begin(), usable.end());
  }
  if (!cpus.empty()) return cpus;
  return NotFound(fmt::format("no CPU that may be used here belongs to nodes {}",
                              numa::FormatNumberList(nodes)));
}

Result<std::vector<CpuId>> Existing(const std::vector<CpuId>& cpus,
                                    const numa::Topology& topology) {
  for (const CpuId cpu : cpus) {
    if (topology.NodeOfCpu(cpu) < 0) {
      return NotFound(fmt::format("there is no CPU {}; CPUs {} are there", cpu,
                                  numa::FormatNumberList(topology.cpus())));
    }
    if (!IsUsable(cpu, topology)) {
      return NotFound(fmt::format("CPU {} is outside of this process's cpuset, which has {}", cpu,
                                  numa::FormatNumberList(topology.host_cpus())));
    }
  }
  return cpus;
}

// The first of each core, in the order of `cpus`.
std::vector<CpuId> FirstOfCores(const std::vector<CpuId>& cpus, const numa::Topology& topology,
                                const numa::ReadFile& read) {
  std::set<CpuId> cores;
  std::vector<CpuId> firsts;
  for (const CpuId cpu : cpus) {
    if (cores.insert(CoreOf(cpu, topology, read)).second) firsts.push_back(cpu);
  }
  return firsts;
}

// Whole cores first, then their other hardware threads.
std::vector<CpuId> CoresFirst(const std::vector<CpuId>& cpus, const numa::Topology& topology,
                              const numa::ReadFile& read) {
  std::vector<CpuId> ordered = FirstOfCores(cpus, topology, read);
  const std::set<CpuId> firsts(ordered.begin(), ordered.end());
  std::copy_if(cpus.begin(), cpus.end(), std::back_inserter(ordered),
               [&](CpuId cpu) { return !firsts.contains(cpu); });
  return ordered;
}

// One of each node that has any left, over and over.
std::vector<CpuId> Spread(const numa::Topology& topology, const numa::ReadFile& read) {
  std::vector<std::vector<CpuId>> of_nodes;
  for (const numa::Node& node : topology.nodes()) {
    of_nodes.push_back(CoresFirst(Usable(node.cpus, topology), topology, read));
  }
  const size_t num_cpus = Usable(topology.cpus(), topology).size();
  std::vector<CpuId> cpus;
  for (size_t round = 0; cpus.size() < num_cpus; ++round) {
    for (const std::vector<CpuId>& of_node : of_nodes) {
      if (round < of_node.size()) cpus.push_back(of_node[round]);
    }
  }
  return cpus;
}

Result<std::vector<CpuId>> Choose(const settings::CpuText& text, const numa::Topology& topology,
                                  const numa::ReadFile& read) {
  switch (text.kind) {
    case CpuTextKind::kInherited:
      return std::vector<CpuId>();
    case CpuTextKind::kCpus:
      return Existing(text.numbers, topology);
    case CpuTextKind::kNodes:
      return CpusOfNodes(text.numbers, topology);
    case CpuTextKind::kNodeRole: {
      PIPEYARD_ASSIGN_OR_RETURN(const numa::NodeMask nodes, NodesOfRole(text.role, topology));
      return CpusOfNodes(nodes.Nodes(), topology);
    }
    case CpuTextKind::kSpread:
      return Spread(topology, read);
    case CpuTextKind::kOnePerCore:
      return FirstOfCores(Usable(topology.cpus(), topology), topology, read);
    case CpuTextKind::kShare: {
      std::vector<CpuId> cpus = Usable(topology.cpus(), topology);
      const size_t wanted = cpus.size() * static_cast<size_t>(text.percent) / 100;
      cpus.resize(std::max<size_t>(1, wanted));
      return cpus;
    }
  }
  return Internal("a kind of placement.cpus that nobody knows");
}

}  // namespace

Result<CpuChoice> ChooseCpus(const settings::CpuText& text, const numa::Topology& topology,
                             const numa::ReadFile& read) {
  PIPEYARD_ASSIGN_OR_RETURN(std::vector<CpuId> cpus, Choose(text, topology, read));
  return CpuChoice{std::move(cpus),
                   text.kind == CpuTextKind::kSpread || text.kind == CpuTextKind::kOnePerCore};
}

Result<numa::NodeMask> NodesOfRole(std::string_view role, const numa::Topology& topology) {
  numa::NodeMask nodes;
  const numa::Node* nearest = nullptr;
  int nearest_distance = 0;
  const auto first = std::find_if(topology.nodes().begin(), topology.nodes().end(),
                                  [](const numa::Node& node) { return !node.cpus.empty(); });
  for (const numa::Node& node : topology.nodes()) {
    if (!node.has_memory()) continue;
    const bool is_expander = node.cpus.empty();
    if (role == "all-nodes" || (role == "dram-nodes" && !is_expander) ||
        (role == "cxl-nodes" && is_expander)) {
      nodes.Add(node.id);
    }
    if (role != "nearest-cxl" || !is_expander || first == topology.nodes().end()) continue;
    const int distance = topology.Distance(first->id, node.id);
    if (nearest == nullptr || distance < nearest_distance) {
      nearest = &node;
      nearest_distance = distance;
    }
  }
  if (nearest != nullptr) nodes.Add(nearest->id);
  if (!nodes.IsEmpty()) return nodes;
  return NotFound(fmt::format("none of nodes {} is one of {}", topology.online().ToString(), role));
}

}  // namespace pipeyard::load
