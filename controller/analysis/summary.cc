#include "controller/analysis/summary.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace pipeyard::analysis {

std::vector<double> Sorted(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

std::optional<double> Median(std::span<const double> values) {
  if (values.empty()) return std::nullopt;
  const std::vector<double> sorted = Sorted(values);
  const size_t middle = sorted.size() / 2;
  if (sorted.size() % 2 == 1) return sorted[middle];
  return sorted[middle - 1] / 2 + sorted[middle] / 2;
}

std::optional<double> Mad(std::span<const double> values) {
  const std::optional<double> median = Median(values);
  if (!median) return std::nullopt;
  std::vector<double> deviations;
  deviations.reserve(values.size());
  for (double value : values) deviations.push_back(std::fabs(value - *median));
  return Median(deviations);
}

double SumOfSquares(std::span<const double> values) {
  if (values.size() < 2) return 0;
  double mean = 0;
  for (double value : values) mean += value / static_cast<double>(values.size());
  double sum = 0;
  for (double value : values) sum += (value - mean) * (value - mean);
  return sum;
}

uint64_t MedianIntervalRank(uint64_t n, double confidence) {
  if (n == 0) return 0;
  const double alpha = (1 - confidence) * (1 + 1e-12);
  // Terms C(n, i) / 2^n by recurrence; the start underflows only where the terms that matter are
  // far from it.
  double log_term = -static_cast<double>(n) * std::numbers::ln2;
  double tail = 0;
  uint64_t k = 0;
  for (uint64_t i = 0; i < n / 2; ++i) {
    tail += std::exp(log_term);
    if (2 * tail > alpha) break;
    k = i + 1;
    log_term += std::log(static_cast<double>(n - i)) - std::log(static_cast<double>(i + 1));
  }
  return k;
}

Interval MedianInterval(std::span<const double> values, double confidence) {
  const uint64_t k = MedianIntervalRank(values.size(), confidence);
  if (k == 0) return {};
  const std::vector<double> sorted = Sorted(values);
  return {sorted[k - 1], sorted[sorted.size() - k]};
}

}  // namespace pipeyard::analysis
