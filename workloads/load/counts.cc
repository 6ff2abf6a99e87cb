#include "workloads/load/counts.h"

#include <algorithm>

namespace pipeyard::load {

Counts Difference(const Counts& before, const Counts& after) {
  Counts difference = after;
  for (Count& count : difference) {
    if (count.is_since_start) continue;
    const auto earlier = std::find_if(before.begin(), before.end(),
                                      [&](const Count& other) { return other.name == count.name; });
    if (earlier != before.end()) count.value -= earlier->value;
  }
  return difference;
}

}  // namespace pipeyard::load
