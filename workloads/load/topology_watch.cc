#include "workloads/load/topology_watch.h"

#include <utility>

#include "workloads/numa/topology.h"

namespace pipeyard::load {
namespace {

// Of a result: a machine that comes up block by block announces hundreds.
constexpr size_t kMaxText = 200;

Result<numa::NodeMask> MemoryNodesNow(const Surroundings& surroundings) {
  if (surroundings.memory_nodes) return surroundings.memory_nodes();
  PIPEYARD_ASSIGN_OR_RETURN(const numa::Topology topology, numa::ReadTopology(numa::HostFiles()));
  return topology.memory_nodes();
}

}  // namespace

TopologyWatch::TopologyWatch(const Surroundings& surroundings, Target target)
    : surroundings_(surroundings), target_(std::move(target)) {
  if (surroundings_.hotplug == nullptr) return;
  if (const Result<numa::NodeMask> nodes = MemoryNodesNow(surroundings_); nodes.ok()) {
    known_nodes_ = *nodes;
  }
}

Watch TopologyWatch::AsWatch() {
  if (surroundings_.hotplug == nullptr) return {};
  return {surroundings_.hotplug->fd(), [this] { Look(); }};
}

void TopologyWatch::Look() {
  if (surroundings_.hotplug == nullptr) return;
  const uint64_t before = target_.fastpath_pages();
  const std::vector<numa::HotplugEvent> events = surroundings_.hotplug->Read();
  if (events.empty()) return;
  FindNewNodes();
  fastpath_pages_ += target_.fastpath_pages() - before;
  for (const numa::HotplugEvent& event : events) {
    if (announced_.size() > kMaxText) return;
    announced_ += (announced_.empty() ? "" : ", ") + event.ToString();
  }
}

void TopologyWatch::FindNewNodes() {
  const Result<numa::NodeMask> nodes = MemoryNodesNow(surroundings_);
  if (!nodes.ok()) return;
  for (const numa::NodeId node : nodes->Minus(known_nodes_).Nodes()) target_.online_node(node);
  known_nodes_ = *nodes;
}

Judgement TopologyWatch::Judge() const {
  if (announced_.empty()) return {};
  return Void("topology_changed",
              "CPUs or memory came or went while the attempt ran: " + announced_);
}

Counts TopologyWatch::counts() const {
  if (announced_.empty()) return {};
  return {{"fastpath_pages_after_online", "count", static_cast<int64_t>(fastpath_pages_)}};
}

}  // namespace pipeyard::load
