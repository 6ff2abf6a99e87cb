#include "workloads/load/bulk.h"

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "workloads/load/engine_target.h"
#include "workloads/load/rate_attempt.h"
#include "workloads/load/rate_loop.h"
#include "workloads/memory/monotonic.h"
#include "workloads/memory/shared.h"

namespace pipeyard::load {
namespace {

// SHARED. By the place of each node among the arenas.
struct alignas(kFalseSharingRange) BulkTally {
  uint64_t pages[numa::kMaxNodes];
  uint64_t calls[numa::kMaxNodes];  // that the node's free pages got

  BulkTally& operator-=(const BulkTally& other) {
    for (size_t i = 0; i < numa::kMaxNodes; ++i) {
      pages[i] -= other.pages[i];
      calls[i] -= other.calls[i];
    }
    return *this;
  }
};
PIPEYARD_CHECK_SHARED(BulkTally);

class BulkTasks {
 public:
  using Tally = BulkTally;
  struct Task {
    pipe::Worker* worker = nullptr;
    std::vector<memory::PageId> pages = {};
    std::vector<uint64_t> pages_by_node = {};
  };

  BulkTasks(std::unique_ptr<EngineTarget> target, size_t pages, const memory::BulkOptions& options)
      : target_(std::move(target)),
        allocator_(&target_->engine().pages()),
        num_pages_(pages),
        options_(options) {}

  // As EngineTarget has them.
  void Describe(v1::WorkerResult& result) const { target_->Describe(result); }
  void OnlineNode(numa::NodeId node) { target_->OnlineNode(node); }
  uint64_t FastpathPages() const { return target_->FastpathPages(); }
  Judgement Conclude(v1::WorkerResult& result) { return target_->Conclude(result); }

  Task Attach(int task_index) {
    return {&target_->Attach(task_index), std::vector<memory::PageId>(num_pages_),
            std::vector<uint64_t>(allocator_->arenas().size())};
  }

  StepResult Step(Task& task) {
    memory::PageWorker& worker = task.worker->pages();
    const int64_t began = memory::MonotonicNanos();
    const uint32_t num_got = allocator_->AllocateBulk(worker, task.pages, options_);
    const int64_t elapsed = memory::MonotonicNanos() - began;
    if (num_got == 0) return {.error = ENOMEM};
    const std::span<const memory::PageId> got(task.pages.data(), num_got);
    CountByNode(got, task.pages_by_node);
    allocator_->FreeBulk(worker, got);
    return {.units = num_got, .elapsed_ns = elapsed};
  }

  void Finish(Task& /*task*/) {}
  void Interrupt() { target_->engine().Stop(); }

  Counts ReadCounts() const { return target_->ReadCounts(); }

  void ReadTally(const Task& task, BulkTally& tally) const {
    const memory::PageWorker& worker = task.worker->pages();
    for (size_t i = 0; i < task.pages_by_node.size(); ++i) {
      tally.pages[i] = task.pages_by_node[i];
      tally.calls[i] = worker.lists[i].bulk_calls.load(std::memory_order_relaxed);
    }
  }

  Counts CountsOf(std::span<const BulkTally> tallies) const {
    Counts counts;
    for (size_t i = 0; i < allocator_->arenas().size(); ++i) {
      uint64_t pages = 0;
      uint64_t calls = 0;
      for (const BulkTally& tally : tallies) {
        pages += tally.pages[i];
        calls += tally.calls[i];
      }
      const std::string prefix = "node" + std::to_string(allocator_->arenas()[i].node);
      counts.push_back({prefix + "_pages", "count", static_cast<int64_t>(pages)});
      counts.push_back({prefix + "_bulk_calls", "count", static_cast<int64_t>(calls)});
    }
    return counts;
  }

 private:
  // Pages of one node come in runs.
  void CountByNode(std::span<const memory::PageId> pages, std::vector<uint64_t>& by_node) const {
    for (size_t begin = 0; begin < pages.size();) {
      const uint32_t node = allocator_->NodeIndexOf(pages[begin]);
      size_t end = begin + 1;
      while (end < pages.size() && allocator_->NodeIndexOf(pages[end]) == node) ++end;
      by_node[node] += end - begin;
      begin = end;
    }
  }

  const std::unique_ptr<EngineTarget> target_;
  memory::PageAllocator* const allocator_;
  const size_t num_pages_;
  const memory::BulkOptions options_;
};

Status FillMetricsOf(const RateNumbers& numbers, v1::WorkerResult& result) {
  return FillMetrics("bulk",
                     {{"page_rate", {UnitsPerSecond(numbers), ""}},
                      {"time_per_page", NanosPerUnit(numbers)},
                      {"request_p50", LatencyPercentile(numbers.latency, 50)},
                      {"request_p99", LatencyPercentile(numbers.latency, 99)}},
                     result);
}

}  // namespace

Judgement RunBulk(const settings::Variant& variant, const Surroundings& surroundings,
                  v1::WorkerResult& result) {
  const RateParameters parameters = RateParametersOf(variant, WorkerKind::kThreads);
  const auto pages = static_cast<uint64_t>(variant.Integer("pages"));
  const auto make = [&](std::vector<MemoryLimit> memory, std::shared_ptr<BulkTasks>& tasks) {
    EngineRequest request;
    request.num_workers = parameters.tasks;
    // A policy may take all of them from one node.
    request.extra_pages = pages * static_cast<uint64_t>(parameters.tasks);
    std::unique_ptr<EngineTarget> target;
    Judgement created = EngineTarget::Create(variant, request, std::move(memory), target);
    if (!created.ok()) return created;
    Result<pipe::EngineConfig> config = EngineConfigOf(variant);
    if (!config.ok()) return Failed("engine_setup", config.status().message());
    const memory::BulkOptions options{config->interleave_bulk, variant.Flag("accounted")};
    tasks = std::make_shared<BulkTasks>(std::move(target), static_cast<size_t>(pages), options);
    return Judgement{};
  };
  return RunRateAttempt<BulkTasks>(parameters, variant, surroundings, make, FillMetricsOf, result);
}

}  // namespace pipeyard::load
