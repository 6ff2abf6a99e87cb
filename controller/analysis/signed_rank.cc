#include "controller/analysis/signed_rank.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "controller/analysis/normal.h"
#include "controller/analysis/pairwise.h"

namespace pipeyard::analysis {
namespace {

// result[s]: probability that independent fair signs give the positive ranks `ranks` the sum s.
std::vector<double> SignSums(std::span<const uint64_t> ranks) {
  uint64_t total = 0;
  for (uint64_t rank : ranks) total += rank;
  std::vector<double> probabilities(total + 1, 0.0);
  probabilities[0] = 1;
  uint64_t reached = 0;
  for (uint64_t rank : ranks) {
    reached += rank;
    for (uint64_t s = reached + 1; s-- > 0;) {
      const double with = s >= rank ? probabilities[s - rank] : 0.0;
      const double without = s <= reached - rank ? probabilities[s] : 0.0;
      probabilities[s] = (with + without) / 2;
    }
  }
  return probabilities;
}

// Doubled midranks of |d|, zeros ranked and left out.
struct DoubledRanks {
  std::vector<uint64_t> nonzero;
  uint64_t positive_sum = 0;
};

DoubledRanks RankByMagnitude(std::span<const double> d, double tie_tolerance) {
  std::vector<double> sorted(d.begin(), d.end());
  std::sort(sorted.begin(), sorted.end(),
            [](double x, double y) { return std::fabs(x) < std::fabs(y); });
  const auto is_zero = [&](double x) { return std::fabs(x) <= tie_tolerance; };

  DoubledRanks ranks;
  for (size_t first = 0; first < sorted.size();) {
    size_t end = first + 1;
    while (end < sorted.size() && is_zero(sorted[end]) == is_zero(sorted[first]) &&
           std::fabs(sorted[end]) - std::fabs(sorted[end - 1]) <= tie_tolerance) {
      ++end;
    }
    const uint64_t doubled = first + 1 + end;
    for (size_t i = first; i < end && !is_zero(sorted[first]); ++i) {
      ranks.nonzero.push_back(doubled);
      if (sorted[i] > 0) ranks.positive_sum += doubled;
    }
    first = end;
  }
  return ranks;
}

void SetExactTails(const DoubledRanks& ranks, SignedRankResult* result) {
  const std::vector<double> probabilities = SignSums(ranks.nonzero);
  double below = 0, equal = 0, above = 0;
  for (uint64_t s = 0; s < probabilities.size(); ++s) {
    (s < ranks.positive_sum ? below : s == ranks.positive_sum ? equal : above) += probabilities[s];
  }
  result->p_less = std::min(1.0, below + equal);
  result->p_greater = std::min(1.0, equal + above);
}

void SetNormalTails(const DoubledRanks& ranks, SignedRankResult* result) {
  double sum = 0, squares = 0;
  for (uint64_t rank : ranks.nonzero) {
    const double half = static_cast<double>(rank) / 2;
    sum += half;
    squares += half * half;
  }
  const double deviation = std::sqrt(squares / 4);
  if (deviation == 0) return;
  const double distance = static_cast<double>(ranks.positive_sum) / 2 - sum / 2;
  result->p_less = NormalCdf((distance + 0.5) / deviation);
  result->p_greater = NormalCdf((0.5 - distance) / deviation);
}

Interval WalshInterval(std::span<const double> sorted, double alpha) {
  const uint64_t k = SignedRankCriticalK(sorted.size(), alpha);
  if (k == 0) return {};
  const uint64_t pairs = sorted.size() * (sorted.size() + 1) / 2;
  return {KthWalshAverage(sorted, k), KthWalshAverage(sorted, pairs + 1 - k)};
}

}  // namespace

Result<SignedRankResult> SignedRank(std::span<const double> d, double tie_tolerance) {
  if (d.empty()) return InvalidArgument("there are no differences");
  for (double value : d) {
    if (!std::isfinite(value)) return InvalidArgument("a difference is not a finite number");
  }

  const DoubledRanks ranks = RankByMagnitude(d, tie_tolerance);
  SignedRankResult result;
  result.n = d.size();
  result.n_nonzero = ranks.nonzero.size();
  result.v = static_cast<double>(ranks.positive_sum) / 2;
  result.min_p = MinSignedRankP(d.size());
  result.is_exact = d.size() <= kMaxExactSignedRank;
  if (ranks.nonzero.empty()) return result;
  if (result.is_exact) {
    SetExactTails(ranks, &result);
  } else {
    SetNormalTails(ranks, &result);
  }
  result.p = std::min(1.0, 2 * std::min(result.p_less, result.p_greater));
  return result;
}

double MinSignedRankP(uint64_t n) {
  return std::min(1.0, std::ldexp(2.0, -static_cast<int>(std::min<uint64_t>(n, 2000))));
}

uint64_t SignedRankCriticalK(uint64_t n, double alpha) {
  if (n == 0) return 0;
  if (n > kMaxExactSignedRank) {
    const auto size = static_cast<double>(n);
    const double deviation = std::sqrt(size * (size + 1) * (2 * size + 1) / 24);
    const double k =
        std::floor(size * (size + 1) / 4 + 0.5 + NormalQuantile(alpha / 2) * deviation);
    return k < 1 ? 0 : static_cast<uint64_t>(k);
  }
  std::vector<uint64_t> ranks;
  for (uint64_t rank = 1; rank <= n; ++rank) ranks.push_back(rank);
  const std::vector<double> probabilities = SignSums(ranks);
  const double limit = alpha / 2 * (1 + 1e-12);
  double tail = 0;
  uint64_t k = 0;
  for (; k < probabilities.size(); ++k) {
    tail += probabilities[k];
    if (tail > limit) break;
  }
  return k;
}

Estimate PseudoMedian(std::span<const double> d) {
  const std::vector<double> sorted = Sorted(d);
  const uint64_t pairs = sorted.size() * (sorted.size() + 1) / 2;
  const double lower = KthWalshAverage(sorted, (pairs + 1) / 2);
  const double upper = KthWalshAverage(sorted, pairs / 2 + 1);
  return {lower / 2 + upper / 2, WalshInterval(sorted, 0.05), WalshInterval(sorted, 0.10)};
}

}  // namespace pipeyard::analysis
