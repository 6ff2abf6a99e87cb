// Options that the `explain` commands share: numbers, and where a task's interleaving stands.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "proto/options/options.h"
#include "workloads/memory/policy.h"

namespace pipeyard::cli {

// The option's number of min..max, `fallback` where it was not given. Errors: kInvalidArgument
// names the option, what was given and the range.
Result<uint64_t> NumberOption(const options::Parsed& parsed, const std::string& name, uint64_t min,
                              uint64_t max, uint64_t fallback);

// --prev and --carry; a fresh task's state without them. Errors: as NumberOption().
Result<memory::InterleaveState> StateOption(const options::Parsed& parsed);

}  // namespace pipeyard::cli
