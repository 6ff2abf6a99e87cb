// The limit of open files, against what a workload will open.
//
// Thread safety: thread-safe; changes the whole process.
#pragma once

#include <cstdint>

#include "workloads/load/judgement.h"

namespace pipeyard::load {

// Makes room for `more` files beside those that are open now, raising RLIMIT_NOFILE where it has
// to. not_applicable/file_limit says what the limit is and what it would have to be.
Judgement RaiseFileLimit(int64_t more);

}  // namespace pipeyard::load
