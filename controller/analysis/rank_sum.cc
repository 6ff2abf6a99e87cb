#include "controller/analysis/rank_sum.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "controller/analysis/normal.h"
#include "controller/analysis/pairwise.h"

namespace pipeyard::analysis {
namespace {

// Midranks of a and b together, doubled so that they are whole numbers.
struct DoubledRanks {
  std::vector<uint64_t> pooled;  // ascending
  uint64_t sum_a = 0;
  // Sum over groups of equal values of t^3 - t.
  double tie_term = 0;
};

DoubledRanks RankTogether(std::span<const double> a, std::span<const double> b) {
  struct Item {
    double value;
    bool is_a;
  };
  std::vector<Item> items;
  items.reserve(a.size() + b.size());
  for (double value : a) items.push_back({value, true});
  for (double value : b) items.push_back({value, false});
  std::sort(items.begin(), items.end(),
            [](const Item& x, const Item& y) { return x.value < y.value; });

  DoubledRanks ranks;
  for (size_t first = 0; first < items.size();) {
    size_t end = first;
    while (end < items.size() && items[end].value == items[first].value) ++end;
    const uint64_t doubled = first + 1 + end;
    for (size_t i = first; i < end; ++i) {
      ranks.pooled.push_back(doubled);
      if (items[i].is_a) ranks.sum_a += doubled;
    }
    const auto tied = static_cast<double>(end - first);
    ranks.tie_term += tied * tied * tied - tied;
    first = end;
  }
  return ranks;
}

// result[s]: number of subsets of `size` of the ascending `scores` whose sum is s. As doubles:
// C(200, 100) is 9e58, and sums of positive terms keep a relative error of about 1e-14.
std::vector<double> SubsetSums(std::span<const uint64_t> scores, size_t size) {
  const size_t n = scores.size();
  std::vector<uint64_t> prefix(n + 1, 0);
  for (size_t i = 0; i < n; ++i) prefix[i + 1] = prefix[i] + scores[i];
  std::vector<std::vector<double>> counts(size + 1);
  for (size_t k = 0; k <= size; ++k) counts[k].assign(prefix[n] - prefix[n - k] + 1, 0.0);
  counts[0][0] = 1;
  for (size_t j = 0; j < n; ++j) {
    // Subsets that could not be filled up from what is left are not followed.
    const size_t left = n - j - 1;
    const size_t least = size > left ? size - left : 1;
    for (size_t k = std::min(j + 1, size); k >= least && k >= 1; --k) {
      const std::vector<double>& from = counts[k - 1];
      double* to = counts[k].data() + scores[j];
      const uint64_t low = prefix[k - 1];
      const uint64_t high = prefix[j] - prefix[j - (k - 1)];
      for (uint64_t sum = low; sum <= high; ++sum) to[sum] += from[sum];
    }
  }
  return std::move(counts[size]);
}

struct Tails {
  double at_most;   // P(S <= s)
  double at_least;  // P(S >= s)
};

Tails TailsOf(const std::vector<double>& counts, uint64_t sum) {
  double below = 0, equal = 0, above = 0;
  for (uint64_t s = 0; s < counts.size(); ++s) {
    (s < sum ? below : s == sum ? equal : above) += counts[s];
  }
  const double total = below + equal + above;
  return {(below + equal) / total, (equal + above) / total};
}

// Exact tails of side a's rank sum. Scores are shifted and divided by their common divisor, which
// halves the table without ties; the smaller side is the subset.
Tails ExactTails(const DoubledRanks& ranks, size_t n_a, size_t n_b) {
  const uint64_t lowest = ranks.pooled.front();
  uint64_t divisor = 0;
  for (uint64_t rank : ranks.pooled) divisor = std::gcd(divisor, rank - lowest);
  if (divisor == 0) return {1, 1};
  std::vector<uint64_t> scores;
  uint64_t total = 0;
  for (uint64_t rank : ranks.pooled) {
    scores.push_back((rank - lowest) / divisor);
    total += scores.back();
  }
  const uint64_t sum_a = (ranks.sum_a - n_a * lowest) / divisor;
  if (n_a <= n_b) return TailsOf(SubsetSums(scores, n_a), sum_a);
  const Tails tails = TailsOf(SubsetSums(scores, n_b), total - sum_a);
  return {tails.at_least, tails.at_most};
}

struct Moments {
  double distance;  // u_a minus its mean
  double deviation;
};

Moments MomentsOf(const DoubledRanks& ranks, double n_a, double n_b) {
  const double n = n_a + n_b;
  const double u_a = static_cast<double>(ranks.sum_a) / 2 - n_a * (n_a + 1) / 2;
  const double variance = n_a * n_b / 12 * (n + 1 - ranks.tie_term / (n * (n - 1)));
  return {u_a - n_a * n_b / 2, std::sqrt(std::max(0.0, variance))};
}

double ContinuityZ(const Moments& moments) {
  const double distance = std::max(0.0, std::fabs(moments.distance) - 0.5);
  if (moments.deviation == 0 || distance == 0) return 0;
  return std::copysign(distance / moments.deviation, moments.distance);
}

Status CheckSide(std::span<const double> values, const char* side) {
  if (values.empty()) return InvalidArgument(std::string(side) + " has no values");
  for (double value : values) {
    if (!std::isfinite(value)) {
      return InvalidArgument(std::string(side) + " holds a value that is not a finite number");
    }
  }
  return Status::Ok();
}

Interval DifferenceInterval(std::span<const double> a, std::span<const double> b, double alpha) {
  const uint64_t k = RankSumCriticalK(a.size(), b.size(), alpha);
  if (k == 0) return {};
  const uint64_t pairs = a.size() * b.size();
  return {KthDifference(a, b, k), KthDifference(a, b, pairs + 1 - k)};
}

Interval Exp(const Interval& logs) {
  if (!logs.low) return {};
  return {std::exp(*logs.low), std::exp(*logs.high)};
}

std::vector<double> Logs(std::span<const double> values) {
  std::vector<double> logs;
  logs.reserve(values.size());
  for (double value : values) logs.push_back(std::log(value));
  return logs;
}

}  // namespace

Result<RankSumResult> MannWhitney(std::span<const double> a, std::span<const double> b) {
  PIPEYARD_RETURN_IF_ERROR(CheckSide(a, "a"));
  PIPEYARD_RETURN_IF_ERROR(CheckSide(b, "b"));

  const auto n_a = static_cast<double>(a.size());
  const auto n_b = static_cast<double>(b.size());
  const DoubledRanks ranks = RankTogether(a, b);
  RankSumResult result;
  result.u_a = static_cast<double>(ranks.sum_a) / 2 - n_a * (n_a + 1) / 2;
  result.u_b = n_a * n_b - result.u_a;
  result.min_p = MinRankSumP(a.size(), b.size());
  result.is_exact = a.size() + b.size() <= kMaxExactRankSum;
  if (result.is_exact) {
    const Tails tails = ExactTails(ranks, a.size(), b.size());
    result.p_a_less = tails.at_most;
    result.p_a_greater = tails.at_least;
    result.p = std::min(1.0, 2 * std::min(tails.at_most, tails.at_least));
  } else if (const Moments moments = MomentsOf(ranks, n_a, n_b); moments.deviation > 0) {
    result.p_a_less = NormalCdf((moments.distance + 0.5) / moments.deviation);
    result.p_a_greater = NormalCdf((0.5 - moments.distance) / moments.deviation);
    result.p = std::min(1.0, 2 * NormalCdf(-std::fabs(ContinuityZ(moments))));
  }
  return result;
}

double RankSumZ(std::span<const double> a, std::span<const double> b) {
  return ContinuityZ(
      MomentsOf(RankTogether(a, b), static_cast<double>(a.size()), static_cast<double>(b.size())));
}

double MinRankSumP(uint64_t n_a, uint64_t n_b) {
  // 2 * product of i / (larger + i) over the smaller side.
  const uint64_t smaller = std::min(n_a, n_b);
  const uint64_t larger = std::max(n_a, n_b);
  if (smaller == 0) return 1;
  double p = 2;
  for (uint64_t i = 1; i <= smaller && p > 0; ++i) {
    p *= static_cast<double>(i) / static_cast<double>(larger + i);
  }
  return std::min(1.0, p);
}

uint64_t RankSumCriticalK(uint64_t n_a, uint64_t n_b, double alpha) {
  const uint64_t size = std::min(n_a, n_b);
  const uint64_t n = n_a + n_b;
  if (size == 0) return 0;
  if (n > kMaxExactRankSum) {
    const double pairs = static_cast<double>(n_a) * static_cast<double>(n_b);
    const double deviation = std::sqrt(pairs * (static_cast<double>(n) + 1) / 12);
    const double k = std::floor(pairs / 2 + 0.5 + NormalQuantile(alpha / 2) * deviation);
    return k < 1 ? 0 : static_cast<uint64_t>(k);
  }
  std::vector<uint64_t> scores(n);
  std::iota(scores.begin(), scores.end(), uint64_t{0});
  const std::vector<double> counts = SubsetSums(scores, size);
  const double total = std::accumulate(counts.begin(), counts.end(), 0.0);
  const double limit = alpha / 2 * total * (1 + 1e-12);
  double tail = 0;
  uint64_t k = 0;
  for (uint64_t sum = size * (size - 1) / 2; sum < counts.size(); ++sum, ++k) {
    tail += counts[sum];
    if (tail > limit) break;
  }
  return k;
}

Estimate HodgesLehmannShift(std::span<const double> a, std::span<const double> b) {
  const std::vector<double> sorted_a = Sorted(a);
  const std::vector<double> sorted_b = Sorted(b);
  const uint64_t pairs = a.size() * b.size();
  const double lower = KthDifference(sorted_a, sorted_b, (pairs + 1) / 2);
  const double upper = KthDifference(sorted_a, sorted_b, pairs / 2 + 1);
  return {lower / 2 + upper / 2, DifferenceInterval(sorted_a, sorted_b, 0.05),
          DifferenceInterval(sorted_a, sorted_b, 0.10)};
}

Estimate HodgesLehmannRatio(std::span<const double> a, std::span<const double> b) {
  const Estimate logs = HodgesLehmannShift(Logs(a), Logs(b));
  return {std::exp(logs.value), Exp(logs.ci95), Exp(logs.ci90)};
}

}  // namespace pipeyard::analysis
