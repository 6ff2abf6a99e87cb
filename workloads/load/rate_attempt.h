// RunRateAttempt: the frame of an attempt whose tasks repeat one operation: what the host allows,
// the load, hotplug meanwhile, the metrics, and the proofs.
//
// Private to workloads/load. Thread safety: one call at a time in a process.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "pipeyard/v1/worker.pb.h"
#include "proto/settings/variant.h"
#include "workloads/load/engine_settings.h"
#include "workloads/load/judgement.h"
#include "workloads/load/rate_loop.h"
#include "workloads/load/result_fields.h"
#include "workloads/load/surroundings.h"
#include "workloads/load/task_limit.h"
#include "workloads/load/topology_watch.h"

namespace pipeyard::load {

// tasks, duration and warmup of the variant.
inline RateParameters RateParametersOf(const settings::Variant& variant, WorkerKind workers) {
  return {.tasks = static_cast<int>(variant.Integer("tasks")),
          .duration = Nanos(variant.Integer("duration")),
          .warmup = Nanos(variant.Integer("warmup")),
          .workers = workers};
}

// `make(std::vector<MemoryLimit>, std::shared_ptr<Tasks>&)` makes what the tasks drive, as
// RunRateLoops() wants it; it also answers for its target as EnginePipes and KernelPipes do
// (Describe, OnlineNode, FastpathPages, Conclude). `fill(const RateNumbers&, v1::WorkerResult&)`
// adds every metric of the workload.
template <typename Tasks, typename Make, typename Fill>
Judgement RunRateAttempt(const RateParameters& parameters, const settings::Variant& variant,
                         const Surroundings& surroundings, const Make& make, const Fill& fill,
                         v1::WorkerResult& result, const LoopTimeouts& timeouts = {}) {
  result.set_emulated(IsEmulated(variant));
  if (Judgement fits = JudgeTasks(ReadTaskLimits(), parameters.tasks); !fits.ok()) return fits;
  std::shared_ptr<Tasks> tasks;
  if (Judgement made = make(MemoryLimitsOf(surroundings), tasks); !made.ok()) return made;
  tasks->Describe(result);
  TopologyWatch topology(surroundings, {[&](numa::NodeId node) { tasks->OnlineNode(node); },
                                        [&] { return tasks->FastpathPages(); }});
  RateNumbers numbers;
  const Judgement ran = RunRateLoops(parameters, tasks, numbers, timeouts, topology.AsWatch());
  topology.Look();
  FillCounters(topology.counts(), result);
  if (!ran.ok()) return ran;
  FillCounters(numbers.counts, result);
  if (numbers.latency.count() == 0) {
    return Failed("no_operations",
                  "no operation ended within the measured " + FormatDuration(parameters.duration));
  }
  v1::Histogram& histogram = *result.add_histograms();
  histogram.set_name("operation");
  histogram.set_unit("ns");
  numbers.latency.ToProto(histogram);
  const Status filled = fill(numbers, result);
  const Judgement concluded = tasks->Conclude(result);
  if (!filled.ok()) return Failed("internal", filled.message());
  return concluded.ok() ? topology.Judge() : concluded;
}

}  // namespace pipeyard::load
