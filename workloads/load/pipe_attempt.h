// RunPipeAttempt: the frame of an attempt whose workers pass bytes through pipes of the variant's
// target: what the host allows, the pipes, the load, hotplug meanwhile, and the proofs.
//
// Private to workloads/load. Thread safety: one call at a time in a process.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "pipeyard/v1/worker.pb.h"
#include "proto/settings/variant.h"
#include "workloads/load/engine_pipes.h"
#include "workloads/load/engine_settings.h"
#include "workloads/load/judgement.h"
#include "workloads/load/kernel_aging.h"
#include "workloads/load/kernel_pipes.h"
#include "workloads/load/memory_limit.h"
#include "workloads/load/resolved_size.h"
#include "workloads/load/result_fields.h"
#include "workloads/load/surroundings.h"
#include "workloads/load/task_limit.h"
#include "workloads/load/topology_watch.h"

namespace pipeyard::load {

// `Load` is one workload with its parameters:
//   int num_workers(), num_pipes();  int64_t message_bytes();  int64_t& pipe_bytes();
//   Judgement Run(std::shared_ptr<Pipes>, Watch)     the loops, to their end
//   Judgement Fill(v1::WorkerResult&)                what was measured, after Run() was ok
template <typename Pipes, typename Load>
Judgement RunOnPipes(Load& load, const std::shared_ptr<Pipes>& pipes,
                     const Surroundings& surroundings, v1::WorkerResult& result) {
  AddResolvedPipeSize(load.pipe_bytes(), pipes->size_bytes(), result);
  load.pipe_bytes() = pipes->size_bytes();
  pipes->Describe(result);
  TopologyWatch topology(surroundings, {[&](numa::NodeId node) { pipes->OnlineNode(node); },
                                        [&] { return pipes->FastpathPages(); }});
  const Judgement ran = load.Run(pipes, topology.AsWatch());
  topology.Look();
  FillCounters(topology.counts(), result);
  if (!ran.ok()) return ran;
  const Judgement filled = load.Fill(result);
  const Judgement concluded = pipes->Conclude(result);
  if (!filled.ok()) return filled;
  return concluded.ok() ? topology.Judge() : concluded;
}

template <typename Load>
Judgement RunPipeAttempt(Load load, const settings::Variant& variant,
                         const Surroundings& surroundings, v1::WorkerResult& result) {
  result.set_emulated(IsEmulated(variant));
  if (Judgement fits = JudgeTasks(ReadTaskLimits(), load.num_workers()); !fits.ok()) return fits;
  std::vector<MemoryLimit> memory = MemoryLimitsOf(surroundings);
  const std::string buffers = fmt::format("{} message buffers of {}", load.num_workers(),
                                          FormatBytes(load.message_bytes()));
  if (Judgement fits = TakeMemory(load.num_workers() * load.message_bytes(), buffers, memory);
      !fits.ok()) {
    return fits;
  }
  if (variant.target == "kernel") {
    std::unique_ptr<KernelAging> aging;
    if (Judgement aged = KernelAging::StartFor(variant, static_cast<uint64_t>(load.num_pipes()),
                                               /*num_makers=*/1, memory, aging);
        !aged.ok()) {
      return aged;
    }
    if (aging != nullptr) aging->Describe(result);
    std::shared_ptr<KernelPipes> pipes;
    const Judgement created =
        KernelPipes::Create(load.num_pipes(), load.pipe_bytes(), pipes, std::move(memory));
    if (!created.ok()) return created;
    pipes->SetPlacement(surroundings.placement);
    Judgement ran = RunOnPipes(load, pipes, surroundings, result);
    return ran.ok() && aging != nullptr ? aging->Conclude() : ran;
  }
  if (variant.target == "engine") {
    std::shared_ptr<EnginePipes> pipes;
    const Judgement created = EnginePipes::Create(variant, load.num_workers(), load.num_pipes(),
                                                  load.pipe_bytes(), pipes, std::move(memory));
    return created.ok() ? RunOnPipes(load, pipes, surroundings, result) : created;
  }
  return Failed("not_supported", "target " + variant.target + " is not supported yet");
}

}  // namespace pipeyard::load
