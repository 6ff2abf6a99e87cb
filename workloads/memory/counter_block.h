// Counters of one worker: on cache lines of its own, written by that worker alone, summed by
// whoever asks.
//
// Thread safety: Add and Max by the owning worker; Get by anyone at any time (each value by itself
// is exact, several together need not belong to one moment until the worker has ended). No atomic
// read-modify-write.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "workloads/memory/shared.h"

namespace pipeyard::memory {

// Compiled out to measure what counting costs.
#if defined(PIPEYARD_NO_COUNTERS)
inline constexpr bool kCountersEnabled = false;
#else
inline constexpr bool kCountersEnabled = true;
#endif

enum class CounterReduction { kSum, kMax };

// One counter's description. `name` is snake_case; units as in settings ("pages", "ns", "bytes",
// "count").
struct CounterDefinition {
  std::string_view name;
  std::string_view unit;
  CounterReduction reduction = CounterReduction::kSum;
  std::string_view help;
  // Counts what pipes cost at their creation and end: results give it since the start, not over the
  // measured window, before which pipes are made.
  bool is_of_setup = false;
};

// A counter over all workers, as results carry it.
struct CounterValue {
  std::string_view name;
  std::string_view unit;
  uint64_t value = 0;
  bool is_since_start = false;  // a maximum, or of setup: differences of readings mean nothing
};

// SHARED. `Id` is an enum class whose last enumerator is kCount.
template <typename Id>
struct alignas(kCacheLine) CounterBlock {
  static constexpr size_t kSize = static_cast<size_t>(Id::kCount);

  std::atomic<uint64_t> values[kSize];

  void Add(Id id, uint64_t amount = 1) {
    if constexpr (kCountersEnabled) {
      std::atomic<uint64_t>& value = values[static_cast<size_t>(id)];
      value.store(value.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
    }
  }
  void Max(Id id, uint64_t candidate) {
    if constexpr (kCountersEnabled) {
      std::atomic<uint64_t>& value = values[static_cast<size_t>(id)];
      if (candidate > value.load(std::memory_order_relaxed)) {
        value.store(candidate, std::memory_order_relaxed);
      }
    }
  }
  uint64_t Get(Id id) const {
    return values[static_cast<size_t>(id)].load(std::memory_order_relaxed);
  }
};

// Adds the value of one worker to that of the others.
inline uint64_t Reduce(CounterReduction reduction, uint64_t so_far, uint64_t value) {
  if (reduction == CounterReduction::kSum) return so_far + value;
  return value > so_far ? value : so_far;
}

}  // namespace pipeyard::memory
