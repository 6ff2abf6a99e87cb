// One comparison: two series of one metric of one cell become effect, intervals, p, detectable
// effect and verdict.
//
// The scale is the ratio b/a where every value is positive, else the shift b - a; a shift is judged
// against min_change of the larger of the two absolute medians, so that swapping the sides swaps
// the verdict.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/status.h"
#include "controller/analysis/verdict.h"
#include "pipeyard/v1/control.pb.h"

namespace pipeyard::analysis {

inline constexpr double kDefaultMinChange = 0.02;

struct CompareOptions {
  Better better = Better::kNone;
  // Smallest relative change worth a verdict; 0 = any.
  double min_change = kDefaultMinChange;
  double alpha = 0.05;
};

struct Pair {
  double a;
  double b;
};

Better ToBetter(v1::Direction direction);
v1::Direction ToDirection(Better better);

// Independent series: Mann-Whitney and Hodges-Lehmann. Fills the fields of `row` that follow from
// the numbers (better, a, b, effect, p, min_p, mde, verdict, reason, test, need_more, min_change)
// and leaves the rest. Where the effect or a bound is no number that can be held (values near
// 1e308) the row is `inconclusive: out-of-range` and has no effect. Sides may be empty: `missing`.
// boots are not set. Precondition: values are finite.
void CompareIndependent(std::span<const double> a, std::span<const double> b,
                        const CompareOptions& options, v1::DiffRow* row);

// One pair a block: signed-rank on log b - log a (b - a on the shift scale) and the Walsh-average
// interval. As above.
void ComparePaired(std::span<const Pair> pairs, const CompareOptions& options, v1::DiffRow* row);

// What `pipeyard stat` does with two texts of numbers. Errors: those of ReadNumbers for either;
// both sides' problems together.
Result<v1::DiffRow> CompareTexts(std::string_view text_a, std::string_view name_a,
                                 std::string_view text_b, std::string_view name_b,
                                 const CompareOptions& options);

// 1 where a row is regressed, else 3 where one is inconclusive or missing, else 0: what --exit-code
// returns.
uint32_t ExitStatus(std::span<const v1::DiffRow* const> rows);

}  // namespace pipeyard::analysis
