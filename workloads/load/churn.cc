#include "workloads/load/churn.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>

#include "base/units.h"
#include "workloads/load/churn_tasks.h"
#include "workloads/load/kernel_pipes.h"
#include "workloads/load/rate_attempt.h"

namespace pipeyard::load {
namespace {

// The largest ring that a resize makes.
constexpr int64_t kMaxSlots = 256;

ChurnParameters ChurnParametersOf(const settings::Variant& variant) {
  ChurnParameters parameters;
  const bool is_resize = variant.Text("operation") == "resize";
  parameters.operation = is_resize ? ChurnOperation::kResize : ChurnOperation::kCreate;
  parameters.tasks = static_cast<int>(variant.Integer("tasks"));
  parameters.window = static_cast<int>(variant.Integer("window"));
  parameters.pipe_bytes = variant.Integer("pipe_bytes");
  parameters.held_slots = is_resize ? variant.Integer("held_slots") : 0;
  return parameters;
}

// Of a pipe as it is made: a power of two of pages.
int64_t SlotsOf(int64_t pipe_bytes) {
  const int64_t page_bytes = ::sysconf(_SC_PAGESIZE);
  const auto pages = static_cast<uint64_t>((pipe_bytes + page_bytes - 1) / page_bytes);
  return static_cast<int64_t>(std::bit_ceil(pages));
}

// A pipe as it is made must hold them.
Judgement CheckHeldSlots(const ChurnParameters& parameters) {
  const int64_t slots = SlotsOf(parameters.pipe_bytes);
  if (parameters.held_slots <= slots) return {};
  return NotApplicable(
      "held_slots", fmt::format("held_slots {}: a pipe of pipe_bytes {} has {} slots here",
                                parameters.held_slots, FormatBytes(parameters.pipe_bytes), slots));
}

Status FillMetricsOf(const RateNumbers& numbers, v1::WorkerResult& result) {
  return FillMetrics("churn",
                     {{"operation_rate", {UnitsPerSecond(numbers), ""}},
                      {"time_per_operation", NanosPerUnit(numbers)},
                      {"operation_p50", LatencyPercentile(numbers.latency, 50)},
                      {"operation_p99", LatencyPercentile(numbers.latency, 99)}},
                     result);
}

// A rate of refusals is none of resizes.
Judgement JudgeResizes(const Judgement& ran, const v1::WorkerResult& result) {
  int64_t resized = 0;
  int64_t refused = 0;
  for (const v1::Counter& counter : result.counters()) {
    if (counter.name() == "resizes_slab" || counter.name() == "resizes_large") {
      resized += counter.value();
    }
    if (counter.name() == "resizes_refused") refused += counter.value();
  }
  if (!ran.ok() || refused == 0 || resized > 0) return ran;
  return NotApplicable("pipe_size_limit",
                       fmt::format("all {} resizes were refused (EPERM): this user's pipes exceed "
                                   "fs.pipe-user-pages-soft or fs.pipe-user-pages-hard",
                                   refused));
}

}  // namespace

Judgement RunChurn(const settings::Variant& variant, const Surroundings& surroundings,
                   v1::WorkerResult& result) {
  const ChurnParameters parameters = ChurnParametersOf(variant);
  if (Judgement checked = CheckHeldSlots(parameters); !checked.ok()) return checked;
  const RateParameters rate = RateParametersOf(variant, WorkerKindOf(variant.Text("workers")));
  const int64_t num_pipes = int64_t{parameters.tasks} * parameters.window;
  if (variant.target == "kernel") {
    const auto make = [&](std::vector<MemoryLimit> memory,
                          std::shared_ptr<ChurnTasks<KernelChurn>>& tasks) {
      const bool is_shared = rate.workers == WorkerKind::kThreads;
      // Made and ended at once: only the kernel knows what this user may have.
      std::shared_ptr<KernelPipes> tried;
      const int64_t num_tried = is_shared ? num_pipes : parameters.window;
      if (Judgement created =
              KernelPipes::Create(static_cast<int>(num_tried), parameters.pipe_bytes, tried);
          !created.ok()) {
        return created;
      }
      tried.reset();
      const int64_t held_bytes = parameters.held_slots * ::sysconf(_SC_PAGESIZE) * num_pipes;
      if (Judgement fits = TakeMemory(held_bytes, "the pages that pipes hold", memory);
          !fits.ok()) {
        return fits;
      }
      std::unique_ptr<KernelAging> aging;
      if (Judgement aged =
              KernelAging::StartFor(variant, static_cast<uint64_t>(num_pipes),
                                    static_cast<uint64_t>(parameters.tasks), memory, aging);
          !aged.ok()) {
        return aged;
      }
      tasks = std::make_shared<ChurnTasks<KernelChurn>>(
          parameters, std::make_shared<KernelChurn>(surroundings.placement, std::move(aging)));
      return Judgement{};
    };
    return JudgeResizes(RunRateAttempt<ChurnTasks<KernelChurn>>(rate, variant, surroundings, make,
                                                                FillMetricsOf, result),
                        result);
  }
  const auto make = [&](std::vector<MemoryLimit> memory,
                        std::shared_ptr<ChurnTasks<EngineChurn>>& tasks) {
    if (Judgement checked = EngineTarget::CheckPipeSize(parameters.pipe_bytes); !checked.ok()) {
      return checked;
    }
    EngineRequest request;
    request.num_workers = parameters.tasks;
    request.extra_pipes = static_cast<uint32_t>(num_pipes);
    const bool is_resize = parameters.operation == ChurnOperation::kResize;
    const int64_t slots = std::max(SlotsOf(parameters.pipe_bytes), is_resize ? kMaxSlots : 1);
    request.extra_ring_slots = static_cast<uint64_t>(num_pipes * slots);
    request.extra_pages = static_cast<uint64_t>(num_pipes * parameters.held_slots);
    Result<std::optional<AgingRequest>> aging = AgingRequestOf(
        variant, static_cast<uint64_t>(num_pipes), static_cast<uint64_t>(parameters.tasks));
    if (!aging.ok()) return Failed("not_supported", aging.status().message());
    request.aging = std::move(*aging);
    std::unique_ptr<EngineTarget> target;
    Judgement created = EngineTarget::Create(variant, request, std::move(memory), target);
    if (!created.ok()) return created;
    tasks = std::make_shared<ChurnTasks<EngineChurn>>(
        parameters, std::make_shared<EngineChurn>(std::move(target)));
    return Judgement{};
  };
  return RunRateAttempt<ChurnTasks<EngineChurn>>(rate, variant, surroundings, make, FillMetricsOf,
                                                 result);
}

}  // namespace pipeyard::load
