#include "workloads/load/engine_pipes.h"

#include <utility>

namespace pipeyard::load {

EnginePipes::EnginePipes(std::unique_ptr<EngineTarget> target)
    : target_(std::move(target)),
      engine_(&target_->engine()),
      size_bytes_(static_cast<int64_t>(engine_->pipe(0).capacity_bytes())) {}

Judgement EnginePipes::Create(const settings::Variant& variant, int num_workers, int num_pipes,
                              int64_t pipe_bytes, std::shared_ptr<EnginePipes>& pipes,
                              std::vector<MemoryLimit> memory) {
  if (Judgement checked = EngineTarget::CheckPipeSize(pipe_bytes); !checked.ok()) return checked;
  EngineRequest request;
  request.num_workers = num_workers;
  request.pipes.assign(static_cast<size_t>(num_pipes),
                       pipe::PipeSetup{.bytes = static_cast<uint64_t>(pipe_bytes)});
  Result<std::optional<AgingRequest>> aging =
      AgingRequestOf(variant, static_cast<uint64_t>(num_pipes), /*num_makers=*/1);
  if (!aging.ok()) return Failed("not_supported", aging.status().message());
  request.aging = std::move(*aging);
  std::unique_ptr<EngineTarget> target;
  if (Judgement created = EngineTarget::Create(variant, request, std::move(memory), target);
      !created.ok()) {
    return created;
  }
  pipes.reset(new EnginePipes(std::move(target)));
  return {};
}

}  // namespace pipeyard::load
