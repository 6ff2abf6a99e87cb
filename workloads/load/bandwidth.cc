#include "workloads/load/bandwidth.h"

#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "workloads/load/bandwidth_tasks.h"
#include "workloads/load/kernel_memory.h"
#include "workloads/load/rate_attempt.h"
#include "workloads/load/region_share.h"

namespace pipeyard::load {
namespace {

constexpr char kBytesSuffix[] = "_bytes";

// nodeN_bandwidth of each nodeN_bytes: what weights are chosen by.
void FillNodeBandwidths(const RateNumbers& numbers, v1::WorkerResult& result) {
  const double seconds = static_cast<double>(numbers.window.count()) / 1e9;
  if (seconds <= 0) return;
  Counts bandwidths;
  for (const Count& count : numbers.counts) {
    if (!count.name.starts_with("node") || !count.name.ends_with(kBytesSuffix)) continue;
    const std::string node = count.name.substr(0, count.name.size() - sizeof(kBytesSuffix) + 1);
    const double bandwidth = static_cast<double>(count.value) / seconds;
    bandwidths.push_back({node + "_bandwidth", "B/s", static_cast<int64_t>(bandwidth)});
  }
  FillCounters(bandwidths, result);
}

// Every page is written before the tasks arrive; first touch takes some 2.5 s a GiB here.
LoopTimeouts TimeoutsOf(int64_t region_bytes) {
  LoopTimeouts timeouts;
  timeouts.start += Seconds(region_bytes >> 30) * 5;
  return timeouts;
}

Status FillMetricsOf(const RateNumbers& numbers, v1::WorkerResult& result) {
  FillNodeBandwidths(numbers, result);
  return FillMetrics("bandwidth", {{"bandwidth", {UnitsPerSecond(numbers), ""}}}, result);
}

template <typename Memory>
Judgement RunOn(const RateParameters& rate, const BandwidthParameters& parameters,
                const settings::Variant& variant, const Surroundings& surroundings,
                v1::WorkerResult& result) {
  using Tasks = BandwidthTasks<Memory>;
  const auto make = [&](std::vector<MemoryLimit> limits, std::shared_ptr<Tasks>& tasks) {
    std::shared_ptr<Memory> memory;
    Judgement created = Memory::Create(parameters, variant, std::move(limits), memory);
    if (!created.ok()) return created;
    if constexpr (std::is_same_v<Memory, KernelBandwidth>) {
      memory->SetPlacement(surroundings.placement);
    }
    Result<std::shared_ptr<Tasks>> made = Tasks::Make(parameters, std::move(memory));
    if (!made.ok()) return Failed("no_memory", made.status().message());
    tasks = std::move(*made);
    return Judgement{};
  };
  return RunRateAttempt<Tasks>(rate, variant, surroundings, make, FillMetricsOf, result,
                               TimeoutsOf(variant.Integer("region_bytes")));
}

}  // namespace

Judgement RunBandwidth(const settings::Variant& variant, const Surroundings& surroundings,
                       v1::WorkerResult& result) {
  const RateParameters rate = RateParametersOf(variant, WorkerKindOf(variant.Text("workers")));
  BandwidthParameters parameters;
  parameters.operation = SweepOperationOf(variant.Text("operation"));
  parameters.tasks = rate.tasks;
  if (Judgement shared =
          ShareOut(variant.Integer("region_bytes"), ::sysconf(_SC_PAGESIZE), parameters.tasks,
                   NumArrays(parameters.operation), parameters.pages_of_array);
      !shared.ok()) {
    return shared;
  }
  if (variant.target == "kernel") AddInertOfKernel(variant, result);
  return variant.target == "kernel"
             ? RunOn<KernelBandwidth>(rate, parameters, variant, surroundings, result)
             : RunOn<EngineBandwidth>(rate, parameters, variant, surroundings, result);
}

}  // namespace pipeyard::load
