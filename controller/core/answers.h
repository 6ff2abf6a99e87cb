// What is stored, as the messages of control.proto.
//
// Thread safety: pure functions.
#pragma once

#include <span>
#include <vector>

#include "controller/spec/sweep.h"
#include "pipeyard/v1/control.pb.h"
#include "storage/records.h"
#include "storage/store.h"

namespace pipeyard::core {

v1::RunSummary ToSummary(const storage::RunSummaryRecord& record);
v1::RunSummary ToSummary(const storage::RunRecord& run);

// `data`: Store::LoadAttemptData() of the run, or of a moment near it.
v1::Run ToRun(const storage::RunRecord& run, std::span<const storage::AttemptData> data);

// Of a run that is not active any more.
v1::RunProgress ToProgress(const storage::RunRecord& run);

v1::Host ToHost(const storage::HostRecord& host, bool is_connected, const std::string& running);

v1::SpecProblem ToProblem(const spec::Problem& problem);

}  // namespace pipeyard::core
