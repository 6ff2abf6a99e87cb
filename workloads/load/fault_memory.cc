#include "workloads/load/fault_memory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "base/units.h"
#include "workloads/load/engine_pages.h"
#include "workloads/load/placement.h"
#include "workloads/memory/shared.h"

namespace pipeyard::load {
namespace {

// Writes one byte of each of the page's first lines.
inline void TouchLines(std::byte* page, size_t num_lines) {
  for (size_t i = 0; i < num_lines; ++i) {
    *static_cast<volatile std::byte*>(page + i * memory::kCacheLine) = std::byte{1};
  }
}

}  // namespace

KernelFaults::KernelFaults(const FaultParameters& parameters, const KernelPolicy& policy,
                           std::unique_ptr<KernelMapping> mapping)
    : page_bytes_(::sysconf(_SC_PAGESIZE)),
      num_lines_(static_cast<size_t>(parameters.cachelines)),
      share_bytes_(static_cast<size_t>(parameters.pages_per_task * page_bytes_)),
      policy_(policy),
      mapping_(std::move(mapping)) {}

Judgement KernelFaults::Create(const FaultParameters& parameters, const settings::Variant& variant,
                               std::vector<MemoryLimit> memory,
                               std::shared_ptr<KernelFaults>& faults) {
  KernelPolicy policy;
  if (Judgement read = KernelPolicyOf(variant, policy); !read.ok()) return read;
  for (MemoryLimit& limit : NodeMemoryLimits(policy)) memory.push_back(std::move(limit));
  const int64_t bytes = static_cast<int64_t>(parameters.pages_per_pass()) * ::sysconf(_SC_PAGESIZE);
  if (Judgement fits = TakeMemory(bytes + PageTableBytes(bytes), "the region", memory);
      !fits.ok()) {
    return fits;
  }
  std::unique_ptr<KernelMapping> mapping;
  if (Judgement mapped =
          KernelMapping::Map(static_cast<size_t>(bytes), policy, HugePages::kNever, mapping);
      !mapped.ok()) {
    return mapped;
  }
  faults.reset(new KernelFaults(parameters, policy, std::move(mapping)));
  return {};
}

int KernelFaults::Touch(Task& task, TaskProgress progress) {
  std::byte* page = mapping_->data() + task.offset;
  std::byte* const end = page + share_bytes_;
  for (int64_t i = 0; page != end; ++i, page += page_bytes_) {
    progress.See(i);
    TouchLines(page, num_lines_);
  }
  return 0;
}

Judgement KernelFaults::Conclude(std::span<const BufferPlacement> placements,
                                 v1::WorkerResult& result) const {
  const auto pages = SumPlacements(placements);
  if (!pages) return {};
  AddPlacement("region-pages", "move_pages", *pages, result);
  return JudgeKernelPlacement(policy_, *pages, /*unit_pages=*/1);
}

Judgement EngineFaults::Create(const FaultParameters& parameters, const settings::Variant& variant,
                               std::vector<MemoryLimit> memory,
                               std::shared_ptr<EngineFaults>& faults) {
  const uint64_t pages = parameters.pages_per_pass();
  std::unique_ptr<EngineTarget> target;
  if (Judgement created =
          CreatePageTarget(variant, parameters.tasks, pages, std::move(memory), target);
      !created.ok()) {
    return created;
  }
  std::shared_ptr<EngineFaults> made(new EngineFaults(parameters, std::move(target)));
  memory::RegionLayout layout;
  const auto count = static_cast<size_t>(parameters.tasks);
  const uint64_t tallies = layout.Add(sizeof(NodeTally) * count, kFalseSharingRange);
  Result<std::unique_ptr<memory::Region>> region = memory::Region::Create(layout);
  if (!region.ok()) return Failed("no_memory", region.status().message());
  made->region_ = std::move(*region);
  made->tallies_ = {made->region_->At<NodeTally>(tallies), count};
  faults = std::move(made);
  return {};
}

EngineFaults::Task EngineFaults::Attach(int task_index) {
  const auto pages = static_cast<size_t>(parameters_.pages_per_task);
  const auto index = static_cast<size_t>(task_index);
  return {&target_->Attach(task_index), index * pages, std::vector<memory::PageId>(pages), 0,
          &tallies_[index]};
}

int EngineFaults::Prepare(Task& task) {
  allocator_->FreeBulk(task.worker->pages(), {task.pages.data(), task.num_held});
  task.num_held = 0;
  return 0;
}

void EngineFaults::CountPages(Task& task) {
  CountByNode(*allocator_, {task.pages.data(), task.num_held}, 1, *task.tally);
}

int EngineFaults::Touch(Task& task, TaskProgress progress) {
  memory::PageWorker& worker = task.worker->pages();
  if (parameters_.is_page_path) {
    return TouchEach(task, progress, [&](uint64_t) { return allocator_->Allocate(worker); });
  }
  // A region without a policy of its own goes by its task's.
  const memory::Policy policy = worker.policy.policy;
  return TouchEach(task, progress, [&](uint64_t index) {
    return allocator_->AllocateForFault(worker, policy, index);
  });
}

template <typename Allocate>
int EngineFaults::TouchEach(Task& task, TaskProgress progress, const Allocate& allocate) {
  const auto num_lines = static_cast<size_t>(parameters_.cachelines);
  for (size_t i = 0; i < task.pages.size(); ++i) {
    progress.See(static_cast<int64_t>(i));
    const memory::PageId page = allocate(task.first_index + i);
    if (page == memory::kNoPage) return ENOMEM;
    task.pages[i] = page;
    task.num_held = i + 1;
    TouchLines(allocator_->Address(page), num_lines);
  }
  return 0;
}

Counts EngineFaults::ReadCounts() const {
  Counts counts = target_->ReadCounts();
  for (const numa::PageRange& arena : allocator_->arenas()) {
    counts.push_back({"node" + std::to_string(arena.node) + "_pages", "count",
                      static_cast<int64_t>(SumOf(tallies_, arena.node))});
  }
  return counts;
}

}  // namespace pipeyard::load
