#include "workloads/load/fault.h"

#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "workloads/load/engine_settings.h"
#include "workloads/load/fault_loop.h"
#include "workloads/load/fault_memory.h"
#include "workloads/load/kernel_memory.h"
#include "workloads/load/region_share.h"
#include "workloads/load/result_fields.h"
#include "workloads/load/task_limit.h"
#include "workloads/load/topology_watch.h"

namespace pipeyard::load {
namespace {

FaultParameters FaultParametersOf(const settings::Variant& variant) {
  FaultParameters parameters;
  parameters.tasks = static_cast<int>(variant.Integer("tasks"));
  parameters.cachelines = static_cast<int>(variant.Integer("cachelines"));
  parameters.warmup = Nanos(variant.Integer("warmup"));
  parameters.duration = Nanos(variant.Integer("duration"));
  parameters.is_page_path = variant.target == "engine" && variant.Text("path") == "page";
  parameters.workers = WorkerKindOf(variant.Text("workers"));
  return parameters;
}

template <typename Memory>
Judgement RunOn(const FaultParameters& parameters, const settings::Variant& variant,
                const Surroundings& surroundings, v1::WorkerResult& result) {
  std::shared_ptr<Memory> memory;
  if (Judgement made = Memory::Create(parameters, variant, MemoryLimitsOf(surroundings), memory);
      !made.ok()) {
    return made;
  }
  if constexpr (std::is_same_v<Memory, KernelFaults>) memory->SetPlacement(surroundings.placement);
  memory->Describe(result);
  TopologyWatch topology(surroundings, {[&](numa::NodeId node) { memory->OnlineNode(node); },
                                        [&] { return memory->FastpathPages(); }});
  FaultNumbers numbers;
  std::vector<BufferPlacement> placements;
  const Judgement ran =
      RunFaultLoop(parameters, memory, numbers, placements, {}, topology.AsWatch());
  topology.Look();
  FillCounters(topology.counts(), result);
  if (!ran.ok()) return ran;
  const Status filled = FillFaultResult(numbers, result);
  // The engine's pages are resident, or its allocator touches them.
  if (variant.target == "kernel") *result.add_self_checks() = CheckMinorFaults(numbers);
  const Judgement concluded = memory->Conclude(placements, result);
  if (!filled.ok()) return Failed("internal", filled.message());
  return concluded.ok() ? topology.Judge() : concluded;
}

}  // namespace

Judgement JudgeFaultErrors(std::span<const FaultAccount> accounts) {
  for (size_t i = 0; i < accounts.size(); ++i) {
    const int error = accounts[i].error;
    if (error == 0) continue;
    return Failed("operation_failed", "task " + std::to_string(i) + ": " + ErrnoText(error));
  }
  return {};
}

Judgement RunFault(const settings::Variant& variant, const Surroundings& surroundings,
                   v1::WorkerResult& result) {
  result.set_emulated(IsEmulated(variant));
  FaultParameters parameters = FaultParametersOf(variant);
  if (Judgement shared = ShareOut(variant.Integer("region_bytes"), ::sysconf(_SC_PAGESIZE),
                                  parameters.tasks, /*arrays=*/1, parameters.pages_per_task);
      !shared.ok()) {
    return shared;
  }
  if (Judgement fits = JudgeTasks(ReadTaskLimits(), parameters.tasks); !fits.ok()) return fits;
  if (variant.target == "kernel") AddInertOfKernel(variant, result);
  return variant.target == "kernel"
             ? RunOn<KernelFaults>(parameters, variant, surroundings, result)
             : RunOn<EngineFaults>(parameters, variant, surroundings, result);
}

}  // namespace pipeyard::load
