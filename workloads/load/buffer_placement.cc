#include "workloads/load/buffer_placement.h"

#include <algorithm>

#include "workloads/load/placement.h"
#include "workloads/numa/placement.h"

namespace pipeyard::load {
namespace {

// A worker's memory is where its memory policy put it; no node is expected.
constexpr numa::NodeId kAnyNode = -1;

// A query lists every page; of so much memory at a time.
constexpr size_t kQueryBytes = size_t{256} << 20;

}  // namespace

BufferPlacement AskPlacement(const void* data, size_t size_bytes) {
  BufferPlacement placement = {};
  for (size_t at = 0; at < size_bytes; at += kQueryBytes) {
    const Result<numa::PlacementCount> count =
        numa::CountPages(numa::SystemNumaKernel(), static_cast<const std::byte*>(data) + at,
                         std::min(kQueryBytes, size_bytes - at), kAnyNode);
    if (!count.ok()) return {};
    for (const auto& [node, pages] : count->pages_on) {
      if (node >= 0 && node < numa::kMaxNodes) {
        placement.pages_on[node] += static_cast<uint32_t>(pages);
      }
    }
  }
  placement.is_known = 1;
  return placement;
}

std::optional<std::map<numa::NodeId, int64_t>> SumPlacements(
    std::span<const BufferPlacement> placements) {
  std::map<numa::NodeId, int64_t> pages;
  for (const BufferPlacement& placement : placements) {
    if (placement.is_known == 0) return std::nullopt;
    for (numa::NodeId node = 0; node < numa::kMaxNodes; ++node) {
      if (placement.pages_on[node] != 0) pages[node] += placement.pages_on[node];
    }
  }
  return pages;
}

void AddBufferPlacement(std::span<const BufferPlacement> placements, v1::WorkerResult& result) {
  if (const auto pages = SumPlacements(placements)) {
    AddPlacement("message-buffers", "move_pages", *pages, result);
  }
}

}  // namespace pipeyard::load
