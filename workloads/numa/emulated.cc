#include "workloads/numa/topology.h"

namespace pipeyard::numa {

Result<Topology> MakeEmulated(const EmulatedTopology& description, const Topology& host) {
  const size_t num_nodes = description.nodes.size();
  if (num_nodes > static_cast<size_t>(kMaxNodes)) {
    return InvalidArgument("topology: " + std::to_string(num_nodes) + " nodes, at most " +
                           std::to_string(kMaxNodes));
  }
  if (!description.distances.empty() && description.distances.size() != num_nodes) {
    return InvalidArgument("topology: distances have " +
                           std::to_string(description.distances.size()) + " rows for " +
                           std::to_string(num_nodes) + " nodes");
  }
  std::vector<Node> nodes;
  CpuId next_cpu = 0;
  for (size_t i = 0; i < num_nodes; ++i) {
    const EmulatedNode& given = description.nodes[i];
    if (given.cpus < 0 || given.cpus > kMaxVirtualCpus - next_cpu) {
      return InvalidArgument("topology: node " + std::to_string(i) + ": " +
                             std::to_string(given.cpus) + " CPUs, 0 to " +
                             std::to_string(kMaxVirtualCpus) + " over all nodes");
    }
    Node node;
    node.id = static_cast<NodeId>(i);
    node.memory_bytes = given.memory_bytes;
    for (int cpu = 0; cpu < given.cpus; ++cpu) node.cpus.push_back(next_cpu++);
    if (description.distances.empty()) {
      node.distances.assign(num_nodes, kDefaultRemoteDistance);
      node.distances[i] = kLocalDistance;
    } else {
      node.distances = description.distances[i];
    }
    nodes.push_back(std::move(node));
  }
  return Topology::Make(std::move(nodes), host.host_cpus(), /*is_emulated=*/true);
}

}  // namespace pipeyard::numa
