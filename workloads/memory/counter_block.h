// Counters of one worker: on cache lines of its own, written by that worker alone, summed by
// whoever asks.
//
// Thread safety: Add and Max by the owning worker; Get by anyone at any time (each value by itself
// is exact, several together need not belong to one moment until the worker has ended). No atomic
// read-modify-write.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string_view>
#include <vector>

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

// Over the blocks of all workers.
template <typename Id>
uint64_t ReduceCounter(const CounterBlock<Id>* blocks, int num_workers, Id id,
                       CounterReduction reduction) {
  uint64_t reduced = 0;
  for (int i = 0; i < num_workers; ++i) {
    const uint64_t value = blocks[i].Get(id);
    reduced = reduction == CounterReduction::kSum ? reduced + value : std::max(reduced, value);
  }
  return reduced;
}

// The same of each counter, in the order of `definitions`.
template <typename Id>
std::vector<CounterValue> ReduceCounters(
    const CounterDefinition (&definitions)[CounterBlock<Id>::kSize], const CounterBlock<Id>* blocks,
    int num_workers) {
  std::vector<CounterValue> values;
  for (size_t i = 0; i < CounterBlock<Id>::kSize; ++i) {
    const CounterDefinition& counter = definitions[i];
    values.push_back({counter.name, counter.unit,
                      ReduceCounter(blocks, num_workers, static_cast<Id>(i), counter.reduction),
                      counter.is_of_setup || counter.reduction == CounterReduction::kMax});
  }
  return values;
}

}  // namespace pipeyard::memory
