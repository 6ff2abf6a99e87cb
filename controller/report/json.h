// JSON of every listing and result, as docs/JSON.md states it: one object, "schema":
// "pipeyard.NAME/v1", keys in a fixed order, numbers as numbers (also 64-bit ones), what does not
// exist as null. Two blanks of indent, a newline at the end.
//
// Thread safety: pure functions. Text that is no UTF-8 has its bad bytes replaced.
#pragma once

#include <string>

#include "controller/spec/sweep.h"
#include "pipeyard/v1/control.pb.h"

namespace pipeyard::report {

std::string DiffJson(const v1::DiffResponse& diff);
std::string StatJson(const v1::DiffRow& row);
std::string RunListJson(const v1::ListRunsResponse& runs);
std::string RunJson(const v1::Run& run);
std::string HostListJson(const v1::ListHostsResponse& hosts);
std::string HostJson(const v1::Host& host);
// `result` holds the warnings too; its sweep is left out where a problem is an error.
std::string ValidateJson(const spec::ReadResult& result);
std::string PlanJson(const v1::Plan& plan);
std::string SubmitJson(const v1::SubmitSweepResponse& response);
// The end of `submit --watch` and `run watch`. `diff`: borrowed, null where nothing is compared.
std::string WatchJson(const v1::RunProgress& progress, const v1::DiffResponse* diff);
// What `run cancel` came to.
std::string CancelJson(const v1::RunProgress& progress);

}  // namespace pipeyard::report
