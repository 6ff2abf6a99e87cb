// A result as lines for people: what `pipeyard-worker run` prints.
//
// Thread safety: pure.
#pragma once

#include <string>

#include "pipeyard/v1/worker.pb.h"

namespace pipeyard::worker {

// One fact a line, ASCII; not for parsing.
std::string ResultText(const v1::WorkerResult& result);

}  // namespace pipeyard::worker
