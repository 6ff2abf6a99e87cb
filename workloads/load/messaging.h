// The workload `messaging`: hackbench's pattern (kernel-mechanisms.md E1).
//
// All pipes are made before the first worker; every worker says that it is ready and waits for the
// signal to go; the time runs from that signal until the last worker has ended. Rates and times are
// those that hackbench prints.
//
// Thread safety: one call at a time in a process.
#pragma once

#include "pipeyard/v1/worker.pb.h"
#include "proto/settings/variant.h"
#include "workloads/load/judgement.h"
#include "workloads/load/messaging_numbers.h"
#include "workloads/load/surroundings.h"

namespace pipeyard::load {

MessagingParameters MessagingParametersOf(const settings::Variant& variant);

// Fills in what was measured; outcome and reason are the judgement's.
Judgement RunMessaging(const settings::Variant& variant, const Surroundings& surroundings,
                       v1::WorkerResult& result);

}  // namespace pipeyard::load
