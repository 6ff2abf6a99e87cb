#include "workloads/load/engine_pipes.h"

#include <fmt/format.h>
#include <unistd.h>

#include <bit>

#include "base/units.h"

namespace pipeyard::load {
namespace {

// A ring is one block of pages at most: beyond, F_SETPIPE_SZ says ENOMEM, as the kernel's does.
Judgement CheckRing(int64_t pipe_bytes) {
  const int64_t page_bytes = ::sysconf(_SC_PAGESIZE);
  const int64_t max_ring_bytes = page_bytes << memory::kMaxOrder;
  const auto max_slots = std::bit_floor(static_cast<uint64_t>(max_ring_bytes) / sizeof(pipe::Slot));
  const int64_t max_bytes = static_cast<int64_t>(max_slots) * page_bytes;
  if (pipe_bytes <= max_bytes) return {};
  return NotApplicable("pipe_size_limit",
                       fmt::format("pipe_bytes {}: the engine's pipes hold at most {}, whose ring "
                                   "is the largest block of pages",
                                   FormatBytes(pipe_bytes), FormatBytes(max_bytes)));
}

}  // namespace

EnginePipes::EnginePipes(std::unique_ptr<EngineTarget> target)
    : target_(std::move(target)),
      engine_(&target_->engine()),
      size_bytes_(static_cast<int64_t>(engine_->pipe(0).capacity_bytes())) {}

Judgement EnginePipes::Create(const settings::Variant& variant, int num_workers, int num_pipes,
                              int64_t pipe_bytes, std::shared_ptr<EnginePipes>& pipes,
                              std::vector<MemoryLimit> memory) {
  if (Judgement checked = CheckRing(pipe_bytes); !checked.ok()) return checked;
  EngineRequest request;
  request.num_workers = num_workers;
  request.pipes.assign(static_cast<size_t>(num_pipes),
                       pipe::PipeSetup{.bytes = static_cast<uint64_t>(pipe_bytes)});
  std::unique_ptr<EngineTarget> target;
  if (Judgement created = EngineTarget::Create(variant, request, std::move(memory), target);
      !created.ok()) {
    return created;
  }
  pipes.reset(new EnginePipes(std::move(target)));
  return {};
}

}  // namespace pipeyard::load
