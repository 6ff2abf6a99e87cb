#include "workloads/load/bulk.h"

#include <array>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "workloads/load/engine_target.h"
#include "workloads/load/rate_attempt.h"
#include "workloads/load/rate_loop.h"
#include "workloads/memory/monotonic.h"

namespace pipeyard::load {
namespace {

// Pages that one task was given, by node. The task alone adds.
struct alignas(kFalseSharingRange) PagesByNode {
  std::array<std::atomic<uint64_t>, numa::kMaxNodes> pages;

  void Add(numa::NodeId node, uint64_t number) {
    std::atomic<uint64_t>& counted = pages[static_cast<size_t>(node)];
    counted.store(counted.load(std::memory_order_relaxed) + number, std::memory_order_relaxed);
  }
};

class BulkTasks {
 public:
  struct Task {
    pipe::Worker* worker = nullptr;
    PagesByNode* by_node = nullptr;
    std::vector<memory::PageId> pages;
  };

  BulkTasks(std::unique_ptr<EngineTarget> target, int num_tasks, size_t pages,
            const memory::BulkOptions& options)
      : target_(std::move(target)),
        allocator_(&target_->engine().pages()),
        num_pages_(pages),
        options_(options),
        by_node_(static_cast<size_t>(num_tasks)) {}

  // As EngineTarget has them.
  void Describe(v1::WorkerResult& result) const { target_->Describe(result); }
  void OnlineNode(numa::NodeId node) { target_->OnlineNode(node); }
  uint64_t FastpathPages() const { return target_->FastpathPages(); }
  Judgement Conclude(v1::WorkerResult& result) { return target_->Conclude(result); }

  Task Attach(int task_index) {
    return {&target_->Attach(task_index), &by_node_[static_cast<size_t>(task_index)],
            std::vector<memory::PageId>(num_pages_)};
  }

  StepResult Step(Task& task) {
    memory::PageWorker& worker = task.worker->pages();
    const int64_t began = memory::MonotonicNanos();
    const uint32_t num_got = allocator_->AllocateBulk(worker, task.pages, options_);
    const int64_t elapsed = memory::MonotonicNanos() - began;
    if (num_got == 0) return {.error = ENOMEM};
    const std::span<const memory::PageId> got(task.pages.data(), num_got);
    CountByNode(got, *task.by_node);
    allocator_->FreeBulk(worker, got);
    return {.units = num_got, .elapsed_ns = elapsed};
  }

  void Finish(Task& /*task*/) {}
  void Interrupt() { target_->engine().Stop(); }

  // The engine's, the pages of each node, and the calls that each node got.
  Counts ReadCounts() const {
    Counts counts = target_->ReadCounts();
    const std::vector<uint64_t> calls = allocator_->BulkCallsByNode();
    for (size_t i = 0; i < allocator_->arenas().size(); ++i) {
      const numa::NodeId node = allocator_->arenas()[i].node;
      uint64_t pages = 0;
      for (const PagesByNode& task : by_node_) {
        pages += task.pages[static_cast<size_t>(node)].load(std::memory_order_relaxed);
      }
      const std::string prefix = "node" + std::to_string(node);
      counts.push_back({prefix + "_pages", "count", static_cast<int64_t>(pages)});
      counts.push_back({prefix + "_bulk_calls", "count", static_cast<int64_t>(calls[i])});
    }
    return counts;
  }

 private:
  // Pages of one node come in runs.
  void CountByNode(std::span<const memory::PageId> pages, PagesByNode& by_node) const {
    for (size_t begin = 0; begin < pages.size();) {
      const numa::NodeId node = allocator_->NodeOf(pages[begin]);
      size_t end = begin + 1;
      while (end < pages.size() && allocator_->NodeOf(pages[end]) == node) ++end;
      by_node.Add(node, end - begin);
      begin = end;
    }
  }

  const std::unique_ptr<EngineTarget> target_;
  memory::PageAllocator* const allocator_;
  const size_t num_pages_;
  const memory::BulkOptions options_;
  std::vector<PagesByNode> by_node_;  // by task
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
    tasks = std::make_shared<BulkTasks>(std::move(target), parameters.tasks,
                                        static_cast<size_t>(pages), options);
    return Judgement{};
  };
  return RunRateAttempt<BulkTasks>(parameters, variant, surroundings, make, FillMetricsOf, result);
}

}  // namespace pipeyard::load
