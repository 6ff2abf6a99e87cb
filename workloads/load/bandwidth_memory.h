// The memory of the workload `bandwidth`, for both targets (BandwidthTasks): the pages of each
// task's arrays, placed by the attempt's policy.
//
// Both classes answer for their target as KernelPipes and EnginePipes do (Describe, OnlineNode,
// FastpathPages, ReadCounts, Conclude).
//
// Private to workloads/load. Thread safety: Attach, Take and Give by each task for itself; the rest
// is the owner's.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "pipeyard/v1/worker.pb.h"
#include "proto/settings/variant.h"
#include "workloads/load/commanded_placement.h"
#include "workloads/load/counts.h"
#include "workloads/load/engine_target.h"
#include "workloads/load/judgement.h"
#include "workloads/load/kernel_memory.h"
#include "workloads/load/memory_limit.h"
#include "workloads/load/memory_sweep.h"
#include "workloads/load/node_statistics.h"
#include "workloads/memory/page_allocator.h"

namespace pipeyard::load {

struct BandwidthParameters {
  SweepOperation operation = SweepOperation::kRead;
  int tasks = 1;
  int64_t pages_of_array = 1;  // of each array of each task

  int64_t pages_of_task() const { return NumArrays(operation) * pages_of_array; }
  int64_t num_pages() const { return tasks * pages_of_task(); }
};

// One task's pages, array after array, and the node of each (-1: the kernel does not tell).
struct TaskPages {
  std::vector<std::byte*> pages;
  std::vector<numa::NodeId> nodes;
};

// Pages of all tasks by node; nothing where the kernel did not tell of one.
using RegionPages = std::optional<std::map<numa::NodeId, int64_t>>;

// Anonymous memory, with huge pages where the host gives them.
class KernelBandwidth {
 public:
  struct Worker {
    size_t offset = 0;
  };

  // As KernelPolicyOf(), NodeMemoryLimits() and KernelMapping::Map();
  // not_applicable/memory_limit.
  static Judgement Create(const BandwidthParameters& parameters, const settings::Variant& variant,
                          std::vector<MemoryLimit> memory,
                          std::shared_ptr<KernelBandwidth>& bandwidth);

  // As of KernelPipes.
  void SetPlacement(CommandedPlacement placement) { placement_ = std::move(placement); }
  Worker Attach(int task_index) const {
    static_cast<void>(PinWorker(placement_, task_index));
    return {static_cast<size_t>(task_index) * task_bytes_};
  }
  // Pages of the task, written for the first time. Returns 0 or an errno.
  int Take(Worker& worker, TaskPages& pages);
  void Give(Worker& /*worker*/) {}

  Counts ReadCounts() const { return ReadNodeStatistics(); }
  void Describe(v1::WorkerResult& /*result*/) const {}
  void OnlineNode(numa::NodeId /*node*/) {}
  uint64_t FastpathPages() const { return 0; }
  // void/placement_not_obtained.
  Judgement Conclude(const RegionPages& pages, v1::WorkerResult& result) const;

 private:
  KernelBandwidth(const BandwidthParameters& parameters, const KernelPolicy& policy,
                  std::unique_ptr<KernelMapping> mapping);

  CommandedPlacement placement_;
  const BandwidthParameters parameters_;
  const size_t page_bytes_;
  const size_t task_bytes_;
  const KernelPolicy policy_;
  const std::unique_ptr<KernelMapping> mapping_;
};

// Pages of the engine's arenas, each allocated by its fault path for an index of the region.
class EngineBandwidth {
 public:
  struct Worker {
    pipe::Worker* worker = nullptr;
    uint64_t first_index = 0;
    std::vector<memory::PageId> pages = {};
  };

  // As CreatePageTarget().
  static Judgement Create(const BandwidthParameters& parameters, const settings::Variant& variant,
                          std::vector<MemoryLimit> memory,
                          std::shared_ptr<EngineBandwidth>& bandwidth);

  Worker Attach(int task_index) {
    return {&target_->Attach(task_index),
            static_cast<uint64_t>(task_index * parameters_.pages_of_task())};
  }
  int Take(Worker& worker, TaskPages& pages);
  void Give(Worker& worker);

  Counts ReadCounts() const { return target_->ReadCounts(); }
  void Describe(v1::WorkerResult& result) const { target_->Describe(result); }
  void OnlineNode(numa::NodeId node) { target_->OnlineNode(node); }
  uint64_t FastpathPages() const { return target_->FastpathPages(); }
  Judgement Conclude(const RegionPages& pages, v1::WorkerResult& result);

 private:
  EngineBandwidth(const BandwidthParameters& parameters, std::unique_ptr<EngineTarget> target)
      : parameters_(parameters), target_(std::move(target)) {}

  const BandwidthParameters parameters_;
  const std::unique_ptr<EngineTarget> target_;
};

}  // namespace pipeyard::load
