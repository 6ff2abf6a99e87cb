#include "workloads/numa/topology.h"

#include <algorithm>
#include <set>

namespace pipeyard::numa {
namespace {

Status CheckDistances(const std::vector<Node>& nodes) {
  for (size_t i = 0; i < nodes.size(); ++i) {
    const std::string name = "node " + std::to_string(nodes[i].id);
    if (nodes[i].distances.size() != nodes.size()) {
      return InvalidArgument(name + ": " + std::to_string(nodes[i].distances.size()) +
                             " distances for " + std::to_string(nodes.size()) + " nodes");
    }
    for (size_t j = 0; j < nodes.size(); ++j) {
      const int distance = nodes[i].distances[j];
      const bool is_possible =
          i == j ? distance == kLocalDistance : distance > kLocalDistance && distance <= 255;
      if (!is_possible) {
        return InvalidArgument(name + ": distance " + std::to_string(distance) + " to node " +
                               std::to_string(nodes[j].id) +
                               ": must be 10 to itself, 11 to 255 to others");
      }
    }
  }
  return Status::Ok();
}

}  // namespace

Result<Topology> Topology::Make(std::vector<Node> nodes, std::vector<CpuId> host_cpus,
                                bool is_emulated) {
  if (nodes.empty()) return InvalidArgument("topology: no node");
  if (host_cpus.empty()) return InvalidArgument("topology: no CPU to run on");
  Topology topology;
  std::set<CpuId> cpus;
  for (const Node& node : nodes) {
    const std::string name = "topology: node " + std::to_string(node.id);
    if (node.id < 0 || node.id >= kMaxNodes) {
      return InvalidArgument(name + ": numbers from 0 to " + std::to_string(kMaxNodes - 1));
    }
    if (topology.online_.Contains(node.id)) return InvalidArgument(name + ": named twice");
    if (node.memory_bytes < 0) return InvalidArgument(name + ": memory below 0");
    topology.online_.Add(node.id);
    if (node.has_memory()) topology.memory_nodes_.Add(node.id);
    for (const CpuId cpu : node.cpus) {
      if (!cpus.insert(cpu).second) {
        return InvalidArgument(name + ": CPU " + std::to_string(cpu) + " is in another node too");
      }
    }
  }
  if (topology.memory_nodes_.IsEmpty()) return InvalidArgument("topology: no node has memory");
  if (cpus.empty()) return InvalidArgument("topology: no node has CPUs");
  if (Status status = CheckDistances(nodes); !status.ok()) return status.WithContext("topology");
  topology.nodes_ = std::move(nodes);
  topology.host_cpus_ = std::move(host_cpus);
  topology.cpus_.assign(cpus.begin(), cpus.end());
  topology.is_emulated_ = is_emulated;
  return topology;
}

size_t Topology::IndexOf(NodeId id) const {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].id == id) return i;
  }
  return nodes_.size();
}

const Node* Topology::Find(NodeId id) const {
  const size_t index = IndexOf(id);
  return index < nodes_.size() ? &nodes_[index] : nullptr;
}

NodeId Topology::NodeOfCpu(CpuId cpu) const {
  for (const Node& node : nodes_) {
    if (std::binary_search(node.cpus.begin(), node.cpus.end(), cpu)) return node.id;
  }
  return -1;
}

CpuId Topology::HostCpuOf(CpuId cpu) const {
  return is_emulated_ ? host_cpus_[static_cast<size_t>(cpu) % host_cpus_.size()] : cpu;
}

int Topology::Distance(NodeId from, NodeId to) const {
  return nodes_[IndexOf(from)].distances[IndexOf(to)];
}

std::vector<NodeId> Topology::FallbackOrder(NodeId node) const {
  std::vector<std::pair<int, NodeId>> others;
  std::vector<NodeId> order;
  for (const Node& other : nodes_) {
    if (!other.has_memory()) continue;
    if (other.id == node) {
      order.push_back(node);
      continue;
    }
    const int cost =
        Distance(node, other.id) + (other.id < node ? 1 : 0) + (other.cpus.empty() ? 0 : 1);
    others.emplace_back(cost, other.id);
  }
  std::sort(others.begin(), others.end());
  for (const auto& [cost, id] : others) order.push_back(id);
  return order;
}

NodeId Topology::LocalMemoryNode(CpuId cpu) const {
  const NodeId node = NodeOfCpu(cpu);
  return FallbackOrder(node < 0 ? nodes_.front().id : node).front();
}

Status Topology::CheckMemoryMask(NodeMask mask) const {
  if (mask.IsEmpty()) return InvalidArgument("no node named");
  if (const NodeMask absent = mask.Minus(online_); !absent.IsEmpty()) {
    return InvalidArgument("node " + absent.ToString() +
                           " is not online (online: " + online_.ToString() + ")");
  }
  if (const NodeMask bare = mask.Minus(memory_nodes_); !bare.IsEmpty()) {
    return InvalidArgument("node " + bare.ToString() +
                           " has no memory (with memory: " + memory_nodes_.ToString() + ")");
  }
  return Status::Ok();
}

}  // namespace pipeyard::numa
