// Mann-Whitney rank-sum test and the Hodges-Lehmann estimates that agree with it.
//
// Two independent series on one machine, one cell, one metric. Not for series that share blocks
// (signed_rank.h) and not for values of several machines thrown together.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "controller/analysis/summary.h"

namespace pipeyard::analysis {

// Up to this many values in both series together the null distribution is exact.
inline constexpr uint64_t kMaxExactRankSum = 200;

struct RankSumResult {
  // Pairs with a > b, ties counted one half; u_a + u_b = n_a * n_b.
  double u_a = 0;
  double u_b = 0;
  // Central two-sided: min(1, 2 min(P(W <= w), P(W >= w))) of this sample's own permutation
  // distribution, midranks for ties.
  double p = 1;
  // One-sided: "a tends to be less than b", "a tends to be greater".
  double p_a_less = 1;
  double p_a_greater = 1;
  // Smallest two-sided p that untied series of these lengths can reach.
  double min_p = 1;
  bool is_exact = true;
};

// Tests "a and b come from the same distribution". Exact up to kMaxExactRankSum, else normal with
// tie correction and 0.5 continuity. Errors: kInvalidArgument if either side is empty or holds a
// value that is not finite. Cost: O(N^2 n m) exact, N log N otherwise. Source: Mann & Whitney
// (1947), conditional form; checked against R coin.
Result<RankSumResult> MannWhitney(std::span<const double> a, std::span<const double> b);

// The normal approximation's z of u_a with tie correction and 0.5 continuity; 0 where all values
// are equal. Preconditions: both sides non-empty and finite.
double RankSumZ(std::span<const double> a, std::span<const double> b);

// 2 / C(n_a + n_b, n_a), at most 1; 1 where a side is empty.
double MinRankSumP(uint64_t n_a, uint64_t n_b);

// Largest k with 2 P(U <= k - 1) <= alpha under the null without ties; 0 = no such interval.
uint64_t RankSumCriticalK(uint64_t n_a, uint64_t n_b, double alpha);

// Shift b - a: median of all pairwise differences, and [D_(k), D_(mn+1-k)] with k of
// RankSumCriticalK. Preconditions: both sides non-empty and finite.
Estimate HodgesLehmannShift(std::span<const double> a, std::span<const double> b);

// Ratio b / a, the same on logarithms. Precondition besides: every value is positive.
Estimate HodgesLehmannRatio(std::span<const double> a, std::span<const double> b);

}  // namespace pipeyard::analysis
