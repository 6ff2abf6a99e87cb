#include "workloads/load/engine_pipes.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "workloads/load/placement.h"
#include "workloads/numa/placement.h"
#include "workloads/numa/topology.h"

namespace pipeyard::load {
namespace {

Result<pipe::EngineConfig> ConfigOf(const settings::Variant& variant) {
  pipe::EngineConfig config;
  PIPEYARD_ASSIGN_OR_RETURN(config.page_cache,
                            pipe::ParsePageCache(variant.Text("engine.page_cache")));
  config.wait_spin = Nanos(variant.Integer("engine.wait_spin"));
  return config;
}

// CPUs of the topology that this process may run on; all of them where the kernel does not say.
std::vector<numa::CpuId> AllowedCpus(const numa::Topology& topology) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return topology.cpus();
  std::vector<numa::CpuId> cpus;
  for (const numa::CpuId cpu : topology.cpus()) {
    if (cpu < CPU_SETSIZE && CPU_ISSET(static_cast<size_t>(cpu), &allowed)) cpus.push_back(cpu);
  }
  return cpus.empty() ? topology.cpus() : cpus;
}

Judgement JudgeCreation(const Status& status) {
  switch (status.code()) {
    case StatusCode::kResourceExhausted:
      return Failed("no_memory", status.message());
    case StatusCode::kFailedPrecondition:
      return Void("placement_not_obtained", status.message());
    case StatusCode::kUnimplemented:
      return Failed("not_supported", status.message());
    default:
      return Failed("engine_setup", status.message());
  }
}

// The units of v1::Counter.
std::string UnitOf(std::string_view unit) {
  if (unit == "bytes") return "B";
  return unit == "ns" ? "ns" : "count";
}

bool IsMaximum(std::string_view name) {
  return std::any_of(std::begin(pipe::kCounters), std::end(pipe::kCounters),
                     [&](const memory::CounterDefinition& definition) {
                       return definition.name == name &&
                              definition.reduction == memory::CounterReduction::kMax;
                     });
}

int64_t PagesOf(const numa::PageRange& range, uint64_t page_bytes) {
  return static_cast<int64_t>(range.size_bytes / page_bytes);
}

}  // namespace

Judgement EnginePipes::Create(const settings::Variant& variant, int num_workers, int num_pipes,
                              int64_t pipe_bytes, std::shared_ptr<EnginePipes>& pipes) {
  Result<pipe::EngineConfig> config = ConfigOf(variant);
  if (!config.ok()) return JudgeCreation(config.status());
  const Result<numa::Topology> topology = numa::ReadTopology(numa::HostFiles());
  if (!topology.ok()) return Failed("engine_setup", topology.status().message());
  pipe::EngineSetup setup;
  setup.config = std::move(*config);
  const std::vector<numa::CpuId> cpus = AllowedCpus(*topology);
  for (int i = 0; i < num_workers; ++i) {
    setup.worker_cpus.push_back(cpus[static_cast<size_t>(i) % cpus.size()]);
  }
  setup.pipes.assign(static_cast<size_t>(num_pipes),
                     pipe::PipeSetup{.bytes = static_cast<uint64_t>(pipe_bytes)});
  Result<std::unique_ptr<pipe::Engine>> engine = pipe::Engine::Create(setup, *topology);
  if (!engine.ok()) return JudgeCreation(engine.status());
  pipes.reset(new EnginePipes(std::move(*engine)));
  return {};
}

Counts EnginePipes::ReadCounts() const {
  Counts counts;
  for (const memory::CounterValue& counter : engine_->Counters()) {
    counts.push_back({.name = std::string(counter.name),
                      .unit = UnitOf(counter.unit),
                      .value = static_cast<int64_t>(counter.value),
                      .is_maximum = IsMaximum(counter.name)});
  }
  return counts;
}

Judgement EnginePipes::Conclude(v1::WorkerResult& result) {
  result.set_emulated(engine_->topology().is_emulated());
  if (const Status sound = engine_->CheckConservation(); !sound.ok()) {
    return Failed("internal", sound.message());
  }
  return ProvePlacement(result);
}

// Every page of the arenas: they are resident, so none of them is a hole that asking would fill.
Judgement EnginePipes::ProvePlacement(v1::WorkerResult& result) {
  const std::span<const numa::PageRange> arenas = engine_->pages().arenas();
  const auto page_bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  std::map<numa::NodeId, int64_t> pages;
  if (engine_->topology().is_emulated()) {
    for (const numa::PageRange& arena : arenas) pages[arena.node] += PagesOf(arena, page_bytes);
    AddPlacement("engine-pages", "emulated", pages, result);
    return {};
  }
  const auto proved =
      numa::VerifyPlacement(numa::SystemNumaKernel(), arenas, page_bytes,
                            [](size_t /*range*/, uint64_t /*page*/) { return true; });
  // A kernel that does not tell leaves the proof out; nobody may read that as proved.
  if (!proved.ok()) return {};
  int64_t misplaced = 0;
  for (const numa::PlacementCount& count : *proved) {
    for (const auto& [node, number] : count.pages_on) pages[node] += number;
    misplaced += count.misplaced();
  }
  AddPlacement("engine-pages", "move_pages", pages, result);
  if (misplaced == 0) return {};
  return Void(
      "placement_not_obtained",
      fmt::format("{} pages of the engine lie on another node than they were bound to", misplaced));
}

std::vector<std::string> InertSwitches(const settings::Variant& variant, int64_t message_bytes) {
  // Pages are preallocated only for writes of more than one page (kernel-mechanisms.md A7).
  if (variant.target == "engine" && variant.Text("engine.page_cache") == "prealloc" &&
      message_bytes <= ::sysconf(_SC_PAGESIZE)) {
    return {"engine.page_cache"};
  }
  return {};
}

}  // namespace pipeyard::load
