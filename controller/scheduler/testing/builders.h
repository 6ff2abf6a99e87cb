// Sweeps, hosts and frames for the tests of the controller's rooms.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "controller/scheduler/build_run.h"
#include "controller/spec/sweep.h"
#include "pipeyard/v1/agent.pb.h"

namespace pipeyard::scheduler {

// "00000000-0000-7000-8000-00000000000N".
std::string TestUuid(uint32_t n);

// transfer on the kernel's pipe, `arms` writer counts compared, with the first as the baseline.
spec::Sweep TestSweep(uint32_t arms, uint32_t repetitions);

// A connected host that can run transfer:kernel.
HostView TestHost(uint32_t n);
v1::Hello HelloOf(const HostView& host);

RunRequest TestRequest(uint32_t n);

// Every metric that transfer declares.
std::vector<v1::Metric> TransferMetrics();
// Frame 1, final, with all metrics where it is ok.
v1::Frame FinalFrame(const std::string& store_id, const std::string& attempt_id,
                     v1::Outcome outcome, const std::string& reason_code = "");

}  // namespace pipeyard::scheduler
