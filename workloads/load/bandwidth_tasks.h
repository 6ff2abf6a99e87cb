// BandwidthTasks: what the tasks of the workload `bandwidth` do, on either target
// (RunRateLoops()): chunk after chunk of their arrays, round and round.
//
// `Memory` is KernelBandwidth or EngineBandwidth.
//
// Private to workloads/load. Thread safety: as RunRateLoops() uses it.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "workloads/load/bandwidth_memory.h"
#include "workloads/load/node_tally.h"
#include "workloads/load/rate_loop.h"
#include "workloads/memory/monotonic.h"
#include "workloads/memory/region.h"

namespace pipeyard::load {

// SHARED. Bytes by node that one task went through.
struct alignas(kFalseSharingRange) BytesByNode {
  uint64_t bytes[numa::kMaxNodes];

  BytesByNode& operator-=(const BytesByNode& other) {
    for (size_t i = 0; i < numa::kMaxNodes; ++i) bytes[i] -= other.bytes[i];
    return *this;
  }
};
PIPEYARD_CHECK_SHARED(BytesByNode);

// SHARED. What one task found of its pages before it began.
struct alignas(kFalseSharingRange) TaskPlacement {
  // Pages by node; all 0 and `unknown` where the kernel did not tell.
  NodeTally pages;
  std::atomic<uint64_t> unknown;
  // What reading gave: it has to go somewhere.
  std::atomic<uint64_t> checksum;
};
PIPEYARD_CHECK_SHARED(TaskPlacement);

template <typename Memory>
class BandwidthTasks {
 public:
  using Tally = BytesByNode;

  // Pages of each array that one operation goes through: some ten microseconds.
  static constexpr size_t kChunkPages = 64;

  struct Task {
    typename Memory::Worker worker;
    TaskPages memory = {};
    // By chunk: bytes on each node.
    std::vector<std::vector<std::pair<numa::NodeId, uint64_t>>> chunks = {};
    size_t next_chunk = 0;
    BytesByNode gone_through = {};
    TaskPlacement* placement = nullptr;
    int error = 0;  // of its preparation
  };

  // Errors: kResourceExhausted.
  static Result<std::shared_ptr<BandwidthTasks>> Make(const BandwidthParameters& parameters,
                                                      std::shared_ptr<Memory> memory) {
    const auto count = static_cast<size_t>(parameters.tasks);
    memory::RegionLayout layout;
    const uint64_t placements = layout.Add(sizeof(TaskPlacement) * count, kFalseSharingRange);
    std::shared_ptr<BandwidthTasks> tasks(new BandwidthTasks(parameters, std::move(memory)));
    PIPEYARD_ASSIGN_OR_RETURN(tasks->region_, memory::Region::Create(layout));
    tasks->placements_ = {tasks->region_->template At<TaskPlacement>(placements), count};
    return tasks;
  }

  Task Attach(int task_index) {
    Task task{.worker = memory_->Attach(task_index)};
    task.placement = &placements_[static_cast<size_t>(task_index)];
    task.error = memory_->Take(task.worker, task.memory);
    if (task.error != 0) return task;
    for (const numa::NodeId node : task.memory.nodes) {
      if (node == numa::kNoNode) {
        task.placement->unknown.fetch_add(1, std::memory_order_relaxed);
      } else {
        task.placement->pages.Add(node, 1);
      }
    }
    CutChunks(task);
    return task;
  }

  StepResult Step(Task& task) {
    if (task.error != 0) return {.error = task.error};
    const size_t chunk = task.next_chunk;
    task.next_chunk = chunk + 1 == task.chunks.size() ? 0 : chunk + 1;
    const auto [begin, end] = PagesOfChunk(chunk);
    const int64_t began = memory::MonotonicNanos();
    const uint64_t checksum = Sweep(task, begin, end);
    const int64_t elapsed = memory::MonotonicNanos() - began;
    task.placement->checksum.store(checksum, std::memory_order_relaxed);
    for (const auto& [node, bytes] : task.chunks[chunk]) task.gone_through.bytes[node] += bytes;
    return {.units = (end - begin) * num_arrays_ * page_bytes_, .elapsed_ns = elapsed};
  }

