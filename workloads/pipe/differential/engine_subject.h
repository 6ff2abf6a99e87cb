// An engine made for a comparison: the kernel's limits, this process's capabilities, one worker for
// each actor.
//
// Thread safety: as EngineSystem. Ownership: the subject owns the engine.
#pragma once

#include <memory>

#include "workloads/pipe/differential/comparison.h"
#include "workloads/pipe/differential/engine_system.h"

namespace pipeyard::pipe::differential {

// Holds as many pipes of its user as KernelBallast does.
Result<std::unique_ptr<Engine>> MakeEngine(const RunSettings& settings);

class EngineSubject : public Subject {
 public:
  explicit EngineSubject(std::unique_ptr<Engine> engine);

  PipeSystem& system() override { return system_; }
  Status CheckAtRest() override;
  Engine& engine() { return *engine_; }

 private:
  std::unique_ptr<Engine> engine_;
  const uint64_t slots_at_rest_;
  EngineSystem system_;
};

}  // namespace pipeyard::pipe::differential
