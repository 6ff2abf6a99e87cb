// Worker: whoever calls the engine — a thread, or the one thread of a forked process. It has a CPU
// of the topology for life, and through it lists of free pages, counters and a place to sleep that
// nobody shares.
//
// Thread safety: used by one thread at a time; Interrupt() by anyone. Ownership: the Engine owns
// it.
#pragma once

#include <cstdint>

#include "workloads/memory/page_allocator.h"
#include "workloads/memory/wait_queue.h"
#include "workloads/numa/topology.h"
#include "workloads/pipe/counters.h"

namespace pipeyard::pipe {

class alignas(memory::kCacheLine) Worker {
 public:
  int index() const { return index_; }
  // Of the topology; virtual where that is emulated.
  numa::CpuId cpu() const { return cpu_; }
  // The CPU of the host to run on.
  numa::CpuId host_cpu() const { return host_cpu_; }
  numa::NodeId node() const { return node_; }

  // Ends the present wait, or the next one, of this worker as a signal does: its call returns
  // EINTR, or what it has moved so far.
  void Interrupt() { memory::Interrupt(*wait_node_, memory::Interruption::kOnce); }

  // For the engine's own code, in calls that this worker makes.
  void Count(Counter counter, uint64_t amount = 1) { counters_->Add(counter, amount); }
  PipeCounters& counters() { return *counters_; }
  memory::PageWorker& pages() { return pages_; }
  memory::WaitNode& wait_node() { return *wait_node_; }
  // True at every kHoldSampling-th call.
  bool IsHoldSampled() {
    if (--until_hold_sample_ != 0) return false;
    until_hold_sample_ = kHoldSampling;
    return true;
  }

 private:
  friend class Engine;

  int index_ = 0;
  numa::CpuId cpu_ = 0;
  numa::CpuId host_cpu_ = 0;
  numa::NodeId node_ = 0;
  memory::PageWorker pages_;
  memory::WaitNode* wait_node_ = nullptr;
  PipeCounters* counters_ = nullptr;
  uint32_t until_hold_sample_ = 1;
};

}  // namespace pipeyard::pipe
