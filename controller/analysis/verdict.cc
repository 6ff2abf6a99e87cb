#include "controller/analysis/verdict.h"

#include <cmath>

namespace pipeyard::analysis {
namespace {

// A bound that equals the threshold up to rounding counts as reached.
constexpr double kRounding = 1e-12;

bool IsWithin(const Interval& interval, double threshold) {
  if (!interval.low || !interval.high) return false;
  const double limit = threshold * (1 + kRounding);
  return *interval.low >= -limit && *interval.high <= limit;
}

Verdict DirectionOf(double effect, Better better) {
  if (better == Better::kNone) return Verdict::kChanged;
  return (effect > 0) == (better == Better::kHigher) ? Verdict::kImproved : Verdict::kRegressed;
}

}  // namespace

const char* Name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kImproved:
      return "improved";
    case Verdict::kRegressed:
      return "regressed";
    case Verdict::kChanged:
      return "changed";
    case Verdict::kUnchanged:
      return "unchanged";
    case Verdict::kInconclusive:
      return "inconclusive";
    case Verdict::kMissing:
      return "missing";
    case Verdict::kInert:
      return "inert";
  }
  return "missing";
}

Judgement Classify(const VerdictInput& input) {
  if (input.n_a == 0 || input.n_b == 0) return {Verdict::kMissing, ""};
  if (input.min_p > input.alpha) return {Verdict::kInconclusive, "insufficient-samples"};
  const bool is_significant = input.p <= input.alpha;
  if (IsWithin(input.ci90, input.threshold)) {
    return {Verdict::kUnchanged, is_significant ? "significant-but-below-threshold" : ""};
  }
  if (!is_significant) return {Verdict::kInconclusive, "noisy"};
  // An effect of exactly 0 has no direction, whatever the threshold.
  if (input.effect == 0 || std::fabs(input.effect) < input.threshold * (1 - kRounding)) {
    return {Verdict::kInconclusive, "below-threshold"};
  }
  return {DirectionOf(input.effect, input.better), ""};
}

}  // namespace pipeyard::analysis
