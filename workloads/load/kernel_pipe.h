// KernelPipe: pipe(2) as a target of the load loops.
//
// Thread safety: Write and Read may be called by any number of threads at once; each end is closed
// once, by the last thread that uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "pipeyard/v1/worker.pb.h"
#include "workloads/load/counts.h"
#include "workloads/load/judgement.h"
#include "workloads/load/node_statistics.h"

namespace pipeyard::load {

class KernelPipe {
 public:
  // Nothing belongs to one thread.
  struct Worker {};

  // A pipe that holds at least `pipe_bytes`. The kernel rounds up to a power of two of pages;
  // size_bytes() says what it became. not_applicable/pipe_size_limit names the limit and what it
  // would have to be; void/pipe_size_not_obtained where the kernel gave less without an error.
  static Judgement Create(int64_t pipe_bytes, std::shared_ptr<KernelPipe>& pipe);

  KernelPipe(const KernelPipe&) = delete;
  KernelPipe& operator=(const KernelPipe&) = delete;
  ~KernelPipe();

  int64_t size_bytes() const { return size_bytes_; }

  Worker Attach(int /*worker_index*/) { return {}; }
  // Bytes moved, 0 for end of file (Read), or a negative errno. Blocks as the system calls do.
  int64_t Write(Worker& worker, const std::byte* data, size_t size);
  int64_t Read(Worker& worker, std::byte* data, size_t size);

  void CloseWriteEnd(Worker& worker);
  void CloseReadEnd(Worker& worker);
  // Lets no thread sleep in Write or Read for ever: nothing to do here, signals interrupt system
  // calls.
  void Interrupt() {}

  // The kernel does not say what its pipes did; the machine's page allocations per node stand in
  // their place.
  Counts ReadCounts() const { return ReadNodeStatistics(); }

  // Nothing to add to a result.
  Judgement Conclude(v1::WorkerResult& /*result*/) { return {}; }

 private:
  KernelPipe(int read_end, int write_end) : read_end_(read_end), write_end_(write_end) {}

  static void Close(int& end);

  // -1 once closed.
  int read_end_;
  int write_end_;
  int64_t size_bytes_ = 0;
};

}  // namespace pipeyard::load
