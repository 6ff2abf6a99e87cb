#include "workloads/pipe/differential/engine_subject.h"

#include <unistd.h>

#include "workloads/pipe/differential/ballast.h"
#include "workloads/pipe/differential/comparison.h"
#include "workloads/pipe/differential/privilege.h"

namespace pipeyard::pipe::differential {
namespace {

constexpr uint32_t kUser = 0;

}  // namespace

Result<std::unique_ptr<Engine>> MakeEngine(const RunSettings& settings) {
  PIPEYARD_ASSIGN_OR_RETURN(const PipeLimits limits, KernelPipeLimits());
  PIPEYARD_ASSIGN_OR_RETURN(
      const numa::Topology host,
      numa::Topology::Make({{0, {0}, int64_t{1} << 30, {10}}}, {0}, /*is_emulated=*/false));
  const auto page_bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uint32_t ballast = CountBallastPipes(limits, page_bytes);
  EngineSetup setup;
  setup.config.page_cache = settings.page_cache;
  setup.config.wakeup = settings.wakeup;
  setup.config.poll_wakeup = settings.poll_wakeup;
  // One more, for whoever looks while the actors wait.
  setup.worker_cpus.assign(static_cast<size_t>(settings.num_actors) + 1, 0);
  setup.page_bytes = page_bytes;
  setup.limits = limits;
  setup.extra_pipes = kMaxFiles / 2 + ballast;
  setup.extra_slots = uint64_t{kMaxFiles / 2 * 1024} + uint64_t{ballast} * kBallastSlots;
  // Two pipes of GeneratorOptions::max_pipe_bytes each and their caches; the ballast holds no
  // pages.
  setup.arena_bytes = (uint64_t{12} << 20) + uint64_t{256} * page_bytes;
  PIPEYARD_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine, Engine::Create(setup, host));
  for (int i = 0; i < engine->num_workers(); ++i) {
    engine->worker(i).SetIdentity({kUser, EffectiveCapabilities()});
  }
  for (uint32_t i = 0; i < ballast; ++i) {
    const CreatedPipe pipe = engine->CreatePipe(engine->worker(0), {kBallastSlots * page_bytes});
    if (!pipe.ok()) return ErrnoStatus("ballast: create", pipe.error);
  }
  return engine;
}

EngineSubject::EngineSubject(std::unique_ptr<Engine> engine)
    : engine_(std::move(engine)), slots_at_rest_(engine_->UserSlots(kUser)), system_(*engine_) {}

Status EngineSubject::CheckAtRest() {
  if (engine_->UserSlots(kUser) != slots_at_rest_) {
    return Internal("the user is charged with " + std::to_string(engine_->UserSlots(kUser)) +
                    " slots, not " + std::to_string(slots_at_rest_));
  }
  return engine_->CheckConservation();
}

Result<std::unique_ptr<Subject>> MakeEngineSubject(const RunSettings& settings) {
  PIPEYARD_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine, MakeEngine(settings));
  return std::unique_ptr<Subject>(std::make_unique<EngineSubject>(std::move(engine)));
}

}  // namespace pipeyard::pipe::differential
