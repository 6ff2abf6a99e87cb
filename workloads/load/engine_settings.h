// What a variant's engine.* settings say, as the engine takes it.
//
// Thread safety: pure functions.
#pragma once

#include "base/status.h"
#include "proto/settings/variant.h"
#include "workloads/pipe/engine_config.h"

namespace pipeyard::load {

// Every engine.* switch but the host's weights, which only the host knows. An absent
// engine.policy is placement.memory's; where that is absent too, the default policy. Precondition:
// the variant's target is the engine. Errors: kInvalidArgument names the setting and what was
// meant.
Result<pipe::EngineConfig> EngineConfigOf(const settings::Variant& variant);

// True where the variant's target is the engine and its topology an emulated one, whether or not
// that can be made here.
bool IsEmulated(const settings::Variant& variant);

}  // namespace pipeyard::load
