#include "workloads/load/kernel_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <sstream>
#include <utility>

#include "workloads/load/limit_files.h"

namespace pipeyard::load {
namespace {

using numa::PolicyMode;

bool IsInterleaving(PolicyMode mode) {
  return mode == PolicyMode::kInterleave || mode == PolicyMode::kWeightedInterleave;
}

int64_t WeightOf(const KernelPolicy& policy, numa::NodeId node) {
  return policy.policy.mode == PolicyMode::kWeightedInterleave ? policy.weights[node] : 1;
}

int64_t PagesOfRound(const KernelPolicy& policy) {
  int64_t pages = 0;
  for (const numa::NodeId node : policy.policy.nodes.Nodes()) pages += WeightOf(policy, node);
  return pages;
}

struct PagesAstray {
  int64_t outside = 0;  // of the policy's nodes
  int64_t surplus = 0;  // on a node that others were due on
};

PagesAstray CountAstray(const KernelPolicy& policy, const std::map<numa::NodeId, int64_t>& pages,
                        int64_t total) {
  PagesAstray astray;
  for (const auto& [node, count] : pages) {
    if (!policy.policy.nodes.Contains(node)) {
      astray.outside += count;
    } else if (IsInterleaving(policy.policy.mode)) {
      const int64_t due = total * WeightOf(policy, node) / PagesOfRound(policy);
      astray.surplus += std::max<int64_t>(count - due, 0);
    }
  }
  return astray;
}

// Of "Node 0 MemFree:  3470420 kB" lines, those that a new page can be had from.
std::optional<int64_t> AvailableOn(const std::string& meminfo) {
  constexpr int64_t kKibibyte = 1024;
  std::istringstream lines(meminfo);
  std::string node;
  std::string id;
  std::string field;
  int64_t kibibytes = 0;
  std::string rest;
  std::optional<int64_t> available;
  while (lines >> node >> id >> field >> kibibytes) {
    std::getline(lines, rest);
    if (field == "MemFree:" || field == "Active(file):" || field == "Inactive(file):") {
      available = available.value_or(0) + kibibytes * kKibibyte;
    }
  }
  return available;
}

}  // namespace

Judgement ReadKernelPolicy(const std::string& text, const numa::Topology& topology,
                           const memory::HostWeights& host, KernelPolicy& policy) {
  policy = {};
  policy.weights = host.table;
  if (text.empty()) return {};
  Result<memory::Policy> parsed = memory::ParsePolicy(text);
  if (!parsed.ok()) return Failed("internal", "placement.memory: " + parsed.status().message());
  policy.policy = std::move(*parsed);
  if (policy.policy.nodes.IsEmpty()) return {};
  if (const Status online = topology.CheckMemoryMask(policy.policy.nodes); !online.ok()) {
    return NotApplicable("no_such_node", "placement.memory " + text + ": " + online.message());
  }
  if (!policy.policy.has_weights) return {};
  for (const numa::NodeId node : policy.policy.nodes.Nodes()) {
    const int wanted = policy.policy.weights[node];
    if (wanted == host.table[node]) continue;
    return NotApplicable(
        "weights_not_set",
        fmt::format("placement.memory {}: this host's kernel gives node {} the weight {}; write {} "
                    "to {}node{}, or leave the weights out to go by the host's",
                    text, node, host.table[node], wanted, memory::kWeightDir, node));
  }
  return {};
}

Judgement KernelPolicyOf(const settings::Variant& variant, KernelPolicy& policy) {
  const Result<numa::Topology> topology = numa::ReadTopology(numa::HostFiles());
  if (!topology.ok()) return Failed("internal", topology.status().message());
  const Result<memory::HostWeights> host =
      memory::ReadHostWeights(numa::HostFiles(), topology->memory_nodes());
  if (!host.ok()) return Failed("internal", host.status().message());
  return ReadKernelPolicy(variant.Text("placement.memory"), *topology, *host, policy);
}

void AddInertOfKernel(const settings::Variant& variant, v1::WorkerResult& result) {
  if (variant.Text("allocator") != "fresh") result.add_inert_switches("allocator");
}

std::vector<MemoryLimit> NodeMemoryLimits(const KernelPolicy& policy, const std::string& root) {
  if (policy.policy.mode != PolicyMode::kBind) return {};
  int64_t available = 0;
  for (const numa::NodeId node : policy.policy.nodes.Nodes()) {
    const std::optional<int64_t> of_node =
        AvailableOn(ReadText(fmt::format("{}/sys/devices/system/node/node{}/meminfo", root, node)));
    if (!of_node) return {};
    available += *of_node;
  }
  return {{"the memory of node " + policy.policy.nodes.ToString(), available}};
}

Judgement JudgeKernelPlacement(const KernelPolicy& policy,
                               const std::map<numa::NodeId, int64_t>& pages, int64_t unit_pages) {
  const bool is_interleaving = IsInterleaving(policy.policy.mode);
  // The preferred modes may go elsewhere by what they mean.
  if (policy.policy.mode != PolicyMode::kBind && !is_interleaving) return {};
  int64_t total = 0;
  for (const auto& [node, count] : pages) total += count;
  const PagesAstray astray = CountAstray(policy, pages, total);
  const int64_t rounding = is_interleaving ? total / 100 + PagesOfRound(policy) * unit_pages : 0;
  if (astray.outside == 0 && astray.surplus <= rounding) return {};
  return Void(
      "placement_not_obtained",
      fmt::format("placement.memory {}: {} of {} pages lie on other nodes",
                  memory::FormatPolicy(policy.policy), astray.outside + astray.surplus, total));
}

Judgement KernelMapping::Map(size_t size_bytes, const KernelPolicy& policy, HugePages huge_pages,
                             std::unique_ptr<KernelMapping>& mapping) {
  void* data =
      ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return Failed("no_memory", "mmap of the region: " + ErrnoText(errno));
  mapping.reset(new KernelMapping(static_cast<std::byte*>(data), size_bytes, policy, huge_pages));
  if (const int error = mapping->Advise(mapping->data_, size_bytes); error != 0) {
    return Failed("no_memory", "madvise of the region: " + ErrnoText(error));
  }
  if (const int error = mapping->Bind(mapping->data_, size_bytes); error != 0) {
    return NotApplicable("policy_refused",
                         fmt::format("placement.memory {}: this host's kernel refuses it (mbind): "
                                     "{}; weighted-interleave needs Linux 6.9",
                                     memory::FormatPolicy(policy.policy), ErrnoText(error)));
  }
  return {};
}

KernelMapping::~KernelMapping() { ::munmap(data_, size_bytes_); }

int KernelMapping::MapAnew(size_t offset, size_t size_bytes) {
  std::byte* const begin = data_ + offset;
  if (::mmap(begin, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
             0) == MAP_FAILED) {
    return errno;
  }
  const int error = Advise(begin, size_bytes);
  return error != 0 ? error : Bind(begin, size_bytes);
}

int KernelMapping::Advise(std::byte* begin, size_t size_bytes) const {
  if (huge_pages_ == HugePages::kAsHost) return 0;
  // EINVAL: a kernel that was built without huge pages.
  return ::madvise(begin, size_bytes, MADV_NOHUGEPAGE) == 0 || errno == EINVAL ? 0 : errno;
}

int KernelMapping::Bind(std::byte* begin, size_t size_bytes) const {
  if (policy_.policy.mode == PolicyMode::kDefault) return 0;
  return numa::SystemNumaKernel().Bind(begin, size_bytes, policy_.policy.mode,
                                       policy_.policy.nodes);
}

}  // namespace pipeyard::load
