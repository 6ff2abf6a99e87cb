// EnginePipes: pipes of the engine as a target of the load loops.
//
// Workers run where they are allowed to, as those of target kernel do; each has one of the allowed
// CPUs as its own in the engine's eyes, in turn, from which its nearest memory follows. On an
// emulated topology the CPUs are virtual, and each worker stays on the host's CPU that its virtual
// one stands on.
//
// Thread safety: as KernelPipes: any number of workers in Write and Read, each end closed once by
// the last worker that uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pipeyard/v1/worker.pb.h"
#include "proto/settings/variant.h"
#include "workloads/load/counts.h"
#include "workloads/load/judgement.h"
#include "workloads/load/memory_limit.h"
#include "workloads/load/pipe_ends.h"
#include "workloads/pipe/engine.h"

namespace pipeyard::load {

class EnginePipes {
 public:
  using Worker = pipe::Worker*;

  // An engine with the variant's switches, `num_workers` workers and `num_pipes` pipes of at least
  // `pipe_bytes`. not_applicable/no_such_node where the policy names nodes that are not there,
  // not_applicable/memory_limit where the region does not fit into
  // `memory`.
  static Judgement Create(const settings::Variant& variant, int num_workers, int num_pipes,
                          int64_t pipe_bytes, std::shared_ptr<EnginePipes>& pipes,
                          std::vector<MemoryLimit> memory = {});

  EnginePipes(const EnginePipes&) = delete;
  EnginePipes& operator=(const EnginePipes&) = delete;

  // Of each pipe, as they were made.
  int64_t size_bytes() const { return size_bytes_; }

  Worker Attach(int worker_index);
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
  // Another node with memory is there: no allocation passes its policy by from now on.
  // An emulated topology does not care.
  void OnlineNode(numa::NodeId node);
  // Pages that fastpaths have allocated so far.
  uint64_t FastpathPages() const;

  pipe::Engine& engine() { return *engine_; }

  // The engine's counters over all workers.
  Counts ReadCounts() const;

  // Before the load: adds what the result says of the engine whatever comes, the switches that
  // cannot act.
  void Describe(v1::WorkerResult& result) const;
  // After the workers have ended: adds the proof of where the engine's pages and objects lay.
  // void/placement_not_obtained where pages lie on other nodes than the engine's map says;
  // failed/internal where pages or objects do not add up.
  Judgement Conclude(v1::WorkerResult& result);

 private:
  explicit EnginePipes(std::unique_ptr<pipe::Engine> engine);

  static int64_t BytesOrError(const pipe::IoResult& result) {
    return result.error != 0 ? -result.error : result.bytes;
  }
  // While the pipes live: pages of their objects.
  Judgement ProveObjects();
  Judgement ProvePages(v1::WorkerResult& result);
  Judgement CheckGivenBack() const;

  const std::unique_ptr<pipe::Engine> engine_;
  const int64_t size_bytes_;
  bool is_resident_ = true;
  std::vector<std::string> inert_switches_;
  // Pages of the pipes' objects, per node, by move_pages; empty where the kernel did not tell.
  std::map<numa::NodeId, int64_t> object_pages_;
};

}  // namespace pipeyard::load
