// Many random programs of several actors, whose calls may wait, on the kernel and on the engine;
// the first that shows a difference is shrunk and told.
//
// Thread safety: one call at a time.
#pragma once

#include <functional>
#include <memory>

#include "workloads/pipe/differential/comparison.h"
#include "workloads/pipe/differential/engine_system.h"

namespace pipeyard::pipe::differential {

// The engine's side; with a fault planted where a test wants one.
using EngineSystemMaker = std::function<std::unique_ptr<EngineSystem>(Engine&)>;
std::unique_ptr<EngineSystem> MakeEngineSystem(Engine& engine);

struct ActorReport {
  ComparisonReport report;
  uint64_t num_waits = 0;  // how often an actor was seen waiting
  bool is_usable = true;   // false: /proc does not tell what threads do here
};

// `settings.num_actors` from 2 on. The rest as Compare().
ActorReport CompareActors(const RunSettings& settings, const EngineSystemMaker& make_system,
                          uint64_t seed, uint64_t num_operations);

std::string ReplayActors(const Program& program, const EngineSystemMaker& make_system);

}  // namespace pipeyard::pipe::differential
