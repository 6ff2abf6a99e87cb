// Topology: nodes with their CPUs, memory and distances, read from the host or described by a sweep
// (emulated).
//
// A node may lack CPUs (memory expanders) or memory (then its CPUs use the nearest node that has
// some). On an emulated topology nodes and CPUs are virtual: nothing is bound, and virtual CPU v
// runs on host CPU (v mod online).
//
// It is a picture taken once, not a view that follows hotplug.
// Thread safety: immutable after Make().
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "workloads/numa/node_mask.h"

namespace pipeyard::numa {

// As the ACPI tables use it (SLIT): 10 is local.
inline constexpr int kLocalDistance = 10;
inline constexpr int kDefaultRemoteDistance = 20;

struct Node {
  NodeId id = 0;
  std::vector<CpuId> cpus;     // ascending; virtual ones on an emulated topology
  int64_t memory_bytes = 0;    // 0: memoryless
  std::vector<int> distances;  // to every node, in the order of Topology::nodes()

  bool has_memory() const { return memory_bytes > 0; }
};

class Topology {
 public:
  // `nodes` ascend by id. `host_cpus` are the CPUs that threads can run on, ascending.
  // Errors: kInvalidArgument: no node, no memory anywhere, no CPU, a CPU in two nodes, a distance
  // matrix of the wrong shape, or distances below 10, a distance to itself other than 10, or none
  // larger than local to another node.
  static Result<Topology> Make(std::vector<Node> nodes, std::vector<CpuId> host_cpus,
                               bool is_emulated);

  const std::vector<Node>& nodes() const { return nodes_; }
  bool is_emulated() const { return is_emulated_; }
  NodeMask online() const { return online_; }
  NodeMask memory_nodes() const { return memory_nodes_; }
  // All CPUs of all nodes, ascending: those that a worker can be placed on.
  const std::vector<CpuId>& cpus() const { return cpus_; }
  // CPUs that threads can really run on.
  const std::vector<CpuId>& host_cpus() const { return host_cpus_; }

  // nullptr where there is no such node.
  const Node* Find(NodeId id) const;
  // -1 where no node has this CPU.
  NodeId NodeOfCpu(CpuId cpu) const;
  // The CPU of the host that `cpu` runs on: itself, or cpu mod online where emulated.
  CpuId HostCpuOf(CpuId cpu) const;
  // Precondition: both are nodes of this topology.
  int Distance(NodeId from, NodeId to) const;

  // Nodes with memory in the order in which an allocation that prefers `node` tries them: itself
  // first (where it has memory), then repeatedly the unused node with the smallest distance; a node
  // below ours counts 1 farther, one with CPUs 1 farther. Ties go to the node that fewer lower
  // nodes had as the first of its distance, then to the lower id. Source: kernel-mechanisms.md B4.
  // A kernel that was booted knows no CPUs yet when it makes its lists, so that until memory is
  // plugged or unplugged nodes with CPUs are no farther there.
  std::vector<NodeId> FallbackOrder(NodeId node) const;
  // The node that a CPU's local allocations come from: its own, or the nearest with memory.
  NodeId LocalMemoryNode(CpuId cpu) const;

  // Errors: kInvalidArgument names the nodes of `mask` that are not online or have no memory. The
  // kernel accepts such masks silently, so that interleave over 0,1 on a one-node machine would
  // appear to work.
  Status CheckMemoryMask(NodeMask mask) const;

 private:
  Topology() = default;
  size_t IndexOf(NodeId id) const;

  std::vector<Node> nodes_;
  std::vector<std::vector<NodeId>> fallback_orders_;  // by index of nodes_
  std::vector<CpuId> host_cpus_;
  std::vector<CpuId> cpus_;
  NodeMask online_;
  NodeMask memory_nodes_;
  bool is_emulated_ = false;
};

// Returns the content of a file, or kNotFound; tests inject a tree.
using ReadFile = std::function<Result<std::string>(const std::string& path)>;
// The machine's files.
ReadFile HostFiles();

// Reads /sys/devices/system/node and /sys/devices/system/cpu. A kernel without NUMA, or a container
// that hides the node folder, is one node 0 with all online CPUs and the memory of /proc/meminfo.
// Absent distances are 10 and 20. Errors: kInvalidArgument names the file and what it holds where
// it holds nonsense; kUnavailable where nothing can be read.
Result<Topology> ReadTopology(const ReadFile& read);

// Virtual CPUs of an emulated topology, over all its nodes: beyond any machine, small enough that a
// typing error costs no memory, and with one to spare in 16 bits, for nobody.
constexpr int kMaxVirtualCpus = 65535;

// engine.topology of a sweep.
struct EmulatedNode {
  int cpus = 0;  // how many virtual CPUs
  int64_t memory_bytes = 0;
};
struct EmulatedTopology {
  std::vector<EmulatedNode> nodes;          // node i is the i-th
  std::vector<std::vector<int>> distances;  // empty: 10 and 20
};
// Virtual CPUs are numbered through the nodes in order. `host` gives the CPUs that they really run
// on. Errors: as Topology::Make().
Result<Topology> MakeEmulated(const EmulatedTopology& description, const Topology& host);

}  // namespace pipeyard::numa
