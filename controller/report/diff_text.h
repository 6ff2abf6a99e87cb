// A comparison as a person reads it: tables per metric, the counters that explain them, and what it
// comes to in words.
//
// Every number says what it is, every verdict says better or worse in words. Void and failed
// attempts are always shown.
//
// Thread safety: pure functions.
#pragma once

#include <string>

#include "pipeyard/v1/control.pb.h"

namespace pipeyard::report {

// Throughput and whatever is no latency in full; latencies in one compact table; then reference
// rows, counters, words, warnings.
std::string DiffText(const v1::DiffResponse& diff, bool use_colour);

// One comparison of two files; labels are the rows' a_label and b_label.
std::string StatText(const v1::DiffRow& row, bool use_colour);

}  // namespace pipeyard::report
