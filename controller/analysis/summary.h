// Summaries of one series of repetitions: median, spread, and the interval of the median.
//
// Thread safety: pure functions. Order of the input never matters. Units: the result has the unit
// of the input.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace pipeyard::analysis {

// A two-sided interval; both bounds are absent where the samples are too few for its confidence.
struct Interval {
  std::optional<double> low;
  std::optional<double> high;
};

// A point estimate with the intervals that the verdict and the tables need.
struct Estimate {
  double value = 0;
  Interval ci95;
  Interval ci90;
};

// Ascending copy.
std::vector<double> Sorted(std::span<const double> values);

// Middle value, or the mean of the two middle ones; nullopt of nothing.
std::optional<double> Median(std::span<const double> values);

// Median absolute deviation from the median, not scaled to a standard deviation; nullopt of
// nothing.
std::optional<double> Mad(std::span<const double> values);

// Sum of squared deviations from the mean; 0 of fewer than two values.
double SumOfSquares(std::span<const double> values);

// Order-statistic interval of the median: [x_(k), x_(n+1-k)] counted from 1, with k the largest for
// which 2 P(Binomial(n, 1/2) <= k - 1) <= 1 - confidence. k is 0 where n is too small (below 6 for
// 95 %).
uint64_t MedianIntervalRank(uint64_t n, double confidence);
Interval MedianInterval(std::span<const double> values, double confidence);

}  // namespace pipeyard::analysis
