// The tables of a comparison's text: one a metric, latencies in one, references, counters.
//
// Thread safety: pure functions. Ownership: rows are borrowed from the DiffResponse.
#pragma once

#include <string>
#include <vector>

#include "controller/report/diff_layout.h"
#include "pipeyard/v1/control.pb.h"

namespace pipeyard::report {

using Rows = std::vector<const v1::DiffRow*>;

// A row each, with interval, p, n and the verdict in words. `rows`: of one metric, never empty.
std::string FullTable(const Rows& rows, const Layout& layout, bool use_colour);
// One line a configuration, one column a latency metric.
std::string CompactTable(const Rows& rows, const Layout& layout, bool use_colour);
// Throughput and the like with a row each, latencies as the compared ones.
std::string ReferenceTables(const v1::DiffResponse& diff, const Layout& layout, bool use_colour);
// The counters that changed most beside each configuration; empty where none did.
std::string CounterTable(const v1::DiffResponse& diff, const Layout& layout, bool use_colour);

}  // namespace pipeyard::report
