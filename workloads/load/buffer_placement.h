// BufferPlacement: on which nodes the pages of one worker's memory lie. Only the process that
// touched a private page can ask for it, so each worker asks for its own.
//
// Thread safety: a value in shared memory, written by its worker, read after the worker's end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "pipeyard/v1/worker.pb.h"
#include "workloads/load/message_buffer.h"
#include "workloads/memory/shared.h"
#include "workloads/numa/node_mask.h"

namespace pipeyard::load {

// SHARED
struct BufferPlacement {
  uint32_t is_known;  // 0: the kernel did not tell, or nobody has asked
  uint32_t pages_on[numa::kMaxNodes];
};
PIPEYARD_CHECK_SHARED(BufferPlacement);

// Asks the kernel (move_pages) about every page of that memory, which has been touched.
BufferPlacement AskPlacement(const void* data, size_t size_bytes);
inline BufferPlacement AskPlacement(const MessageBuffer& buffer) {
  return AskPlacement(buffer.data(), buffer.size());
}

// Pages of all of them by node; nothing where the kernel did not tell one of them.
std::optional<std::map<numa::NodeId, int64_t>> SumPlacements(
    std::span<const BufferPlacement> placements);

// Their sum as "message-buffers". A kernel that did not tell one of them leaves the proof out.
void AddBufferPlacement(std::span<const BufferPlacement> placements, v1::WorkerResult& result);

}  // namespace pipeyard::load
