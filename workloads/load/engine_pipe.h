// EnginePipe: one pipe of the engine as a target of the load loops.
//
// Worker threads run where they are allowed to, as those of target kernel do; each has one of the
// allowed CPUs as its own in the engine's eyes, in turn, from which its nearest memory follows.
//
// Thread safety: as KernelPipe: any number of workers in Write and Read, each end closed once by
// the last worker that uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "pipeyard/v1/worker.pb.h"
#include "proto/settings/variant.h"
#include "workloads/load/counts.h"
#include "workloads/load/judgement.h"
#include "workloads/pipe/engine.h"

namespace pipeyard::load {

class EnginePipe {
 public:
  using Worker = pipe::Worker*;

  // An engine with the variant's switches, `num_workers` workers and one pipe of at least
  // `pipe_bytes`.
  static Judgement Create(const settings::Variant& variant, int num_workers, int64_t pipe_bytes,
                          std::shared_ptr<EnginePipe>& pipe);

  EnginePipe(const EnginePipe&) = delete;
  EnginePipe& operator=(const EnginePipe&) = delete;

  int64_t size_bytes() const { return static_cast<int64_t>(pipe_.capacity_bytes()); }

  Worker Attach(int worker_index) { return &engine_->worker(worker_index); }
  // Bytes moved, 0 for end of file (Read), or a negative errno.
  int64_t Write(Worker worker, const std::byte* data, size_t size) {
    return BytesOrError(pipe_.Write(*worker, data, size));
  }
  int64_t Read(Worker worker, std::byte* data, size_t size) {
    return BytesOrError(pipe_.Read(*worker, data, size));
  }

  void CloseWriteEnd(Worker worker) { static_cast<void>(pipe_.CloseWriter(*worker)); }
  void CloseReadEnd(Worker worker) { static_cast<void>(pipe_.CloseReader(*worker)); }
  void Interrupt() { engine_->Stop(); }

  // The engine's counters over all workers.
  Counts ReadCounts() const;

  // After the workers have ended: adds the proof of where the engine's pages lie and what the
  // result says of the engine. void/placement_not_obtained where pages lie on other nodes than
  // their arena's; failed/internal where pages do not add up.
  Judgement Conclude(v1::WorkerResult& result);

 private:
  explicit EnginePipe(std::unique_ptr<pipe::Engine> engine)
      : engine_(std::move(engine)), pipe_(engine_->pipe(0)) {}

  static int64_t BytesOrError(const pipe::IoResult& result) {
    return result.error != 0 ? -result.error : result.bytes;
  }
  Judgement ProvePlacement(v1::WorkerResult& result);

  const std::unique_ptr<pipe::Engine> engine_;
  pipe::Pipe& pipe_;
};

// Switches of the variant that cannot act on messages of this size ("engine.page_cache").
std::vector<std::string> InertSwitches(const settings::Variant& variant, int64_t message_bytes);

}  // namespace pipeyard::load
