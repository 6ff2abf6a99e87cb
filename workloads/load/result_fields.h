// Fills a result from what a workload measured and how it ended.
//
// Thread safety: pure.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/status.h"
#include "pipeyard/v1/worker.pb.h"
#include "workloads/load/counts.h"
#include "workloads/load/judgement.h"

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

// What `as_written` became on this host.
void AddResolved(std::string_view name, std::string as_written, std::string resolved,
                 v1::WorkerResult& result);

// Outcome and reason, in the place of what was there.
void FillJudgement(const Judgement& judgement, v1::WorkerResult& result);

}  // namespace pipeyard::load
