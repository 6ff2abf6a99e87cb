// What a result says where the target's pipes are larger than the variant asked for.
//
// Thread safety: pure.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "pipeyard/v1/worker.pb.h"

namespace pipeyard::load {

inline void AddResolvedPipeSize(int64_t asked_bytes, int64_t size_bytes, v1::WorkerResult& result) {
  if (size_bytes == asked_bytes) return;
  v1::ResolvedValue& resolved = *result.add_resolved();
  resolved.set_name("pipe_bytes");
  resolved.set_as_written(FormatBytes(asked_bytes));
  resolved.set_resolved(FormatBytes(size_bytes));
}

}  // namespace pipeyard::load
