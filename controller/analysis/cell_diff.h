// Rows of a diff for one pair of cells: each metric tested by the design that the data has, with
// counters, losses and boots.
//
// Thread safety: pure functions.
#pragma once

#include <map>
#include <string>

#include "controller/analysis/samples.h"
#include "pipeyard/v1/control.pb.h"

namespace pipeyard::analysis {

// Fewest boots an arm that a comparison without shared boots needs (4 against 4 is the least that
// reaches p <= 0.05).
inline constexpr uint32_t kMinBoots = 4;

// Value of DiffRow.test where the values tested are one median a boot.
inline constexpr const char* kTestOverBoots = "mann-whitney/boots";

struct CellPair {
  // Either may be null: the cell does not exist on that side, and every metric of the other is
  // `missing`.
  const CellSamples* a = nullptr;
  const CellSamples* b = nullptr;
  // Both sides ran in the same recorded blocks of one run.
  bool has_blocks = false;
  std::string host;
  std::string variant;
  std::string a_label;
  std::string b_label;
  // metric name -> smallest relative change worth a verdict; borrowed.
  const std::map<std::string, double>* min_change_a = nullptr;
  const std::map<std::string, double>* min_change_b = nullptr;
  // Emulated against real is compared too, with a warning.
  bool is_forced = false;
};

// Appends a row for each metric of either side, and warnings. Metrics that both sides declare but
// give no value of (a percentile of too few operations) become a warning, not a row. Tests:
// signed-rank over blocks; else Mann-Whitney where both sides saw the same boots; else Mann-Whitney
// over one median a boot. Where no setting in which the sides differ can act, the rows are `inert`
// and have no effect: what would be measured is noise. Errors: kInvalidArgument where one side is
// emulated and the other is not, unless forced.
Status AppendCellRows(const CellPair& pair, v1::DiffResponse* response);

}  // namespace pipeyard::analysis
