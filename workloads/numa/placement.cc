#include "workloads/numa/placement.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>

namespace pipeyard::numa {
namespace {

// Pages asked about in one call: the kernel copies that many addresses and answers.
constexpr size_t kQueryBatch = 1024;

Status QueryInto(NumaKernel& kernel, const std::vector<void*>& pages, PlacementCount& count) {
  std::vector<int> nodes(std::min(kQueryBatch, pages.size()));
  for (size_t at = 0; at < pages.size(); at += kQueryBatch) {
    const size_t size = std::min(kQueryBatch, pages.size() - at);
    const int error = kernel.QueryNodes({pages.data() + at, size}, {nodes.data(), size});
    if (error != 0) {
      return FailedPrecondition("placement proof: move_pages: " + ErrnoText(error));
    }
    for (size_t i = 0; i < size; ++i) {
      if (nodes[i] >= 0) {
        ++count.pages_on[nodes[i]];
      } else if (nodes[i] == -ENOENT) {
        ++count.not_present;
      } else {
        ++count.unknown;
      }
    }
  }
  return Status::Ok();
}

}  // namespace

int64_t PlacementCount::misplaced() const {
  int64_t pages = 0;
  for (const auto& [node, on] : pages_on) {
    if (node != expected) pages += on;
  }
  return pages;
}

Result<std::vector<PlacementCount>> VerifyPlacement(
    NumaKernel& kernel, std::span<const PageRange> ranges, uint64_t page_bytes,
    const std::function<bool(size_t, uint64_t)>& is_allocated) {
  std::vector<PlacementCount> counts;
  for (size_t r = 0; r < ranges.size(); ++r) {
    const PageRange& range = ranges[r];
    PlacementCount count;
    count.expected = range.node;
    std::vector<void*> pages;
    const uint64_t num_pages = range.size_bytes / page_bytes;
    for (uint64_t page = 0; page < num_pages;) {
      if (!is_allocated(r, page)) {
        ++page;
        continue;
      }
      const uint64_t first = page;
      for (; page < num_pages && is_allocated(r, page); ++page) {
        pages.push_back(range.address + page * page_bytes);
      }
      const int error =
          kernel.PopulateRead(range.address + first * page_bytes, (page - first) * page_bytes);
      if (error != 0) {
        return FailedPrecondition("placement proof: map allocated pages: " + ErrnoText(error));
      }
    }
    PIPEYARD_RETURN_IF_ERROR(QueryInto(kernel, pages, count));
    counts.push_back(std::move(count));
  }
  return counts;
}

Result<PlacementCount> CountPages(NumaKernel& kernel, const void* address, uint64_t size_bytes,
                                  NodeId expected) {
  const auto page_bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(address) / page_bytes * page_bytes;
  const auto end = reinterpret_cast<uintptr_t>(address) + size_bytes;
  std::vector<void*> pages;
  for (uintptr_t at = begin; at < end; at += page_bytes)
    pages.push_back(reinterpret_cast<void*>(at));
  PlacementCount count;
  count.expected = expected;
  PIPEYARD_RETURN_IF_ERROR(QueryInto(kernel, pages, count));
  return count;
}

}  // namespace pipeyard::numa
