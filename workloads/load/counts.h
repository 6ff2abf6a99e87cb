// Counts of what a mechanism did, by name, as readings whose difference over the measured window is
// stored.
//
// Thread safety: values and pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pipeyard::load {

struct Count {
  std::string name;  // "minor_faults"
  std::string unit;  // "count", "ns", "B"
  int64_t value = 0;
  // Since the start, not over the window: a maximum, or what is done before the window begins.
  bool is_since_start = false;
};
using Counts = std::vector<Count>;

// What was added between two readings of the same counters; a counter that only `after` has counts
// from 0.
Counts Difference(const Counts& before, const Counts& after);

}  // namespace pipeyard::load
