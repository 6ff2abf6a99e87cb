#include "workloads/load/commanded_placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "proto/settings/node_role.h"
#include "workloads/load/cpu_choice.h"
#include "workloads/load/engine_settings.h"
#include "workloads/load/result_fields.h"
#include "workloads/memory/weight_table.h"
#include "workloads/numa/affinity.h"

namespace pipeyard::load {
namespace {

constexpr char kCpus[] = "placement.cpus";
constexpr char kMemory[] = "placement.memory";
std::vector<numa::CpuId> EveryCpu() {
  std::vector<numa::CpuId> cpus(numa::kMaxCpu + 1);
  std::iota(cpus.begin(), cpus.end(), 0);
  return cpus;
}

// Each node role of a policy's list as the numbers it stands for.
Result<std::string> WithNumbers(const std::string& policy, const numa::Topology& topology) {
  const size_t colon = policy.find(':');
  if (colon == std::string::npos) return policy;
  std::string resolved = policy.substr(0, colon);
  char separator = ':';
  for (size_t at = colon; at != std::string::npos;) {
    const size_t end = policy.find(',', at + 1);
    std::string item = policy.substr(at + 1, end == std::string::npos ? end : end - at - 1);
    if (settings::IsNodeRole(item)) {
      PIPEYARD_ASSIGN_OR_RETURN(const numa::NodeMask nodes, NodesOfRole(item, topology));
      item = nodes.ToString();
    }
    resolved += separator + item;
    separator = ',';
    at = end;
  }
  return resolved;
}

Judgement ResolvePolicy(const char* name, const numa::Topology& topology,
                        settings::Variant& variant, v1::WorkerResult& result) {
  const auto value = variant.values.find(name);
  if (value == variant.values.end()) return {};
  const std::string written = variant.Text(name);
  const Result<std::string> resolved = WithNumbers(written, topology);
  if (!resolved.ok()) {
    return NotApplicable("no_such_node", fmt::format("{}: {}", name, resolved.status().message()));
  }
  if (*resolved == written) return {};
  AddResolved(name, written, *resolved, result);
  value->second = *resolved;
  return {};
}

// The kernel has one table of weights for everybody, which a task cannot change.
Judgement CheckWeights(const memory::Policy& policy, const numa::ReadFile& read) {
  if (!policy.has_weights) return {};
  const Result<memory::HostWeights> host = memory::ReadHostWeights(read, policy.nodes);
  if (!host.ok()) return Failed("engine_setup", host.status().message());
  for (const numa::NodeId node : policy.nodes.Nodes()) {
    if (host->table[node] == policy.weights[node]) continue;
    return NotApplicable(
        "weights_not_set",
        fmt::format("{}: {}: the kernel's weight of node {} is {}; write {} to {}node{}, or leave "
                    "the weights out",
                    kMemory, memory::FormatPolicy(policy), node, host->table[node],
                    policy.weights[node], memory::kWeightDir, node));
  }
  return {};
}

Judgement ResolveMemory(const numa::Topology& topology, const numa::ReadFile& read,
                        const settings::Variant& variant, CommandedPlacement& placement) {
  const std::string& text = variant.Text(kMemory);
  if (text.empty()) return {};
  Result<memory::Policy> policy = memory::ParsePolicy(text);
  if (!policy.ok()) return Failed("not_supported", policy.status().WithContext(kMemory).message());
  if (!policy->nodes.IsEmpty()) {
    if (const Status there = topology.CheckMemoryMask(policy->nodes); !there.ok()) {
      return NotApplicable(
          "no_such_node",
          fmt::format("{}: {}: {}", kMemory, memory::FormatPolicy(*policy), there.message()));
    }
  }
  if (variant.target != "engine") {
    if (Judgement judged = CheckWeights(*policy, read); !judged.ok()) return judged;
  } else if (policy->mode == numa::PolicyMode::kWeightedInterleave) {
    // Weights are the engine's to obey. The worker's own memory, its buffers, is interleaved over
    // the same nodes: older kernels know no weights, and newer ones have another table.
    policy->mode = numa::PolicyMode::kInterleave;
    policy->has_weights = false;
  }
  placement.memory = std::move(*policy);
  return {};
}

Judgement ResolveCpus(const numa::Topology& topology, const numa::ReadFile& read,
                      const settings::Variant& variant, CommandedPlacement& placement,
                      v1::WorkerResult& result) {
  const std::string& written = variant.Text(kCpus);
  const Result<settings::CpuText> text = settings::ParseCpuText(written);
  if (!text.ok()) return Failed("not_supported", text.status().WithContext(kCpus).message());
  Result<CpuChoice> choice = ChooseCpus(*text, topology, read);
  if (!choice.ok()) {
    const bool is_of_cpus = text->kind == settings::CpuTextKind::kCpus;
    return NotApplicable(is_of_cpus ? "no_such_cpu" : "no_such_node",
                         fmt::format("{}: {}", kCpus, choice.status().message()));
  }
  placement.cpus = std::move(choice->cpus);
  placement.is_per_worker = choice->is_per_worker;
  if (placement.cpus.empty()) return {};
  // In the order of workers, which is not always ascending.
  std::string cpus;
  for (const numa::CpuId cpu : placement.cpus) {
    cpus += fmt::format("{}{}", cpus.empty() ? "" : ",", cpu);
  }
  if (cpus != written) {
    AddResolved(kCpus, written,
                placement.is_per_worker ? cpus : numa::FormatNumberList(placement.cpus), result);
  }
  return {};
}

Judgement NotObtained(std::string_view name, std::string text) {
  return Void("placement_not_obtained", fmt::format("{}: {}", name, text));
}

}  // namespace

Judgement ResolvePlacement(const numa::Topology& host, const numa::ReadFile& read,
                           settings::Variant& variant, CommandedPlacement& placement,
                           v1::WorkerResult& result) {
  placement.is_emulated = IsEmulated(variant);
  numa::Topology topology = host;
  if (placement.is_emulated) {
    const Result<pipe::EngineConfig> config = EngineConfigOf(variant);
    if (!config.ok()) return Failed("engine_setup", config.status().message());
    Result<numa::Topology> emulated = numa::MakeEmulated(*config->topology, host);
    if (!emulated.ok()) {
      return Failed("engine_setup", emulated.status().WithContext("engine.topology").message());
    }
    topology = std::move(*emulated);
  }
  for (const char* const name : {kMemory, "engine.policy"}) {
    if (Judgement judged = ResolvePolicy(name, topology, variant, result); !judged.ok()) {
      return judged;
    }
  }
  if (Judgement judged = ResolveMemory(topology, read, variant, placement); !judged.ok()) {
    return judged;
  }
  return ResolveCpus(topology, read, variant, placement, result);
}

Judgement TakePlacement(const CommandedPlacement& placement, numa::NumaKernel& kernel) {
  if (placement.is_emulated) return {};
  if (!placement.cpus.empty()) {
    if (const int error = numa::SetAffinity(placement.cpus); error != 0) {
      return NotObtained(kCpus, "sched_setaffinity: " + ErrnoText(error));
    }
  }
  if (!placement.memory) return {};
  const int error = kernel.SetTaskPolicy(placement.memory->mode, placement.memory->nodes);
  if (error == 0) return {};
  const std::string text = fmt::format("set_mempolicy to {}: {}",
                                       memory::FormatPolicy(*placement.memory), ErrnoText(error));
  if (error == EINVAL || error == ENOSYS) {
    return NotApplicable("policy_not_supported",
                         fmt::format("{}: {}; this kernel has no such policy", kMemory, text));
  }
  return NotObtained(kMemory, text);
}

Judgement CheckPlacement(const CommandedPlacement& placement, numa::NumaKernel& kernel) {
  if (placement.is_emulated) return {};
  if (!placement.cpus.empty()) {
    const Result<std::vector<numa::CpuId>> held = numa::GetAffinity();
    if (!held.ok()) return NotObtained(kCpus, std::string(held.status().message()));
    std::vector<numa::CpuId> wanted = placement.cpus;
    std::sort(wanted.begin(), wanted.end());
    if (*held != wanted) {
      return NotObtained(
          kCpus,
          "this process may run on other CPUs than were commanded; a cpuset, or a start "
          "that was not by `pipeyard-worker launch`");
    }
  }
  if (!placement.memory) return {};
  numa::PolicyMode mode = numa::PolicyMode::kDefault;
  numa::NodeMask nodes;
  if (const int error = kernel.QueryTaskPolicy(mode, nodes); error != 0) {
    return NotObtained(kMemory, "get_mempolicy: " + ErrnoText(error));
  }
  if (mode == placement.memory->mode && nodes == placement.memory->nodes) return {};
  return NotObtained(kMemory, fmt::format("{} was commanded, and this process has mode {} over "
                                          "nodes {}; a cpuset, or a start that was not by "
                                          "`pipeyard-worker launch`",
                                          memory::FormatPolicy(*placement.memory),
                                          static_cast<int>(mode), nodes.ToString()));
}

Result<numa::Topology> HostToPlaceOn() {
  PIPEYARD_ASSIGN_OR_RETURN(const numa::Topology machine, numa::ReadTopology(numa::HostFiles()));
  std::vector<numa::CpuId> cpus = CpusOfCpuset();
  if (cpus.empty()) return machine;
  return numa::Topology::Make(machine.nodes(), std::move(cpus), machine.is_emulated());
}

Judgement ObtainPlacement(settings::Variant& variant, CommandedPlacement& placement,
                          v1::WorkerResult& result) {
  const Result<numa::Topology> host = HostToPlaceOn();
  if (!host.ok()) return Failed("engine_setup", host.status().message());
  Judgement judged = ResolvePlacement(*host, numa::HostFiles(), variant, placement, result);
  if (!judged.ok()) return judged;
  judged = CheckPlacement(placement, numa::SystemNumaKernel());
  if (judged.ok()) return judged;
  // Why it was not taken on before is what it says when it is asked for again.
  Judgement taken = TakePlacement(placement, numa::SystemNumaKernel());
  return taken.outcome == v1::OUTCOME_NOT_APPLICABLE ? taken : judged;
}

Judgement CheckUserMemory(const CommandedPlacement& placement, const v1::WorkerResult& result) {
  using numa::PolicyMode;
  if (placement.is_emulated || !placement.memory) return {};
  const PolicyMode mode = placement.memory->mode;
  // The others may go elsewhere by what they mean. Interleaving, too, where a node is full; then
  // the numbers are those of another placement.
  if (mode != PolicyMode::kBind && mode != PolicyMode::kInterleave &&
      mode != PolicyMode::kWeightedInterleave) {
    return {};
  }
  for (const v1::Placement& proof : result.placements()) {
    if (proof.memory() != "message-buffers") continue;
    for (const auto& [node, pages] : proof.pages_per_node()) {
      if (pages == 0 || placement.memory->nodes.Contains(node)) continue;
      return NotObtained(kMemory,
                         fmt::format("{} pages of message buffers lie on node {}", pages, node));
    }
  }
  return {};
}

Unplaced::Unplaced(const CommandedPlacement& placement, numa::NumaKernel& kernel)
    : placement_(placement), kernel_(kernel) {
  if (placement_.is_emulated) return;
  if (!placement_.cpus.empty()) static_cast<void>(numa::SetAffinity(EveryCpu()));
  if (placement_.memory) {
    static_cast<void>(kernel_.SetTaskPolicy(numa::PolicyMode::kDefault, {}));
  }
}

Unplaced::~Unplaced() { static_cast<void>(TakePlacement(placement_, kernel_)); }

std::vector<numa::CpuId> CpusOfCpuset() {
  const Result<std::vector<numa::CpuId>> held = numa::GetAffinity();
  // The kernel cuts what is asked for down to the cpuset.
  if (!held.ok() || numa::SetAffinity(EveryCpu()) != 0) return {};
  Result<std::vector<numa::CpuId>> allowed = numa::GetAffinity();
  static_cast<void>(numa::SetAffinity(*held));
  if (!allowed.ok()) return {};
  return std::move(*allowed);
}

bool PinThread(numa::CpuId cpu) { return numa::SetAffinity({cpu}) == 0; }

bool PinWorker(const CommandedPlacement& placement, int worker_index) {
  if (placement.is_emulated || !placement.is_per_worker || placement.cpus.empty()) return true;
  const size_t turn = static_cast<size_t>(worker_index) % placement.cpus.size();
  return PinThread(placement.cpus[turn]);
}

}  // namespace pipeyard::load
