#include "controller/analysis/compare.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "controller/analysis/number_file.h"
#include "controller/analysis/power.h"
#include "controller/analysis/rank_sum.h"
#include "controller/analysis/signed_rank.h"

namespace pipeyard::analysis {
namespace {

// Differences of logarithms closer than this are equal: rounding of the logs is about 1e-14, and no
// measurement is that fine.
constexpr double kLogTieTolerance = 1e-12;

bool AllPositive(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return value > 0; });
}

void Describe(std::span<const double> values, v1::Side* side) {
  side->set_n(static_cast<uint32_t>(values.size()));
  if (const auto median = Median(values)) side->set_median(*median);
  if (const auto mad = Mad(values); mad && std::isfinite(*mad)) side->set_mad(*mad);
}

// What both designs find out, on the additive scale.
struct Finding {
  Design design = Design::kTwoSample;
  bool is_ratio = false;
  double p = 1;
  double min_p = 1;
  Estimate estimate;
  double sigma = 0;
  double effective_n = 0;
  uint64_t smaller_n = 0;
};

void SetBounds(const Interval& interval, bool is_ratio, void (v1::Effect::*set_low)(double),
               void (v1::Effect::*set_high)(double), v1::Effect* effect) {
  if (!interval.low || !interval.high) return;
  (effect->*set_low)(is_ratio ? std::exp(*interval.low) : *interval.low);
  (effect->*set_high)(is_ratio ? std::exp(*interval.high) : *interval.high);
}

double ThresholdOf(const Finding& finding, const CompareOptions& options, const v1::DiffRow& row) {
  if (finding.is_ratio) return std::log1p(options.min_change);
  return options.min_change * std::max(std::fabs(row.a().median()), std::fabs(row.b().median()));
}

// Whether a bound or effect can be said as a number: a quotient of the largest and the smallest
// numbers, or a difference of the two largest, is none.
bool IsRepresentable(const std::optional<double>& additive, bool is_ratio) {
  if (!additive) return true;
  const double value = is_ratio ? std::exp(*additive) : *additive;
  return std::isfinite(value) && !(is_ratio && value == 0);
}

bool IsRepresentable(const Finding& finding) {
  const Estimate& estimate = finding.estimate;
  for (const std::optional<double>& value :
       {std::optional<double>(estimate.value), estimate.ci95.low, estimate.ci95.high,
        estimate.ci90.low, estimate.ci90.high}) {
    if (!IsRepresentable(value, finding.is_ratio)) return false;
  }
  return true;
}

void FillRow(const Finding& finding, const CompareOptions& options, v1::DiffRow* row) {
  if (!IsRepresentable(finding)) {
    // A verdict without the effect that it is of would be worth nothing.
    row->set_p(finding.p);
    row->set_min_p(finding.min_p);
    row->set_verdict(Name(Verdict::kInconclusive));
    row->set_reason(finding.min_p > options.alpha ? "insufficient-samples" : "out-of-range");
    return;
  }
  v1::Effect* effect = row->mutable_effect();
  effect->set_kind(finding.is_ratio ? "ratio" : "shift");
  effect->set_value(finding.is_ratio ? std::exp(finding.estimate.value) : finding.estimate.value);
  SetBounds(finding.estimate.ci95, finding.is_ratio, &v1::Effect::set_ci95_low,
            &v1::Effect::set_ci95_high, effect);
  SetBounds(finding.estimate.ci90, finding.is_ratio, &v1::Effect::set_ci90_low,
            &v1::Effect::set_ci90_high, effect);
  row->set_p(finding.p);
  row->set_min_p(finding.min_p);
  if (finding.is_ratio) {
    const auto mde =
        MinimumDetectableEffect(finding.design, finding.effective_n, finding.sigma, options.alpha);
    if (mde && std::isfinite(*mde)) row->set_mde(*mde);
  }

  const double threshold = ThresholdOf(finding, options, *row);
  const Judgement judgement = Classify({.n_a = row->a().n(),
                                        .n_b = row->b().n(),
                                        .p = finding.p,
                                        .min_p = finding.min_p,
                                        .alpha = options.alpha,
                                        .effect = finding.estimate.value,
                                        .ci90 = finding.estimate.ci90,
                                        .threshold = threshold,
                                        .better = options.better});
  row->set_verdict(Name(judgement.verdict));
  row->set_reason(judgement.reason);
  // The squares of a spread near the largest number are beyond it: no advice then.
  if (judgement.verdict != Verdict::kInconclusive || !std::isfinite(finding.sigma)) return;

  AdviceInput advice{.design = finding.design,
                     .n = finding.smaller_n,
                     .alpha = options.alpha,
                     .sigma = finding.sigma,
                     .threshold = threshold,
                     .effect = finding.estimate.value,
                     .half_width90 = std::nullopt};
  if (const Interval& ci90 = finding.estimate.ci90; ci90.low && ci90.high) {
    advice.half_width90 = (*ci90.high - *ci90.low) / 2;
  }
  row->set_need_more(static_cast<uint32_t>(MoreSamples(advice)));
}

