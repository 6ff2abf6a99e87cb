// What a result says of where memory lay.
//
// Thread safety: pure, but for the kernel that is asked.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "pipeyard/v1/worker.pb.h"
#include "workloads/load/message_buffer.h"
#include "workloads/numa/node_mask.h"

namespace pipeyard::load {

// `memory` and `evidence` are words of v1::Placement.
void AddPlacement(const std::string& memory, const std::string& evidence,
                  const std::map<numa::NodeId, int64_t>& pages, v1::WorkerResult& result);

// Asks the kernel about every page of the buffers. A kernel that does not tell leaves the proof
// out.
void AddBufferPlacement(const std::vector<MessageBuffer>& buffers, v1::WorkerResult& result);

}  // namespace pipeyard::load
