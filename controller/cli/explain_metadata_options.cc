#include <fmt/format.h>

#include <bit>
#include <charconv>

#include "base/units.h"
#include "controller/cli/explain_metadata.h"
#include "controller/cli/explain_options.h"
#include "workloads/memory/weight_table.h"

namespace pipeyard::cli {
namespace {

// As large as F_SETPIPE_SZ takes.
constexpr uint64_t kMaxRingPagesBytes = uint64_t{1} << 31;

// "10,21/21,10": rows by '/'. Empty for "".
Result<std::vector<std::vector<int>>> ReadDistances(const std::string& text) {
  std::vector<std::vector<int>> rows;
  if (text.empty()) return rows;
  rows.emplace_back();
  const char* at = text.data();
  const char* const last = at + text.size();
  for (;;) {
    int distance = 0;
    const auto [end, error] = std::from_chars(at, last, distance);
    if (error != std::errc() || (end != last && *end != ',' && *end != '/')) {
      return InvalidArgument(fmt::format(
          "--distances '{}': not rows of numbers, such as 10,21/21,10", text.substr(0, 40)));
    }
    rows.back().push_back(distance);
    if (end == last) return rows;
    if (*end == '/') rows.emplace_back();
    at = end + 1;
  }
}

Result<numa::Topology> ReadTopologyOption(const options::Parsed& parsed,
                                          const numa::ReadFile& files) {
  if (!parsed.Has("nodes")) {
    if (parsed.Has("distances"))
      return InvalidArgument("--distances needs --nodes: how many nodes it describes");
    Result<numa::Topology> host = numa::ReadTopology(files);
    if (host.ok()) return host;
    return host.status().WithContext(
        "this machine's nodes cannot be read (--nodes N describes a machine instead)");
  }
  PIPEYARD_ASSIGN_OR_RETURN(const uint64_t count,
                            NumberOption(parsed, "nodes", 1, numa::kMaxNodes, 1));
  PIPEYARD_ASSIGN_OR_RETURN(std::vector<std::vector<int>> distances,
                            ReadDistances(parsed.Get("distances")));
  std::vector<numa::Node> nodes(count);
  std::vector<numa::CpuId> cpus;
  if (!distances.empty() && distances.size() != count) {
    return InvalidArgument(
        fmt::format("--distances has {} rows and --nodes is {}", distances.size(), count));
  }
  for (size_t i = 0; i < count; ++i) {
    const int id = static_cast<int>(i);
    cpus.push_back(id);
    nodes[i] = {.id = id, .cpus = {id}, .memory_bytes = int64_t{1} << 30, .distances = {}};
    if (!distances.empty()) {
      nodes[i].distances = distances[i];
      continue;
    }
    nodes[i].distances.assign(count, numa::kDefaultRemoteDistance);
    nodes[i].distances[i] = numa::kLocalDistance;
  }
  Result<numa::Topology> topology =
      numa::Topology::Make(std::move(nodes), std::move(cpus), /*is_emulated=*/false);
  if (!topology.ok()) return topology.status().WithContext("--distances");
  return topology;
}

// The node whose CPU creates the pipe: --cpu-node, else the lowest with a CPU.
Result<numa::NodeId> ReadCpuNode(const options::Parsed& parsed, const numa::Topology& topology) {
  numa::NodeMask with_cpus;
  for (const numa::Node& node : topology.nodes()) {
    if (!node.cpus.empty()) with_cpus.Add(node.id);
  }
  const auto first = static_cast<uint64_t>(with_cpus.Nodes().front());
  PIPEYARD_ASSIGN_OR_RETURN(const uint64_t node,
                            NumberOption(parsed, "cpu-node", 0, numa::kMaxNodes - 1, first));
  const auto id = static_cast<numa::NodeId>(node);
  if (!with_cpus.Contains(id)) {
    return InvalidArgument(
        fmt::format("--cpu-node {}: no node with CPUs; those are {}", node, with_cpus.ToString()));
  }
  return id;
}

Result<uint64_t> ReadPageBytes(const options::Parsed& parsed) {
  const std::string& text = parsed.Get("page-bytes");
  const Result<int64_t> bytes = ParseBytes(text);
  if (!bytes.ok()) return bytes.status().WithContext("--page-bytes");
  if (*bytes < 4096 || *bytes > 65536 || !std::has_single_bit(static_cast<uint64_t>(*bytes))) {
    return InvalidArgument(
        fmt::format("--page-bytes '{}': not one of 4KiB, 8KiB, 16KiB, 32KiB, 64KiB", text));
  }
  return static_cast<uint64_t>(*bytes);
}

Result<uint64_t> ReadSlots(const options::Parsed& parsed, uint64_t page_bytes) {
  PIPEYARD_ASSIGN_OR_RETURN(
      const uint64_t slots,
      NumberOption(parsed, "slots", 1, kMaxRingPagesBytes / page_bytes, kCreationSlots));
  if (!std::has_single_bit(slots)) {
    return InvalidArgument(
        fmt::format("--slots {}: rings are powers of two; a pipe asked for that many gets {}",
                    slots, std::bit_ceil(slots)));
  }
  return slots;
}

Result<memory::Policy> ReadPolicyOption(const options::Parsed& parsed,
                                        const numa::Topology& topology) {
  Result<memory::Policy> policy = memory::ParsePolicy(parsed.Get("policy"));
  if (!policy.ok()) return policy.status().WithContext("--policy");
  if (policy->nodes.IsEmpty()) return policy;
  if (const Status nodes = topology.CheckMemoryMask(policy->nodes); !nodes.ok()) {
    return nodes.WithContext(
        fmt::format("--policy {} (--nodes N describes a machine with more nodes)",
                    parsed.Get("policy").substr(0, 60)));
  }
  return policy;
}

}  // namespace

Result<MetadataQuestion> ReadMetadataQuestion(const options::Parsed& parsed,
                                              const numa::ReadFile& files) {
  PIPEYARD_ASSIGN_OR_RETURN(const uint64_t page_bytes, ReadPageBytes(parsed));
  PIPEYARD_ASSIGN_OR_RETURN(const uint64_t slots, ReadSlots(parsed, page_bytes));
  PIPEYARD_ASSIGN_OR_RETURN(numa::Topology topology, ReadTopologyOption(parsed, files));
  PIPEYARD_ASSIGN_OR_RETURN(const memory::Policy policy, ReadPolicyOption(parsed, topology));
  PIPEYARD_ASSIGN_OR_RETURN(const memory::InterleaveState start, StateOption(parsed));
  PIPEYARD_ASSIGN_OR_RETURN(const numa::NodeId cpu_node, ReadCpuNode(parsed, topology));
  std::vector<memory::MetadataPlacement> placements = {memory::MetadataPlacement::kAnyNode,
                                                       memory::MetadataPlacement::kPolicyNode,
                                                       memory::MetadataPlacement::kStrictPolicy};
  if (parsed.Has("placement")) {
    Result<memory::MetadataPlacement> placement =
        memory::ParseMetadataPlacement(parsed.Get("placement"));
    if (!placement.ok()) return placement.status().WithContext("--placement");
    placements = {*placement};
  }
  memory::WeightTable host_weights;
  const bool needs_host_weights =
      policy.mode == numa::PolicyMode::kWeightedInterleave && !policy.has_weights;
  if (needs_host_weights && !parsed.Has("nodes")) {
    Result<memory::HostWeights> weights = memory::ReadHostWeights(files, topology.memory_nodes());
    if (!weights.ok()) {
      return weights.status().WithContext(
          "this machine's weights cannot be read (--policy weighted-interleave:N=W,.. names them)");
    }
    host_weights = weights->table;
  }
  const numa::NodeId local = topology.LocalMemoryNode(topology.Find(cpu_node)->cpus.front());
  return MetadataQuestion{.slots = slots,
                          .page_bytes = page_bytes,
                          .policy = policy,
                          .start = start,
                          .placements = std::move(placements),
                          .topology = std::move(topology),
                          .cpu_node = cpu_node,
                          .local = local,
                          .host_weights = host_weights};
}

}  // namespace pipeyard::cli
