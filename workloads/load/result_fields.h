// Fills a result's metrics and counters from what a workload measured.
//
// Thread safety: pure.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/status.h"
#include "pipeyard/v1/worker.pb.h"
#include "workloads/load/counts.h"

namespace pipeyard::load {

// A value, or the reason why there is none.
struct Measured {
  double value = 0;
  std::string absent_reason = {};
};

// Every metric that settings declare for `workload`, in their order. Errors: kInternal where
// `measured` lacks one.
Status FillMetrics(std::string_view workload, const std::map<std::string_view, Measured>& measured,
                   v1::WorkerResult& result);

void FillCounters(const Counts& counts, v1::WorkerResult& result);

}  // namespace pipeyard::load
