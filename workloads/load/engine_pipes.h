// EnginePipes: pipes of the engine as a target of the load loops.
//
// Thread safety: as KernelPipes: any number of workers in Write and Read, each end closed once by
// the last worker that uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "pipeyard/v1/worker.pb.h"
#include "proto/settings/variant.h"
#include "workloads/load/counts.h"
#include "workloads/load/engine_target.h"
#include "workloads/load/judgement.h"
#include "workloads/load/memory_limit.h"
#include "workloads/load/pipe_ends.h"
#include "workloads/pipe/engine.h"

namespace pipeyard::load {

class EnginePipes {
 public:
  using Worker = pipe::Worker*;

  // An engine with the variant's switches, `num_workers` workers and `num_pipes` pipes of at least
  // `pipe_bytes`. not_applicable/pipe_size_limit where a ring would be too large for the
  // engine; else as EngineTarget::Create().
  static Judgement Create(const settings::Variant& variant, int num_workers, int num_pipes,
                          int64_t pipe_bytes, std::shared_ptr<EnginePipes>& pipes,
                          std::vector<MemoryLimit> memory = {});

  EnginePipes(const EnginePipes&) = delete;
  EnginePipes& operator=(const EnginePipes&) = delete;

  // Of each pipe, as they were made.
  int64_t size_bytes() const { return size_bytes_; }

  Worker Attach(int worker_index) { return &target_->Attach(worker_index); }
  // Bytes moved, 0 for end of file (Read), or a negative errno.
  int64_t Write(Worker worker, int pipe, const std::byte* data, size_t size) {
    return BytesOrError(engine_->pipe(pipe).Write(*worker, data, size));
  }
  int64_t Read(Worker worker, int pipe, std::byte* data, size_t size) {
    return BytesOrError(engine_->pipe(pipe).Read(*worker, data, size));
  }

  void CloseWriteEnd(Worker worker, int pipe) {
    static_cast<void>(engine_->pipe(pipe).CloseWriter(*worker));
  }
  void CloseReadEnd(Worker worker, int pipe) {
    static_cast<void>(engine_->pipe(pipe).CloseReader(*worker));
  }
  // Ends belong to no process: the engine counts them in the region.
  void KeepInChild(const PipeEnds& /*used*/) {}
  void ReleaseInParent() {}

  void Interrupt() { engine_->Stop(); }

  // As EngineTarget has them.
  pipe::Engine& engine() { return *engine_; }
  void OnlineNode(numa::NodeId node) { target_->OnlineNode(node); }
  uint64_t FastpathPages() const { return target_->FastpathPages(); }
  Counts ReadCounts() const { return target_->ReadCounts(); }
  void Describe(v1::WorkerResult& result) const { target_->Describe(result); }
  Judgement Conclude(v1::WorkerResult& result) { return target_->Conclude(result); }

 private:
  explicit EnginePipes(std::unique_ptr<EngineTarget> target);

  static int64_t BytesOrError(const pipe::IoResult& result) {
    return result.error != 0 ? -result.error : result.bytes;
  }

  const std::unique_ptr<EngineTarget> target_;
  pipe::Engine* const engine_;
  const int64_t size_bytes_;
};

}  // namespace pipeyard::load