void FillCommon(const CompareOptions& options, std::string_view test, v1::DiffRow* row) {
  row->set_better(ToDirection(options.better));
  row->set_min_change(options.min_change);
  row->set_test(std::string(test));
  row->set_verdict(Name(Verdict::kMissing));
  row->clear_reason();
}

}  // namespace

Better ToBetter(v1::Direction direction) {
  if (direction == v1::DIRECTION_HIGHER) return Better::kHigher;
  if (direction == v1::DIRECTION_LOWER) return Better::kLower;
  return Better::kNone;
}

v1::Direction ToDirection(Better better) {
  if (better == Better::kHigher) return v1::DIRECTION_HIGHER;
  if (better == Better::kLower) return v1::DIRECTION_LOWER;
  return v1::DIRECTION_NONE;
}

void CompareIndependent(std::span<const double> a, std::span<const double> b,
                        const CompareOptions& options, v1::DiffRow* row) {
  FillCommon(options, "mann-whitney", row);
  Describe(a, row->mutable_a());
  Describe(b, row->mutable_b());
  const Result<RankSumResult> test = MannWhitney(a, b);
  if (!test.ok()) return;

  Finding finding;
  finding.is_ratio = AllPositive(a) && AllPositive(b);
  finding.p = test->p;
  finding.min_p = test->min_p;
  std::vector<double> scaled_a(a.begin(), a.end());
  std::vector<double> scaled_b(b.begin(), b.end());
  if (finding.is_ratio) {
    for (double& value : scaled_a) value = std::log(value);
    for (double& value : scaled_b) value = std::log(value);
  }
  finding.estimate = HodgesLehmannShift(scaled_a, scaled_b);
  if (a.size() + b.size() > 2) {
    finding.sigma = std::sqrt((SumOfSquares(scaled_a) + SumOfSquares(scaled_b)) /
                              static_cast<double>(a.size() + b.size() - 2));
  }
  finding.effective_n = EffectiveN(a.size(), b.size());
  finding.smaller_n = std::min(a.size(), b.size());
  FillRow(finding, options, row);
}

void ComparePaired(std::span<const Pair> pairs, const CompareOptions& options, v1::DiffRow* row) {
  FillCommon(options, "signed-rank", row);
  std::vector<double> a;
  std::vector<double> b;
  for (const Pair& pair : pairs) {
    a.push_back(pair.a);
    b.push_back(pair.b);
  }
  Describe(a, row->mutable_a());
  Describe(b, row->mutable_b());

  Finding finding;
  finding.design = Design::kPaired;
  finding.is_ratio = AllPositive(a) && AllPositive(b);
  std::vector<double> differences;
  for (const Pair& pair : pairs) {
    differences.push_back(finding.is_ratio ? std::log(pair.b) - std::log(pair.a) : pair.b - pair.a);
  }
  const Result<SignedRankResult> test =
      SignedRank(differences, finding.is_ratio ? kLogTieTolerance : 0);
  if (!test.ok()) return;

  finding.p = test->p;
  finding.min_p = test->min_p;
  finding.estimate = PseudoMedian(differences);
  if (pairs.size() > 1) {
    finding.sigma =
        std::sqrt(SumOfSquares(differences) / static_cast<double>(differences.size() - 1));
  }
  finding.effective_n = static_cast<double>(pairs.size());
  finding.smaller_n = pairs.size();
  FillRow(finding, options, row);
}

Result<v1::DiffRow> CompareTexts(std::string_view text_a, std::string_view name_a,
                                 std::string_view text_b, std::string_view name_b,
                                 const CompareOptions& options) {
  const Result<std::vector<double>> a = ReadNumbers(text_a, name_a);
  const Result<std::vector<double>> b = ReadNumbers(text_b, name_b);
  if (!a.ok() && !b.ok()) {
    return InvalidArgument(a.status().message() + "\n" + b.status().message());
  }
  if (!a.ok()) return a.status();
  if (!b.ok()) return b.status();
  v1::DiffRow row;
  row.set_a_label(std::string(name_a));
  row.set_b_label(std::string(name_b));
  CompareIndependent(*a, *b, options, &row);
  return row;
}

uint32_t ExitStatus(std::span<const v1::DiffRow* const> rows) {
  bool is_open = false;
  for (const v1::DiffRow* row : rows) {
    if (row->verdict() == Name(Verdict::kRegressed)) return 1;
    is_open |=
        row->verdict() == Name(Verdict::kInconclusive) || row->verdict() == Name(Verdict::kMissing);
  }
  return is_open ? 3 : 0;
}

}  // namespace pipeyard::analysis
