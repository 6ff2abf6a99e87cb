// What a result says of where memory lay.
//
// Thread safety: pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "pipeyard/v1/worker.pb.h"
#include "workloads/numa/node_mask.h"

namespace pipeyard::load {

// `memory` and `evidence` are words of v1::Placement.
void AddPlacement(const std::string& memory, const std::string& evidence,
                  const std::map<numa::NodeId, int64_t>& pages, v1::WorkerResult& result);

}  // namespace pipeyard::load
