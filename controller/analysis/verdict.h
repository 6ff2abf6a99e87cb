// The verdict of one comparison, in the order of rules that docs/STATISTICS.md states.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "controller/analysis/summary.h"

namespace pipeyard::analysis {

enum class Better { kHigher, kLower, kNone };

enum class Verdict { kImproved, kRegressed, kChanged, kUnchanged, kInconclusive, kMissing, kInert };

// "improved" and so on, as printed and stored.
const char* Name(Verdict verdict);

struct VerdictInput {
  uint64_t n_a = 0;
  uint64_t n_b = 0;
  double p = 1;
  double min_p = 1;
  double alpha = 0.05;
  // Effect, its 90 % interval and the smallest effect worth a verdict, all on the additive scale:
  // log ratio with log(1 + delta), or shift. Positive: b is greater than a.
  double effect = 0;
  Interval ci90;
  double threshold = 0;
  Better better = Better::kNone;
};

struct Judgement {
  Verdict verdict = Verdict::kMissing;
  // "insufficient-samples", "significant-but-below-threshold", "below-threshold", "noisy"; empty
  // where there is none.
  std::string reason;
};

Judgement Classify(const VerdictInput& input);

}  // namespace pipeyard::analysis
