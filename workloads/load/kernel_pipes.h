// KernelPipes: pipe(2), some of them, as a target of the load loops.
//
// Thread safety: Write and Read may be called by any number of workers at once; each end is closed
// once in a process, by the last thread that uses it. Creating them makes the process ignore
// SIGPIPE from then on: a write without readers returns EPIPE.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "pipeyard/v1/worker.pb.h"
#include "workloads/load/commanded_placement.h"
#include "workloads/load/counts.h"
#include "workloads/load/judgement.h"
#include "workloads/load/memory_limit.h"
#include "workloads/load/node_statistics.h"
#include "workloads/load/pipe_ends.h"

namespace pipeyard::load {

class KernelPipes {
 public:
  // Nothing belongs to one worker.
  struct Worker {};

  // `num_pipes` pipes that hold at least `pipe_bytes` each. The kernel rounds up to a power of two
  // of pages; size_bytes() says what it became. not_applicable/pipe_size_limit and
  // not_applicable/file_limit name the limit and what it would have to be;
  // void/pipe_size_not_obtained where the kernel gave less without an error.
  // not_applicable/memory_limit where what they can hold does not fit into `memory`: those pages
  // belong to no process, and the one that the kernel kills for want of memory may be another.
  static Judgement Create(int num_pipes, int64_t pipe_bytes, std::shared_ptr<KernelPipes>& pipes,
                          std::vector<MemoryLimit> memory = {});

  KernelPipes(const KernelPipes&) = delete;
  KernelPipes& operator=(const KernelPipes&) = delete;
  ~KernelPipes();

  // Of each pipe.
  int64_t size_bytes() const { return size_bytes_; }

  // Where it commands so, each worker stays on its CPU; before the workers start.
  void SetPlacement(CommandedPlacement placement) { placement_ = std::move(placement); }
  Worker Attach(int worker_index) {
    // Refused only where the CPU is gone from the cpuset, which CheckPlacement() at the end sees.
    static_cast<void>(PinWorker(placement_, worker_index));
    return {};
  }
  // Bytes moved, 0 for end of file (Read), or a negative errno. Blocks as the system calls do.
  int64_t Write(Worker& /*worker*/, int pipe, const std::byte* data, size_t size) {
    const ssize_t written = ::write(EndsOf(pipe).write, data, size);
    return written < 0 ? -errno : written;
  }
  int64_t Read(Worker& /*worker*/, int pipe, std::byte* data, size_t size) {
    const ssize_t read = ::read(EndsOf(pipe).read, data, size);
    return read < 0 ? -errno : read;
  }

  void CloseWriteEnd(Worker& /*worker*/, int pipe) { Close(EndsOf(pipe).write); }
  void CloseReadEnd(Worker& /*worker*/, int pipe) { Close(EndsOf(pipe).read); }

  // In a worker process: closes every end but those, as hackbench's children do; else the readers
  // would never see the end of file.
  void KeepInChild(const PipeEnds& used);
  // In the owner, once every worker process has been started: closes all ends.
  void ReleaseInParent();

  // Lets no worker sleep in Write or Read for ever: nothing to do here, signals interrupt system
  // calls.
  void Interrupt() {}

  // The kernel does not say what its pipes did; the machine's page allocations per node stand in
  // their place.
  Counts ReadCounts() const { return ReadNodeStatistics(); }

  // The kernel knows of its nodes by itself.
  void OnlineNode(int /*node*/) {}
  uint64_t FastpathPages() const { return 0; }

  // Nothing to add to a result.
  void Describe(v1::WorkerResult& /*result*/) const {}
  Judgement Conclude(v1::WorkerResult& /*result*/) { return {}; }

 private:
  // -1 once closed.
  struct Ends {
    int read = -1;
    int write = -1;
  };

  KernelPipes() = default;

  Judgement AddPipe(int64_t pipe_bytes, int num_pipes);
  Ends& EndsOf(int pipe) { return ends_[static_cast<size_t>(pipe)]; }
  static void Close(int& end);

  CommandedPlacement placement_;
  std::vector<Ends> ends_;
  int64_t size_bytes_ = 0;
};

}  // namespace pipeyard::load
