// `pipeyard-worker run`: one request, one attempt, one result.
//
// Limits, affinity and memory policy have been set before, by `launch`; the kernel is asked whether
// placement holds.
//
// Thread safety: called once, from main.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "pipeyard/v1/worker.pb.h"

namespace pipeyard::worker {

// What a person gives instead of a request file.
struct HandRequest {
  std::string workload;
  std::string target;
  std::vector<std::string> settings;  // "writers=2", as in a sweep
};

// Errors: kInvalidArgument says what is wrong with the file or the setting and what was meant;
// kNotFound where there is no file.
Result<v1::WorkerRequest> ReadRequest(const std::string& path);
Result<v1::WorkerRequest> MakeRequest(const HandRequest& hand);

// Runs the attempt in this process. `started` is when main began. Errors: kInvalidArgument for a
// request that is no variant; what the attempt itself meets is in the result.
Result<v1::WorkerResult> RunRequest(const v1::WorkerRequest& request, MonotonicTime started);

// Takes on the placement that the request's variant commands, as far as this host has it; what it
// has not, RunRequest() says. While the process has one thread.
void TakePlacementOf(const v1::WorkerRequest& request);

// Atomic and durable: the file is whole or not there.
Status WriteResult(const std::string& path, const v1::WorkerResult& result);

}  // namespace pipeyard::worker
