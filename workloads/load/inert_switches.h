// Switches that cannot act: which of a variant's engine.* settings change nothing in what its
// workload does on this host's (or the emulated) nodes.
//
// A switch is inert where what the engine does is the same as with that switch at its default.
// What it does is reduced to the parts that the workload reaches (EffectiveSwitches): a fastpath
// counts only with one real node, an interleave only with two, a bulk algorithm only where pages
// are allocated in bulk under weights. Settings at their defaults are never named.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "proto/settings/variant.h"
#include "workloads/numa/topology.h"

namespace pipeyard::load {

// Names ascending: {"engine.interleave_bulk", "engine.page_cache"}. `topology` is the one that the
// engine runs on. Empty for other targets. Errors: as EngineConfigOf().
Result<std::vector<std::string>> InertSwitches(const settings::Variant& variant,
                                               const numa::Topology& topology, int64_t page_bytes);

}  // namespace pipeyard::load
