// Order statistics of all pairs without writing the pairs down: what Hodges-Lehmann estimates are
// made of.
//
// The k-th value is exact, found by bisection over the doubles themselves: at most 64 counts of
// O(n_a + n_b), so that series of a million values need no quadratic memory.
//
// Thread safety: pure functions. Preconditions: inputs ascending and finite, 1 <= k <= number of
// pairs.
#pragma once

#include <cstdint>
#include <span>

namespace pipeyard::analysis {

// The k-th smallest of the n_a * n_b differences b - a.
double KthDifference(std::span<const double> a, std::span<const double> b, uint64_t k);

// The k-th smallest of the n (n + 1) / 2 averages (d_i + d_j) / 2, i <= j.
double KthWalshAverage(std::span<const double> d, uint64_t k);

}  // namespace pipeyard::analysis
