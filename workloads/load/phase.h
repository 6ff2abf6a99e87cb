// PhaseGate: where a measurement stands, and who has arrived there.
//
// Workers read the phase once per operation (one relaxed load of a line that changes four times in
// all); the owner moves it. It does not know how the owner waits: the owner is told through an
// eventfd that something has happened, and looks.
//
// Thread safety: thread-safe, between processes too. Ownership: lives in shared memory; all zero
// bytes is a gate at kSetUp that tells nobody.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>

#include "workloads/memory/futex.h"
#include "workloads/memory/shared.h"

namespace pipeyard::load {

// Between two contended fields, so that they share no cache line nor the pair that prefetching
// fetches.
inline constexpr size_t kFalseSharingRange = 128;

enum class Phase : uint32_t {
  kSetUp,    // workers prepare and arrive
  kWarmUp,   // the load runs, nothing is kept
  kMeasure,  // operations that end now are kept
  kStop,     // writers end after their operation, readers at end of file
  kAbort,    // everybody ends at once
};

// SHARED
class alignas(kFalseSharingRange) PhaseGate {
 public:
  // Before any worker runs. `event_fd` has the same number in every worker.
  void TellOwnerBy(int event_fd) { event_fd_plus_one_ = event_fd + 1; }

  // Memory order: relaxed. A worker that sees a phase late counts one operation more or less; what
  // it counted is published by its end.
  Phase Current() const { return static_cast<Phase>(phase_.load(std::memory_order_relaxed)); }
  // Never goes back: once a failing worker entered kAbort, it stays.
  void Enter(Phase phase) {
    const auto wanted = static_cast<uint32_t>(phase);
    uint32_t current = phase_.load(std::memory_order_relaxed);
    while (current < wanted &&
           !phase_.compare_exchange_weak(current, wanted, std::memory_order_acq_rel)) {
    }
    memory::FutexWake(&phase_, INT_MAX);
    if (phase == Phase::kAbort) TellOwner();
  }
  // Called by a worker that is ready; returns once the owner has left kSetUp.
  void ArriveAndWait() {
    Arrive();
    while (phase_.load(std::memory_order_acquire) == static_cast<uint32_t>(Phase::kSetUp)) {
      memory::FutexWait(&phase_, static_cast<uint32_t>(Phase::kSetUp), Nanos(-1));
    }
  }
  // Called by a worker that is ready and does not wait for the others.
  void Arrive() {
    arrived_.fetch_add(1, std::memory_order_acq_rel);
    TellOwner();
  }
  int num_arrived() const { return static_cast<int>(arrived_.load(std::memory_order_acquire)); }

 private:
  void TellOwner() const {
    if (event_fd_plus_one_ == 0) return;
    const uint64_t one = 1;
    // Fails only where the count would overflow: then the owner has been told often enough.
    while (::write(event_fd_plus_one_ - 1, &one, sizeof(one)) < 0 && errno == EINTR) {
    }
  }

  std::atomic<uint32_t> phase_;
  int32_t event_fd_plus_one_;
  alignas(kFalseSharingRange) std::atomic<uint32_t> arrived_;
};
PIPEYARD_CHECK_SHARED(PhaseGate);

}  // namespace pipeyard::load
