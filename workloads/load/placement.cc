#include "workloads/load/placement.h"

#include "workloads/numa/placement.h"

namespace pipeyard::load {
namespace {

// Message buffers are where the worker's memory policy put them; no node is expected yet.
constexpr numa::NodeId kAnyNode = -1;

}  // namespace

void AddPlacement(const std::string& memory, const std::string& evidence,
                  const std::map<numa::NodeId, int64_t>& pages, v1::WorkerResult& result) {
  v1::Placement& placement = *result.add_placements();
  placement.set_memory(memory);
  placement.set_evidence(evidence);
  for (const auto& [node, count] : pages) (*placement.mutable_pages_per_node())[node] = count;
}

void AddBufferPlacement(const std::vector<MessageBuffer>& buffers, v1::WorkerResult& result) {
  std::map<numa::NodeId, int64_t> pages;
  for (const MessageBuffer& buffer : buffers) {
    const Result<numa::PlacementCount> count =
        numa::CountPages(numa::SystemNumaKernel(), buffer.data(), buffer.size(), kAnyNode);
    if (!count.ok()) return;
    for (const auto& [node, number] : count->pages_on) pages[node] += number;
  }
  AddPlacement("message-buffers", "move_pages", pages, result);
}

}  // namespace pipeyard::load
