// Looks into results, for tests.
//
// Tests only. Thread safety: pure.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "pipeyard/v1/worker.pb.h"
#include "workloads/numa/numa_kernel.h"

namespace pipeyard::load {

// -1 and a failed test where there is no such counter.
inline int64_t CounterOf(const v1::WorkerResult& result, const std::string& name) {
  for (const v1::Counter& counter : result.counters()) {
    if (counter.name() == name) return counter.value();
  }
  ADD_FAILURE() << "no counter " << name;
  return -1;
}

// This thread's memory bound to node 0 while the object lives, as `launch` does before it executes
// a worker whose placement.memory is bind:0.
class BoundToNode0 {
 public:
  BoundToNode0()
      : error_(numa::SystemNumaKernel().SetTaskPolicy(numa::PolicyMode::kBind,
                                                      numa::NodeMask::Of({0}))) {}
  ~BoundToNode0() {
    static_cast<void>(numa::SystemNumaKernel().SetTaskPolicy(numa::PolicyMode::kDefault, {}));
  }
  BoundToNode0(const BoundToNode0&) = delete;
  BoundToNode0& operator=(const BoundToNode0&) = delete;

  // 0, or why the kernel refused.
  int error() const { return error_; }

 private:
  const int error_;
};

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
