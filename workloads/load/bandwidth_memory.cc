#include "workloads/load/bandwidth_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "workloads/load/engine_pages.h"
#include "workloads/load/placement.h"
#include "workloads/numa/numa_kernel.h"

namespace pipeyard::load {
namespace {

// Pages of the largest huge page that anonymous memory gets.
constexpr int64_t kHugePagePages = 512;

// Pages asked about in one call.
constexpr size_t kQueryBatch = 1024;

// Fills array after array, so that pages come from where the policy of whoever does it says.
void FillArrays(const BandwidthParameters& parameters, size_t page_bytes,
                const std::vector<std::byte*>& pages) {
  const auto of_array = static_cast<size_t>(parameters.pages_of_array);
  for (size_t i = 0; i < pages.size(); ++i) {
    FillPage(pages[i], page_bytes, static_cast<int>(i / of_array));
  }
}

// -1 where the kernel does not tell.
void QueryNodes(const std::vector<std::byte*>& pages, std::vector<numa::NodeId>& nodes) {
  nodes.assign(pages.size(), numa::kNoNode);
  std::vector<void*> batch;
  for (size_t at = 0; at < pages.size(); at += kQueryBatch) {
    const size_t size = std::min(kQueryBatch, pages.size() - at);
    batch.assign(pages.begin() + static_cast<std::ptrdiff_t>(at),
                 pages.begin() + static_cast<std::ptrdiff_t>(at + size));
    if (numa::SystemNumaKernel().QueryNodes(batch, {nodes.data() + at, size}) != 0) {
      nodes.assign(pages.size(), numa::kNoNode);
      return;
    }
  }
  for (numa::NodeId& node : nodes) {
    if (node < 0 || node >= numa::kMaxNodes) node = numa::kNoNode;
  }
}

}  // namespace

KernelBandwidth::KernelBandwidth(const BandwidthParameters& parameters, const KernelPolicy& policy,
                                 std::unique_ptr<KernelMapping> mapping)
    : parameters_(parameters),
      page_bytes_(static_cast<size_t>(::sysconf(_SC_PAGESIZE))),
      task_bytes_(static_cast<size_t>(parameters.pages_of_task()) * page_bytes_),
      policy_(policy),
      mapping_(std::move(mapping)) {}

Judgement KernelBandwidth::Create(const BandwidthParameters& parameters,
                                  const settings::Variant& variant, std::vector<MemoryLimit> memory,
                                  std::shared_ptr<KernelBandwidth>& bandwidth) {
  KernelPolicy policy;
  if (Judgement read = KernelPolicyOf(variant, policy); !read.ok()) return read;
  for (MemoryLimit& limit : NodeMemoryLimits(policy)) memory.push_back(std::move(limit));
  const int64_t bytes = parameters.num_pages() * ::sysconf(_SC_PAGESIZE);
  if (Judgement fits = TakeMemory(bytes + PageTableBytes(bytes), "the region", memory);
      !fits.ok()) {
    return fits;
  }
  std::unique_ptr<KernelMapping> mapping;
  if (Judgement mapped =
          KernelMapping::Map(static_cast<size_t>(bytes), policy, HugePages::kAsHost, mapping);
      !mapped.ok()) {
    return mapped;
  }
  bandwidth.reset(new KernelBandwidth(parameters, policy, std::move(mapping)));
  return {};
}

int KernelBandwidth::Take(Worker& worker, TaskPages& pages) {
  for (size_t at = 0; at < task_bytes_; at += page_bytes_) {
    pages.pages.push_back(mapping_->data() + worker.offset + at);
  }
  FillArrays(parameters_, page_bytes_, pages.pages);
  QueryNodes(pages.pages, pages.nodes);
  return 0;
}

Judgement KernelBandwidth::Conclude(const RegionPages& pages, v1::WorkerResult& result) const {
  if (!pages) return {};
  AddPlacement("region-pages", "move_pages", *pages, result);
  return JudgeKernelPlacement(policy_, *pages, kHugePagePages);
}

Judgement EngineBandwidth::Create(const BandwidthParameters& parameters,
                                  const settings::Variant& variant, std::vector<MemoryLimit> memory,
                                  std::shared_ptr<EngineBandwidth>& bandwidth) {
  std::unique_ptr<EngineTarget> target;
  if (Judgement created =
          CreatePageTarget(variant, parameters.tasks, static_cast<uint64_t>(parameters.num_pages()),
                           std::move(memory), target);
      !created.ok()) {
    return created;
  }
  bandwidth.reset(new EngineBandwidth(parameters, std::move(target)));
  return {};
}

int EngineBandwidth::Take(Worker& worker, TaskPages& pages) {
  memory::PageAllocator& allocator = target_->engine().pages();
  memory::PageWorker& page_worker = worker.worker->pages();
  const memory::Policy policy = page_worker.policy.policy;
  const auto count = static_cast<uint64_t>(parameters_.pages_of_task());
  for (uint64_t i = 0; i < count; ++i) {
    const memory::PageId page =
        allocator.AllocateForFault(page_worker, policy, worker.first_index + i);
    if (page == memory::kNoPage) return ENOMEM;
    worker.pages.push_back(page);
    pages.pages.push_back(allocator.Address(page));
    pages.nodes.push_back(allocator.NodeOf(page));
  }
  FillArrays(parameters_, allocator.page_bytes(), pages.pages);
  return 0;
}

void EngineBandwidth::Give(Worker& worker) {
  target_->engine().pages().FreeBulk(worker.worker->pages(), worker.pages);
  worker.pages.clear();
}

Judgement EngineBandwidth::Conclude(const RegionPages& pages, v1::WorkerResult& result) {
  const bool is_emulated = target_->engine().topology().is_emulated();
  if (pages) AddPlacement("region-pages", is_emulated ? "emulated" : "engine-map", *pages, result);
  return target_->Conclude(result);
}

}  // namespace pipeyard::load
