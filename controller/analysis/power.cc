#include "controller/analysis/power.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "controller/analysis/rank_sum.h"
#include "controller/analysis/signed_rank.h"

namespace pipeyard::analysis {
namespace {

struct Point {
  double n;
  double sigmas;
};

constexpr Point kTwoSample05[] = {{4, 2.859},  {5, 2.311},  {6, 1.925},  {8, 1.557},  {10, 1.397},
                                  {12, 1.257}, {15, 1.112}, {20, 0.939}, {25, 0.832}, {30, 0.760}};
constexpr Point kTwoSample01[] = {{5, 3.096},  {6, 2.551},  {8, 2.102},  {10, 1.761}, {12, 1.589},
                                  {15, 1.356}, {20, 1.159}, {25, 1.030}, {30, 0.936}};
constexpr Point kTwoSample001[] = {{8, 2.909},  {10, 2.336}, {12, 2.011}, {15, 1.709},
                                   {20, 1.440}, {25, 1.267}, {30, 1.148}};
constexpr Point kPaired05[] = {{6, 1.792},  {7, 1.333},  {8, 1.251},  {9, 1.147},  {10, 1.018},
                               {12, 0.934}, {15, 0.799}, {20, 0.678}, {25, 0.600}, {30, 0.542}};
constexpr Point kPaired01[] = {{8, 1.921},  {9, 1.609},  {10, 1.388}, {12, 1.209},
                               {15, 1.048}, {20, 0.860}, {25, 0.751}, {30, 0.675}};
constexpr Point kPaired001[] = {{12, 1.754}, {15, 1.409}, {20, 1.120}, {25, 0.955}, {30, 0.850}};

std::span<const Point> TableOf(Design design, double alpha) {
  const bool is_paired = design == Design::kPaired;
  if (alpha == 0.05) return is_paired ? std::span<const Point>(kPaired05) : kTwoSample05;
  if (alpha == 0.01) return is_paired ? std::span<const Point>(kPaired01) : kTwoSample01;
  if (alpha == 0.001) return is_paired ? std::span<const Point>(kPaired001) : kTwoSample001;
  return {};
}

double Scaled(const Point& point) { return point.sigmas * std::sqrt(point.n); }

// Smallest n from `from` on, at most kMaxAdvisedSamples, that detects `threshold`.
uint64_t DetectingN(const AdviceInput& input, uint64_t from) {
  uint64_t low = from;
  uint64_t high = std::max(from, kMaxAdvisedSamples);
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    const std::optional<double> sigmas =
        DetectableSigmas(input.design, static_cast<double>(middle), input.alpha);
    if (sigmas && *sigmas * input.sigma <= input.threshold) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

// Smallest n whose interval would lie within the threshold if the effect stayed where it is.
uint64_t NarrowingN(const AdviceInput& input) {
  const double room = input.threshold - std::fabs(input.effect);
  const double width = *input.half_width90 / (room > 0 ? room : input.threshold);
  const double n = std::ceil(static_cast<double>(input.n) * width * width);
  return n < static_cast<double>(kMaxAdvisedSamples) ? static_cast<uint64_t>(n)
                                                     : kMaxAdvisedSamples;
}

}  // namespace

std::optional<double> DetectableSigmas(Design design, double n, double alpha) {
  const std::span<const Point> table = TableOf(design, alpha);
  if (table.empty() || n < table.front().n) return std::nullopt;
  if (n >= table.back().n) return Scaled(table.back()) / std::sqrt(n);
  const auto above = std::upper_bound(table.begin(), table.end(), n,
                                      [](double x, const Point& point) { return x < point.n; });
  const auto below = above - 1;
  const double part = (n - below->n) / (above->n - below->n);
  return (Scaled(*below) + part * (Scaled(*above) - Scaled(*below))) / std::sqrt(n);
}

double EffectiveN(uint64_t n_a, uint64_t n_b) {
  if (n_a == 0 || n_b == 0) return 0;
  const auto a = static_cast<double>(n_a);
  const auto b = static_cast<double>(n_b);
  return 2 * a * b / (a + b);
}

std::optional<double> MinimumDetectableEffect(Design design, double n, double sigma, double alpha) {
  const std::optional<double> sigmas = DetectableSigmas(design, n, alpha);
  if (!sigmas) return std::nullopt;
  return std::expm1(*sigmas * sigma);
}

uint64_t SmallestTestableN(Design design, double alpha) {
  uint64_t n = 1;
  while (n < kMaxAdvisedSamples &&
         (design == Design::kPaired ? MinSignedRankP(n) : MinRankSumP(n, n)) > alpha) {
    ++n;
  }
  return n;
}

uint64_t MoreSamples(const AdviceInput& input) {
  uint64_t wanted = SmallestTestableN(input.design, input.alpha);
  if (input.threshold <= 0) return wanted > input.n ? wanted - input.n : 0;
  wanted = DetectingN(input, wanted);
  if (wanted <= input.n && input.half_width90) wanted = NarrowingN(input);
  wanted = std::min(std::max(wanted, input.n + 1), std::max(kMaxAdvisedSamples, input.n + 1));
  return wanted - input.n;
}

}  // namespace pipeyard::analysis
