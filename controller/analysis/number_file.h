// Reads a file of numbers as `pipeyard stat` takes it: one a line; blank lines and text after '#'
// are passed over.
//
// Thread safety: pure functions.
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"

namespace pipeyard::analysis {

// `file_name` is for messages only ("a.txt", "-"). Numbers are decimal, independent of the locale.
// Errors: kInvalidArgument; the message has one line "FILE:LINE: what" for each bad line (ten at
// most, then how many more), or "FILE: what" where there is no number at all. NaN and infinities
// are refused.
Result<std::vector<double>> ReadNumbers(std::string_view text, std::string_view file_name);

}  // namespace pipeyard::analysis
