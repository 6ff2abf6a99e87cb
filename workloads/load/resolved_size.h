// What a result says where the target's pipes are larger than the variant asked for.
//
// Thread safety: pure.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "pipeyard/v1/worker.pb.h"
#include "workloads/load/result_fields.h"

namespace pipeyard::load {

inline void AddResolvedPipeSize(int64_t asked_bytes, int64_t size_bytes, v1::WorkerResult& result) {
  if (size_bytes == asked_bytes) return;
  AddResolved("pipe_bytes", FormatBytes(asked_bytes), FormatBytes(size_bytes), result);
}

}  // namespace pipeyard::load
