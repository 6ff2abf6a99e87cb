// Helpers of the engine's tests: waiting for a state without sleeping, seeds.
//
// Thread safety: thread-safe.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <thread>

#include "workloads/memory/monotonic.h"

namespace pipeyard::memory {

// Yields until `condition()` holds; false after a minute, so that a lost wake-up fails the test
// instead of hanging it.
template <typename Condition>
bool Eventually(const Condition& condition) {
  const int64_t deadline = MonotonicNanos() + int64_t{60} * 1'000'000'000;
  while (!condition()) {
    if (MonotonicNanos() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

// PIPEYARD_SEED, or `fallback`; printed, so that a failure can be repeated.
inline uint64_t TestSeed(uint64_t fallback) {
  const char* text = std::getenv("PIPEYARD_SEED");
  const uint64_t seed = text != nullptr ? std::strtoull(text, nullptr, 10) : fallback;
  std::cout << "PIPEYARD_SEED=" << seed << std::endl;
  return seed;
}

}  // namespace pipeyard::memory
