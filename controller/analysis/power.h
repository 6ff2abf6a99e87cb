// How small a change a series of repetitions can show, and how many repetitions a verdict needs.
//
// All sizes are on the additive scale of the test: logarithms for ratios, the unit itself for
// shifts.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>

namespace pipeyard::analysis {

enum class Design {
  kTwoSample,  // n values in each of two independent series
  kPaired,     // n blocks, one difference each
};

// Advice never asks for more than this in all.
inline constexpr uint64_t kMaxAdvisedSamples = 10000;

// Smallest effect in units of sigma that the exact two-sided test finds with 80 % power; nullopt
// where no n of this size can. `alpha` is 0.05, 0.01 or 0.001. sigma is the standard deviation of
// one log value (two-sample) or of one difference (paired). Between the tabulated n the product k
// sqrt(n) is interpolated; above 30 it is constant. Source: Monte Carlo, normal noise; two-sample
// +-0.03 (tests/vectors/statistics.json, `mde`), paired 200,000 series, +-0.02.
std::optional<double> DetectableSigmas(Design design, double n, double alpha);

// Equal n that carries as much evidence as n_a and n_b: their harmonic mean.
double EffectiveN(uint64_t n_a, uint64_t n_b);

// Relative minimum detectable effect exp(k sigma) - 1; nullopt as above.
std::optional<double> MinimumDetectableEffect(Design design, double n, double sigma, double alpha);

// Smallest n whose minimum attainable p is at most alpha.
uint64_t SmallestTestableN(Design design, double alpha);

struct AdviceInput {
  Design design = Design::kTwoSample;
  uint64_t n = 0;  // per arm, or blocks; of unequal arms the smaller
  double alpha = 0.05;
  double sigma = 0;
  double threshold = 0;  // smallest effect worth a verdict
  double effect = 0;
  // Half-width of the 90 % interval; absent where there is none.
  std::optional<double> half_width90 = std::nullopt;
};

// How many more repetitions (per arm, or blocks) would probably make an inconclusive comparison
// conclusive: those that bring the detectable effect down to `threshold`, or where it is there
// already, those that narrow the interval enough to call it unchanged. At least 1, and together
// with n at most kMaxAdvisedSamples; 0 where no number of repetitions would (threshold 0).
uint64_t MoreSamples(const AdviceInput& input);

}  // namespace pipeyard::analysis
