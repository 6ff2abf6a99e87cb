// What the workload `churn` does to pipes, for both targets: create, close, resize, fill.
//
// Both classes answer for their target as KernelPipes and EnginePipes do (Describe, OnlineNode,
// FastpathPages, ReadCounts, Conclude). Errors of calls are errno values, 0 for none.
//
// Thread safety: each worker uses its own Worker and the pipes that it made; the rest is the
// owner's.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "pipeyard/v1/worker.pb.h"
#include "workloads/load/commanded_placement.h"
#include "workloads/load/counts.h"
#include "workloads/load/engine_target.h"
#include "workloads/load/judgement.h"
#include "workloads/load/kernel_aging.h"
#include "workloads/load/node_statistics.h"

namespace pipeyard::load {

// pipe(2).
class KernelChurn {
 public:
  struct Worker {};
  struct Pipe {
    int read = -1;
    int write = -1;
  };

  // `aging` may be empty.
  KernelChurn(CommandedPlacement placement, std::unique_ptr<KernelAging> aging)
      : placement_(std::move(placement)), aging_(std::move(aging)) {}

  Worker Attach(int worker_index) {
    // As KernelPipes::Attach().
    static_cast<void>(PinWorker(placement_, worker_index));
    return {};
  }
  static bool IsOpen(const Pipe& pipe) { return pipe.read >= 0; }
  // pipe(2) and F_SETPIPE_SZ.
  int Create(Worker& worker, int64_t bytes, Pipe& pipe);
  void Close(Worker& worker, Pipe& pipe);
  int Resize(Worker& worker, Pipe& pipe, int64_t bytes);
  // Puts one page into each of `slots` slots.
  int Fill(Worker& worker, Pipe& pipe, int64_t slots);

  void Interrupt() {}
  Counts ReadCounts() const { return ReadNodeStatistics(); }
  void Describe(v1::WorkerResult& result) const {
    if (aging_ != nullptr) aging_->Describe(result);
  }
  void OnlineNode(numa::NodeId /*node*/) {}
  uint64_t FastpathPages() const { return 0; }
  Judgement Conclude(v1::WorkerResult& /*result*/) {
    return aging_ != nullptr ? aging_->Conclude() : Judgement{};
  }

 private:
  const CommandedPlacement placement_;
  const std::unique_ptr<KernelAging> aging_;
};

// The engine's.
class EngineChurn {
 public:
  using Worker = pipe::Worker*;
  using Pipe = pipe::Pipe;

  explicit EngineChurn(std::unique_ptr<EngineTarget> target) : target_(std::move(target)) {}

  Worker Attach(int worker_index) { return &target_->Attach(worker_index); }
  static bool IsOpen(const Pipe& pipe) { return pipe.IsValid(); }
  int Create(Worker& worker, int64_t bytes, Pipe& pipe);
  void Close(Worker& worker, Pipe& pipe);
  int Resize(Worker& worker, Pipe& pipe, int64_t bytes);
  int Fill(Worker& worker, Pipe& pipe, int64_t slots);

  void Interrupt() { target_->engine().Stop(); }
  Counts ReadCounts() const { return target_->ReadCounts(); }
  void Describe(v1::WorkerResult& result) const { target_->Describe(result); }
  void OnlineNode(numa::NodeId node) { target_->OnlineNode(node); }
  uint64_t FastpathPages() const { return target_->FastpathPages(); }
  Judgement Conclude(v1::WorkerResult& result) { return target_->Conclude(result); }

 private:
  const std::unique_ptr<EngineTarget> target_;
};

}  // namespace pipeyard::load
