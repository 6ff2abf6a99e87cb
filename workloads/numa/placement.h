// Placement proof: on which nodes pages really lie, as the kernel answers.
//
// Thread safety: pure functions over a NumaKernel.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "base/status.h"
#include "workloads/numa/numa_kernel.h"

namespace pipeyard::numa {

// Pages of one expectation, by where they are.
struct PlacementCount {
  NodeId expected = 0;
  std::map<NodeId, int64_t> pages_on;  // by node that the kernel named
  int64_t not_present = 0;             // never touched, or given back
  int64_t unknown = 0;                 // the kernel gave another error for the page

  int64_t misplaced() const;
};

// Asks about `ranges`, page by page of `page_bytes` (the host's page size), but only for pages
// where `is_allocated(range index, page index in the range)` is true. Populates those for reading
// first: another process may have touched them, this one not. One PlacementCount per range, in
// their order. Errors: kFailedPrecondition when the kernel does not answer (move_pages forbidden).
Result<std::vector<PlacementCount>> VerifyPlacement(
    NumaKernel& kernel, std::span<const PageRange> ranges, uint64_t page_bytes,
    const std::function<bool(size_t, uint64_t)>& is_allocated);

// Pages per node of memory that is known to be touched (message buffers).
Result<PlacementCount> CountPages(NumaKernel& kernel, const void* address, uint64_t size_bytes,
                                  NodeId expected);

}  // namespace pipeyard::numa
