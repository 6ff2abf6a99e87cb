#include "workloads/load/buffer_placement.h"

#include <map>

#include "workloads/load/placement.h"
#include "workloads/numa/placement.h"

namespace pipeyard::load {
namespace {

// Message buffers are where the worker's memory policy put them; no node is expected.
constexpr numa::NodeId kAnyNode = -1;

}  // namespace

BufferPlacement AskPlacement(const MessageBuffer& buffer) {
  BufferPlacement placement = {};
  const Result<numa::PlacementCount> count =
      numa::CountPages(numa::SystemNumaKernel(), buffer.data(), buffer.size(), kAnyNode);
  if (!count.ok()) return placement;
  placement.is_known = 1;
  for (const auto& [node, pages] : count->pages_on) {
    if (node >= 0 && node < numa::kMaxNodes) {
      placement.pages_on[node] += static_cast<uint32_t>(pages);
    }
  }
  return placement;
}

void AddBufferPlacement(std::span<const BufferPlacement> placements, v1::WorkerResult& result) {
  std::map<numa::NodeId, int64_t> pages;
  for (const BufferPlacement& placement : placements) {
    if (placement.is_known == 0) return;
    for (numa::NodeId node = 0; node < numa::kMaxNodes; ++node) {
      if (placement.pages_on[node] != 0) pages[node] += placement.pages_on[node];
    }
  }
  AddPlacement("message-buffers", "move_pages", pages, result);
}

}  // namespace pipeyard::load
