#include "workloads/load/placement.h"

namespace pipeyard::load {

void AddPlacement(const std::string& memory, const std::string& evidence,
                  const std::map<numa::NodeId, int64_t>& pages, v1::WorkerResult& result) {
  v1::Placement& placement = *result.add_placements();
  placement.set_memory(memory);
  placement.set_evidence(evidence);
  for (const auto& [node, count] : pages) (*placement.mutable_pages_per_node())[node] = count;
}

}  // namespace pipeyard::load
