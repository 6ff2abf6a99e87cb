// PassBarrier: where tasks meet between the passes of a measurement, while no time is taken.
//
// The task that comes last acts for all of them, and may leave it to the owner to let them go on.
//
// Thread safety: thread-safe, between processes too. Ownership: lives in shared memory; all zero
// bytes is a barrier at which nobody waits.
#pragma once

#include <atomic>
#include <climits>
#include <cstdint>

#include "base/units.h"
#include "workloads/load/phase.h"
#include "workloads/memory/futex.h"
#include "workloads/memory/shared.h"

namespace pipeyard::load {

// SHARED
class alignas(kFalseSharingRange) PassBarrier {
 public:
  // Waits for all `count` tasks. The last one calls `act` while the others wait, and lets them go
  // where it returns true; else somebody calls Release(). What tasks wrote before is visible to
  // `act`, and what it wrote to all of them after. False where the gate has entered kAbort.
  template <typename Act>
  bool Await(int count, const PhaseGate& gate, const Act& act) {
    const uint32_t generation = generation_.load(std::memory_order_acquire);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<uint32_t>(count)) {
      arrived_.store(0, std::memory_order_relaxed);
      if (act()) Release();
    }
    while (generation_.load(std::memory_order_acquire) == generation) {
      if (gate.Current() == Phase::kAbort) return false;
      memory::FutexWait(&generation_, generation, Nanos(-1));
    }
    return gate.Current() != Phase::kAbort;
  }
  void Release() {
    generation_.fetch_add(1, std::memory_order_release);
    WakeAll();
  }
  // For whoever has entered kAbort: a task on its way to sleep misses it, so repeat.
  void WakeAll() { memory::FutexWake(&generation_, INT_MAX); }

 private:
  memory::AtomicWord generation_;
  alignas(kFalseSharingRange) std::atomic<uint32_t> arrived_;
};
PIPEYARD_CHECK_SHARED(PassBarrier);

}  // namespace pipeyard::load
