// Time as the project sees it, injected so that tests and the simulation can set it.
//
// Thread safety: implementations are thread-safe.
#pragma once

#include <atomic>

#include "base/units.h"

namespace pipeyard {

// A point of CLOCK_MONOTONIC of one boot of one machine; never sent to, nor compared on, another
// machine.
using MonotonicTime = Nanos;
// Nanoseconds since 1970-01-01T00:00:00Z. The controller's orders history; an agent's is stored and
// never compared.
using UtcTime = Nanos;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual MonotonicTime Now() const = 0;
  virtual UtcTime UtcNow() const = 0;
};

// The machine's clocks. The returned object lives for ever.
const Clock& SystemClock();

// A clock that moves only when told to. Starts at 0 monotonic, 2026-01-01T00:00:00Z.
class FakeClock final : public Clock {
 public:
  MonotonicTime Now() const override { return Nanos(monotonic_.load(std::memory_order_acquire)); }
  UtcTime UtcNow() const override { return Nanos(utc_.load(std::memory_order_acquire)); }
  // Moves both. `by` may not be negative.
  void Advance(Nanos by) {
    monotonic_.fetch_add(by.count(), std::memory_order_acq_rel);
    utc_.fetch_add(by.count(), std::memory_order_acq_rel);
  }
  // Steps the wall clock alone, as an administrator or NTP does.
  void StepUtc(Nanos by) { utc_.fetch_add(by.count(), std::memory_order_acq_rel); }

 private:
  std::atomic<int64_t> monotonic_{0};
  std::atomic<int64_t> utc_{1'767'225'600'000'000'000};
};

// "2026-11-30T21:55:09.123Z".
std::string FormatUtc(UtcTime time);

}  // namespace pipeyard
