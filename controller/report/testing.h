// Messages as the controller would answer, for the golden tests.
#pragma once

#include "controller/spec/sweep.h"
#include "pipeyard/v1/control.pb.h"

namespace pipeyard::report::testing {

// Along engine.page_cache on two hosts: every verdict, latencies, counters, reference rows,
// warnings.
v1::DiffResponse FactorDiff();
// Two runs with other boots; a cell of one side only.
// An emulated topology, where one configuration cannot differ.
v1::DiffResponse EmulatedDiff();
v1::DiffResponse RunsDiff();
v1::DiffRow StatRow();
// Two cells: retries, a void attempt, a failed self-check, placement.
v1::Run SomeRun();
v1::Host SomeHost();
spec::ReadResult SomeSweep();
v1::Plan SomePlan();

}  // namespace pipeyard::report::testing