  void Finish(Task& task) { memory_->Give(task.worker); }
  void Interrupt() {}

  void Describe(v1::WorkerResult& result) const { memory_->Describe(result); }
  void OnlineNode(numa::NodeId node) { memory_->OnlineNode(node); }
  uint64_t FastpathPages() const { return memory_->FastpathPages(); }
  Judgement Conclude(v1::WorkerResult& result) { return memory_->Conclude(SumPages(), result); }

  Counts ReadCounts() const { return memory_->ReadCounts(); }

  void ReadTally(const Task& task, BytesByNode& tally) const { tally = task.gone_through; }

  Counts CountsOf(std::span<const BytesByNode> tallies) const {
    Counts counts;
    for (size_t node = 0; node < numa::kMaxNodes; ++node) {
      uint64_t bytes = 0;
      for (const BytesByNode& tally : tallies) bytes += tally.bytes[node];
      if (bytes == 0) continue;
      counts.push_back(
          {"node" + std::to_string(node) + "_bytes", "B", static_cast<int64_t>(bytes)});
    }
    return counts;
  }

 private:
  BandwidthTasks(const BandwidthParameters& parameters, std::shared_ptr<Memory> memory)
      : parameters_(parameters),
        num_arrays_(static_cast<size_t>(NumArrays(parameters.operation))),
        pages_of_array_(static_cast<size_t>(parameters.pages_of_array)),
        page_bytes_(static_cast<size_t>(::sysconf(_SC_PAGESIZE))),
        memory_(std::move(memory)) {}

  // Of each array.
  std::pair<size_t, size_t> PagesOfChunk(size_t chunk) const {
    const size_t begin = chunk * kChunkPages;
    return {begin, std::min(begin + kChunkPages, pages_of_array_)};
  }

  void CutChunks(Task& task) const {
    const size_t num_chunks = (pages_of_array_ + kChunkPages - 1) / kChunkPages;
    for (size_t chunk = 0; chunk < num_chunks; ++chunk) {
      const auto [begin, end] = PagesOfChunk(chunk);
      std::array<uint64_t, numa::kMaxNodes> bytes = {};
      for (size_t array = 0; array < num_arrays_; ++array) {
        for (size_t page = begin; page < end; ++page) {
          const numa::NodeId node = task.memory.nodes[array * pages_of_array_ + page];
          if (node != numa::kNoNode) bytes[static_cast<size_t>(node)] += page_bytes_;
        }
      }
      auto& by_node = task.chunks.emplace_back();
      for (size_t node = 0; node < bytes.size(); ++node) {
        if (bytes[node] != 0) by_node.emplace_back(static_cast<numa::NodeId>(node), bytes[node]);
      }
    }
  }

  uint64_t Sweep(const Task& task, size_t begin, size_t end) const {
    uint64_t checksum = 0;
    for (size_t page = begin; page < end; ++page) {
      std::byte* pages[kMaxArrays] = {};
      for (size_t array = 0; array < num_arrays_; ++array) {
        pages[array] = task.memory.pages[array * pages_of_array_ + page];
      }
      checksum ^= SweepPage(parameters_.operation, pages, page_bytes_);
    }
    return checksum;
  }

  RegionPages SumPages() const {
    std::map<numa::NodeId, int64_t> pages;
    for (const TaskPlacement& placement : placements_) {
      if (placement.unknown.load(std::memory_order_relaxed) != 0) return std::nullopt;
      for (numa::NodeId node = 0; node < numa::kMaxNodes; ++node) {
        const uint64_t count = placement.pages.counts[node].load(std::memory_order_relaxed);
        if (count != 0) pages[node] += static_cast<int64_t>(count);
      }
    }
    return pages;
  }

  const BandwidthParameters parameters_;
  const size_t num_arrays_;
  const size_t pages_of_array_;
  const size_t page_bytes_;
  const std::shared_ptr<Memory> memory_;
  std::unique_ptr<memory::Region> region_;
  std::span<TaskPlacement> placements_;  // by task, in the region
};

}  // namespace pipeyard::load
