// EnginePipes: pipes of the engine as a target of the load loops.
//
// Worker threads run where they are allowed to, as those of target kernel do; each has one of the
// allowed CPUs as its own in the engine's eyes, in turn, from which its nearest memory follows.
//
// Thread safety: as KernelPipes: any number of workers in Write and Read, each end closed once by
// the last worker that uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "pipeyard/v1/worker.pb.h"
#include "proto/settings/variant.h"
#include "workloads/load/counts.h"
#include "workloads/load/judgement.h"
#include "workloads/load/pipe_ends.h"
#include "workloads/pipe/engine.h"

namespace pipeyard::load {

class EnginePipes {
 public:
  using Worker = pipe::Worker*;

  // An engine with the variant's switches, `num_workers` workers and `num_pipes` pipes of at least
  // `pipe_bytes`.
  static Judgement Create(const settings::Variant& variant, int num_workers, int num_pipes,
                          int64_t pipe_bytes, std::shared_ptr<EnginePipes>& pipes);

  EnginePipes(const EnginePipes&) = delete;
  EnginePipes& operator=(const EnginePipes&) = delete;

  // Of each pipe.
  int64_t size_bytes() const { return static_cast<int64_t>(engine_->pipe(0).capacity_bytes()); }

  Worker Attach(int worker_index) { return &engine_->worker(worker_index); }
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

  // For tests.
  pipe::Engine& engine() { return *engine_; }

  // The engine's counters over all workers.
  Counts ReadCounts() const;

  // After the workers have ended: adds the proof of where the engine's pages lie and what the
  // result says of the engine. void/placement_not_obtained where pages lie on other nodes than
  // their arena's; failed/internal where pages do not add up.
  Judgement Conclude(v1::WorkerResult& result);

 private:
  explicit EnginePipes(std::unique_ptr<pipe::Engine> engine) : engine_(std::move(engine)) {}

  static int64_t BytesOrError(const pipe::IoResult& result) {
    return result.error != 0 ? -result.error : result.bytes;
  }
  Judgement ProvePlacement(v1::WorkerResult& result);

  const std::unique_ptr<pipe::Engine> engine_;
};

// Switches of the variant that cannot act on messages of this size ("engine.page_cache").
std::vector<std::string> InertSwitches(const settings::Variant& variant, int64_t message_bytes);

}  // namespace pipeyard::load
