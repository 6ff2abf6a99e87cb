#include "workloads/numa/topology.h"

#include <algorithm>
#include <set>
#include <utility>

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

// As the kernel's build_zonelists() does for one node after the other: among nodes that are equally
// good the one that fewer nodes before had as the first of its distance. By index of node.
std::vector<std::vector<NodeId>> FallbackOrders(const std::vector<Node>& nodes) {
  std::vector<int> loads(nodes.size(), 0);
  std::vector<std::vector<NodeId>> orders;
  for (size_t home = 0; home < nodes.size(); ++home) {
    const auto cost = [&](size_t i) {
      const Node& node = nodes[i];
      const int farther = (node.id < nodes[home].id ? 1 : 0) + (node.cpus.empty() ? 0 : 1);
      return std::pair(nodes[home].distances[i] + farther, loads[i]);
    };
    std::vector<NodeId> order;
    std::vector<size_t> left;
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (!nodes[i].has_memory()) continue;
      if (i == home) {
        order.push_back(nodes[i].id);
      } else {
        left.push_back(i);
      }
    }
    int previous_distance = kLocalDistance;
    while (!left.empty()) {
      const auto best = std::min_element(left.begin(), left.end(),
                                         [&](size_t a, size_t b) { return cost(a) < cost(b); });
      const int distance = nodes[home].distances[*best];
      if (distance != previous_distance) loads[*best] += 1;
      previous_distance = distance;
      order.push_back(nodes[*best].id);
      left.erase(best);
    }
    orders.push_back(std::move(order));
  }
  return orders;
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
  topology.fallback_orders_ = FallbackOrders(nodes);
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
  return fallback_orders_[IndexOf(node)];
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
