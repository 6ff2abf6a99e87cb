// Worker: whoever calls the engine — a thread, or the one thread of a forked process. It has a CPU
// of the topology for life, and through it lists of free pages, counters and a place to sleep that
// nobody shares; it acts for a user with certain capabilities.
//
// Thread safety: used by one thread at a time; Interrupt() by anyone. Ownership: the Engine owns
// it.
#pragma once

#include <atomic>
#include <cstdint>

#include "workloads/memory/object_allocator.h"
#include "workloads/memory/page_allocator.h"
#include "workloads/memory/policy.h"
#include "workloads/memory/wait_queue.h"
#include "workloads/numa/topology.h"
#include "workloads/pipe/counters.h"
#include "workloads/pipe/pipe_user.h"

namespace pipeyard::pipe {

// How many pipes one Poll() may look at; how many watches a worker may have.
inline constexpr uint32_t kMaxPollEntries = 64;
inline constexpr uint32_t kMaxWatches = 64;

// SHARED. A worker's places in queues beside that of its WaitNode.
struct alignas(memory::kCacheLine) WorkerEntries {
  memory::WaitEntry poll[kMaxPollEntries];
  memory::WaitEntry watches[kMaxWatches];
};
PIPEYARD_CHECK_SHARED(WorkerEntries);

// SHARED. Where the metadata lay that a worker allocated: objects by node, ever. Written by that
// worker alone.
struct alignas(memory::kCacheLine) MetadataByNode {
  std::atomic<uint64_t> infos[numa::kMaxNodes];
  std::atomic<uint64_t> rings[numa::kMaxNodes];
};
PIPEYARD_CHECK_SHARED(MetadataByNode);

class alignas(memory::kCacheLine) Worker {
 public:
  int index() const { return index_; }
  // Of the topology; virtual where that is emulated.
  numa::CpuId cpu() const { return cpu_; }
  // The CPU of the host to run on.
  numa::CpuId host_cpu() const { return host_cpu_; }
  numa::NodeId node() const { return node_; }

  // On whose behalf it acts. Everything at first belongs to user 0 with every capability.
  const PipeIdentity& identity() const { return identity_; }
  void SetIdentity(const PipeIdentity& identity) { identity_ = identity; }

  // Its memory policy, as set_mempolicy(2) sets it: interleaving starts anew.
  void SetPolicy(const memory::Policy& policy) { pages_.policy.SetPolicy(policy); }

  // Ends the present wait, or the next one, of this worker as a signal does: its call returns
  // EINTR, or what it has moved so far.
  void Interrupt() { memory::Interrupt(wait_node_->sleeper, memory::Interruption::kOnce); }

  // For the engine's own code, in calls that this worker makes.
  void Count(Counter counter, uint64_t amount = 1) { counters_->Add(counter, amount); }
  PipeCounters& counters() { return *counters_; }
  memory::PageWorker& pages() { return pages_; }
  memory::ObjectWorker& objects() { return objects_; }
  MetadataByNode& metadata_by_node() { return *metadata_by_node_; }
  memory::WaitNode& wait_node() { return *wait_node_; }
  memory::Sleeper& sleeper() { return wait_node_->sleeper; }
  WorkerEntries& entries() { return *entries_; }
  // Which of entries().watches are taken, by bit.
  uint64_t watches_in_use() const { return watches_in_use_; }
  void set_watches_in_use(uint64_t watches) { watches_in_use_ = watches; }
  // True at every kHoldSampling-th call.
  bool IsHoldSampled() {
    if (--until_hold_sample_ != 0) return false;
    until_hold_sample_ = kHoldSampling;
    return true;
  }
  // Whether this wait may spin before it sleeps: not for some waits after the CPU that it gave away
  // helped only others.
  bool MaySpin() {
    if (waits_without_spin_ == 0) return true;
    --waits_without_spin_;
    return false;
  }
  void StopSpinning() { waits_without_spin_ = kWaitsWithoutSpin; }

 private:
  friend class Engine;
  // A yield to a stranger costs up to some 4 ms; so many waits of a busy pipe take longer.
  static constexpr uint32_t kWaitsWithoutSpin = 1000;

  int index_ = 0;
  numa::CpuId cpu_ = 0;
  numa::CpuId host_cpu_ = 0;
  numa::NodeId node_ = 0;
  memory::PageWorker pages_;
  memory::WaitNode* wait_node_ = nullptr;
  PipeCounters* counters_ = nullptr;
  uint32_t until_hold_sample_ = 1;
  uint32_t waits_without_spin_ = 0;
  PipeIdentity identity_;
  WorkerEntries* entries_ = nullptr;
  uint64_t watches_in_use_ = 0;
  memory::ObjectWorker objects_;
  MetadataByNode* metadata_by_node_ = nullptr;
};

}  // namespace pipeyard::pipe
