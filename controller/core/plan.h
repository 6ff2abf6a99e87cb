// What a sweep would become on the hosts known now: `sweep plan`.
//
// Thread safety: pure functions.
#pragma once

#include <span>
#include <vector>

#include "controller/scheduler/build_run.h"
#include "controller/spec/sweep.h"
#include "pipeyard/v1/control.pb.h"

namespace pipeyard::core {

// Precondition: `sweep` is valid. Where no host is selected the plan has none, and a note that says
// why. Expected times are sums of warm-up, duration and start-up over trials.
v1::Plan PlanOf(const spec::Sweep& sweep, std::span<const scheduler::HostView> hosts);

}  // namespace pipeyard::core
