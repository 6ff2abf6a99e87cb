// What the workload `fault` touches, for both targets (RunFaultLoop()): a region of which each task
// has a share of its own.
//
// Both classes answer for their target as KernelPipes and EnginePipes do (Describe, OnlineNode,
// FastpathPages, ReadCounts, Conclude). Errors of calls are errno values, 0 for none.
//
// Private to workloads/load. Thread safety: each task uses its own Task; the rest is the owner's.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "pipeyard/v1/worker.pb.h"
#include "proto/settings/variant.h"
#include "workloads/load/buffer_placement.h"
#include "workloads/load/commanded_placement.h"
#include "workloads/load/counts.h"
#include "workloads/load/engine_target.h"
#include "workloads/load/fault_loop.h"
#include "workloads/load/fault_numbers.h"
#include "workloads/load/judgement.h"
#include "workloads/load/kernel_memory.h"
#include "workloads/load/node_statistics.h"
#include "workloads/load/node_tally.h"
#include "workloads/memory/region.h"

namespace pipeyard::load {

// Anonymous memory of 4 KiB pages (no huge ones), mapped by the owner; tasks in processes touch
// their own copy of it, as pft's do.
class KernelFaults {
 public:
  struct Task {
    size_t offset = 0;
  };

  // As KernelPolicyOf(), NodeMemoryLimits() and KernelMapping::Map();
  // not_applicable/memory_limit.
  static Judgement Create(const FaultParameters& parameters, const settings::Variant& variant,
                          std::vector<MemoryLimit> memory, std::shared_ptr<KernelFaults>& faults);

  // As of KernelPipes.
  void SetPlacement(CommandedPlacement placement) { placement_ = std::move(placement); }
  Task Attach(int task_index) const {
    static_cast<void>(PinWorker(placement_, task_index));
    return {static_cast<size_t>(task_index) * share_bytes_};
  }
  int Prepare(Task& task) { return mapping_->MapAnew(task.offset, share_bytes_); }
  int Touch(Task& task, TaskProgress progress);
  void CountPages(Task& /*task*/) {}
  BufferPlacement Prove(Task& task) const {
    return AskPlacement(mapping_->data() + task.offset, share_bytes_);
  }
  void Finish(Task& /*task*/) {}

  Counts ReadCounts() const { return ReadNodeStatistics(); }
  void Describe(v1::WorkerResult& /*result*/) const {}
  void OnlineNode(numa::NodeId /*node*/) {}
  uint64_t FastpathPages() const { return 0; }
  // void/placement_not_obtained.
  Judgement Conclude(std::span<const BufferPlacement> placements, v1::WorkerResult& result) const;

 private:
  KernelFaults(const FaultParameters& parameters, const KernelPolicy& policy,
               std::unique_ptr<KernelMapping> mapping);

  const int64_t page_bytes_;
  const size_t num_lines_;
  const size_t share_bytes_;
  const KernelPolicy policy_;
  CommandedPlacement placement_;
  const std::unique_ptr<KernelMapping> mapping_;
};

// Pages of the engine, each allocated for an index of the region by the fault path, or by the path
// of single pages, then written.
class EngineFaults {
 public:
  struct Task {
    pipe::Worker* worker = nullptr;
    uint64_t first_index = 0;
    std::vector<memory::PageId> pages;
    size_t num_held = 0;
    NodeTally* tally = nullptr;
  };

  // As CreatePageTarget().
  static Judgement Create(const FaultParameters& parameters, const settings::Variant& variant,
                          std::vector<MemoryLimit> memory, std::shared_ptr<EngineFaults>& faults);

  Task Attach(int task_index);
  int Prepare(Task& task);
  int Touch(Task& task, TaskProgress progress);
  void CountPages(Task& task);
  // The engine's own proof says it.
  BufferPlacement Prove(Task& /*task*/) const { return {}; }
  void Finish(Task& task) { static_cast<void>(Prepare(task)); }

  // The engine's, and the pages that passes got of each node.
  Counts ReadCounts() const;
  void Describe(v1::WorkerResult& result) const { target_->Describe(result); }
  void OnlineNode(numa::NodeId node) { target_->OnlineNode(node); }
  uint64_t FastpathPages() const { return target_->FastpathPages(); }
  Judgement Conclude(std::span<const BufferPlacement> /*placements*/, v1::WorkerResult& result) {
    return target_->Conclude(result);
  }

 private:
  EngineFaults(const FaultParameters& parameters, std::unique_ptr<EngineTarget> target)
      : parameters_(parameters),
        target_(std::move(target)),
        allocator_(&target_->engine().pages()) {}

  // `allocate(index of the region)` gives a page.
  template <typename Allocate>
  int TouchEach(Task& task, TaskProgress progress, const Allocate& allocate);

  const FaultParameters parameters_;
  const std::unique_ptr<EngineTarget> target_;
  memory::PageAllocator* const allocator_;
  std::unique_ptr<memory::Region> region_;
  std::span<NodeTally> tallies_;  // by task, in the region
};

}  // namespace pipeyard::load
