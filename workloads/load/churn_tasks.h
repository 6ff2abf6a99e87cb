// ChurnTasks: what the tasks of the workload `churn` do, on either target (RunRateLoops()).
//
// Private to workloads/load. Thread safety: as RunRateLoops() uses it.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "workloads/load/churn_pipes.h"
#include "workloads/load/rate_loop.h"
#include "workloads/memory/monotonic.h"
#include "workloads/memory/shared.h"

namespace pipeyard::load {

enum class ChurnOperation {
  kCreate,  // a new pipe in the place of the task's oldest, which is closed
  kResize,  // the next of the task's pipes to the next of 1, 2, 4, ... 256 slots
};

struct ChurnParameters {
  ChurnOperation operation = ChurnOperation::kCreate;
  int tasks = 1;
  int window = 1;  // pipes that live at a time, of each task
  int64_t pipe_bytes = 65536;
  int64_t held_slots = 0;  // of each pipe that is resized, a page in each
};

// SHARED. What the resizes of one task came to.
struct alignas(kFalseSharingRange) ResizeTally {
  // Rings of at most 128 slots are slab objects, larger ones are not (kernel-mechanisms.md A8).
  uint64_t slab;
  uint64_t slab_ns;
  uint64_t large;
  uint64_t large_ns;
  uint64_t busy;     // EBUSY: more slots hold data than there would be
  uint64_t refused;  // EPERM: a limit of the user

  ResizeTally& operator-=(const ResizeTally& other) {
    slab -= other.slab;
    slab_ns -= other.slab_ns;
    large -= other.large;
    large_ns -= other.large_ns;
    busy -= other.busy;
    refused -= other.refused;
    return *this;
  }
};
PIPEYARD_CHECK_SHARED(ResizeTally);

template <typename Pipes>
class ChurnTasks {
 public:
  using Tally = ResizeTally;
  struct Task {
    typename Pipes::Worker worker = {};
    std::vector<typename Pipes::Pipe> pipes = {};
    size_t next = 0;
    int next_order = 0;
    ResizeTally tally = {};
    int error = 0;  // of its preparation
  };

  ChurnTasks(const ChurnParameters& parameters, std::shared_ptr<Pipes> pipes)
      : parameters_(parameters), pipes_(std::move(pipes)), page_bytes_(::sysconf(_SC_PAGESIZE)) {}

  Task Attach(int task_index) {
    Task task;
    task.worker = pipes_->Attach(task_index);
    task.pipes.resize(static_cast<size_t>(parameters_.window));
    if (parameters_.operation == ChurnOperation::kCreate) return task;
    for (typename Pipes::Pipe& pipe : task.pipes) {
      task.error = pipes_->Create(task.worker, parameters_.pipe_bytes, pipe);
      if (task.error == 0) task.error = pipes_->Fill(task.worker, pipe, parameters_.held_slots);
      if (task.error != 0) break;
    }
    return task;
  }

  StepResult Step(Task& task) {
    if (task.error != 0) return {.error = task.error};
    typename Pipes::Pipe& pipe = task.pipes[task.next];
    task.next = task.next + 1 == task.pipes.size() ? 0 : task.next + 1;
    return parameters_.operation == ChurnOperation::kCreate ? Recreate(task, pipe)
                                                            : Resize(task, pipe);
  }

  void Finish(Task& task) {
    for (typename Pipes::Pipe& pipe : task.pipes) {
      if (Pipes::IsOpen(pipe)) pipes_->Close(task.worker, pipe);
    }
  }

  void Interrupt() { pipes_->Interrupt(); }
  void Describe(v1::WorkerResult& result) const { pipes_->Describe(result); }
  void OnlineNode(numa::NodeId node) { pipes_->OnlineNode(node); }
  uint64_t FastpathPages() const { return pipes_->FastpathPages(); }
  Judgement Conclude(v1::WorkerResult& result) { return pipes_->Conclude(result); }

  Counts ReadCounts() const { return pipes_->ReadCounts(); }
  void ReadTally(const Task& task, ResizeTally& tally) const { tally = task.tally; }

  Counts CountsOf(std::span<const ResizeTally> tallies) const {
    Counts counts;
    if (parameters_.operation == ChurnOperation::kCreate) return counts;
    const auto add = [&](const char* name, const char* unit, uint64_t ResizeTally::*field) {
      uint64_t sum = 0;
      for (const ResizeTally& tally : tallies) sum += tally.*field;
      counts.push_back({name, unit, static_cast<int64_t>(sum)});
    };
    add("resizes_slab", "count", &ResizeTally::slab);
    add("resize_time_slab", "ns", &ResizeTally::slab_ns);
    add("resizes_large", "count", &ResizeTally::large);
    add("resize_time_large", "ns", &ResizeTally::large_ns);
    add("resizes_busy", "count", &ResizeTally::busy);
    add("resizes_refused", "count", &ResizeTally::refused);
    return counts;
  }

 private:
  static constexpr int kNumOrders = 9;     // 1 to 256 slots
  static constexpr int kMaxSlabOrder = 7;  // 128 slots

  StepResult Recreate(Task& task, typename Pipes::Pipe& pipe) {
    const int64_t began = memory::MonotonicNanos();
    if (Pipes::IsOpen(pipe)) pipes_->Close(task.worker, pipe);
    const int error = pipes_->Create(task.worker, parameters_.pipe_bytes, pipe);
    return {.error = error, .units = 1, .elapsed_ns = memory::MonotonicNanos() - began};
  }

  StepResult Resize(Task& task, typename Pipes::Pipe& pipe) {
    const int order = task.next_order;
    task.next_order = (order + 1) % kNumOrders;
    const int64_t began = memory::MonotonicNanos();
    const int error = pipes_->Resize(task.worker, pipe, page_bytes_ << order);
    const int64_t elapsed = memory::MonotonicNanos() - began;
    ResizeTally& tally = task.tally;
    if (error == EBUSY) {
      ++tally.busy;
    } else if (error == EPERM) {
      ++tally.refused;
    } else if (error != 0) {
      return {.error = error};
    } else {
      const bool is_slab = order <= kMaxSlabOrder;
      ++(is_slab ? tally.slab : tally.large);
      (is_slab ? tally.slab_ns : tally.large_ns) += static_cast<uint64_t>(elapsed);
    }
    return {.units = 1, .elapsed_ns = elapsed};
  }

  const ChurnParameters parameters_;
  const std::shared_ptr<Pipes> pipes_;
  const int64_t page_bytes_;
};

}  // namespace pipeyard::load
