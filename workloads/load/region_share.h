// How a region is shared out among tasks: `region_bytes` and `tasks` of a variant in whole pages.
//
// Private to workloads/load. Thread safety: pure.
#pragma once

#include <fmt/format.h>

#include <cstdint>

#include "base/units.h"
#include "workloads/load/judgement.h"

namespace pipeyard::load {

// Each of `tasks` gets the same number of pages, in `arrays` parts of the same size; what does not
// divide is left out. not_applicable/region_bytes where a part would have none.
inline Judgement ShareOut(int64_t region_bytes, int64_t page_bytes, int64_t tasks, int64_t arrays,
                          int64_t& pages_of_part) {
  const int64_t parts = tasks * arrays;
  pages_of_part = region_bytes / page_bytes / parts;
  if (pages_of_part > 0) return {};
  return NotApplicable(
      "region_bytes",
      fmt::format("region_bytes {} has {} pages here, and {} tasks with {} array{} each need {}",
                  FormatBytes(region_bytes), region_bytes / page_bytes, tasks, arrays,
                  arrays == 1 ? "" : "s", FormatBytes(parts * page_bytes)));
}

}  // namespace pipeyard::load
