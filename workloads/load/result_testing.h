// Looks into results, for tests.
//
// Tests only. Thread safety: pure.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "pipeyard/v1/worker.pb.h"

namespace pipeyard::load {

// -1 and a failed test where there is no such counter.
inline int64_t CounterOf(const v1::WorkerResult& result, const std::string& name) {
  for (const v1::Counter& counter : result.counters()) {
    if (counter.name() == name) return counter.value();
  }
  ADD_FAILURE() << "no counter " << name;
  return -1;
}

// The result of an attempt with enough operations, where it counts them, `run(duration in ns)`: on
// a machine that is busy with other things, a short window may pass without.
template <typename Run>
v1::WorkerResult RunUntilItMoves(const Run& run) {
  constexpr int64_t kEnough = 100;
  v1::WorkerResult result;
  for (int64_t duration = 30'000'000; duration <= 20'000'000'000; duration *= 4) {
    result = run(duration);
    const auto is_too_few = [](const v1::Counter& counter) {
      return counter.name() == "operations" && counter.value() < kEnough;
    };
    const bool has_too_few =
        std::any_of(result.counters().begin(), result.counters().end(), is_too_few);
    if (!has_too_few && result.reason_code() != "no_operations") break;
  }
  return result;
}

}  // namespace pipeyard::load
