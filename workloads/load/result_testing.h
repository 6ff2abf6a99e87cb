// Looks into results, for tests.
//
// Tests only. Thread safety: pure.
#pragma once

#include <gtest/gtest.h>

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

}  // namespace pipeyard::load
