// Wilcoxon signed-rank test of paired differences, and the Walsh-average estimate that agrees with
// it.
//
// One value a block: d = log b - log a of the two arms of that block. Not for series without
// recorded blocks (rank_sum.h); pairs are never made by index.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "controller/analysis/summary.h"

namespace pipeyard::analysis {

// Up to this many differences the null distribution is exact.
inline constexpr uint64_t kMaxExactSignedRank = 200;

struct SignedRankResult {
  // Sum of the ranks of the positive differences.
  double v = 0;
  // Central two-sided, conditional on ties and zeros.
  double p = 1;
  double p_greater = 1;  // "differences tend to be above 0"
  double p_less = 1;
  // Smallest two-sided p that n differences without zeros can reach: 2 / 2^n.
  double min_p = 1;
  uint64_t n = 0;
  uint64_t n_nonzero = 0;
  bool is_exact = true;
};

// Tests "the differences are symmetric about 0". Zeros by Pratt: they take part in the ranking and
// then leave. Absolute differences that are apart by no more than `tie_tolerance` share a midrank:
// differences of logarithms carry rounding of about 1e-14. Errors: kInvalidArgument if `d` is empty
// or holds a value that is not finite. Source: Wilcoxon (1945), Pratt (1959); checked against R
// coin.
Result<SignedRankResult> SignedRank(std::span<const double> d, double tie_tolerance = 0);

// 2 / 2^n, at most 1.
double MinSignedRankP(uint64_t n);

// Largest k with 2 P(V <= k - 1) <= alpha under the null without ties or zeros; 0 = no such
// interval.
uint64_t SignedRankCriticalK(uint64_t n, double alpha);

// Median of the Walsh averages (the pseudo-median), and [W_(k), W_(n(n+1)/2+1-k)]. Precondition:
// `d` non-empty and finite.
Estimate PseudoMedian(std::span<const double> d);

}  // namespace pipeyard::analysis
