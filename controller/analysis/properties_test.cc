// What must hold for any data (statistics.md 5). rapidcheck prints its seed; PIPEYARD_SEED repeats
// it.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "controller/analysis/compare.h"
#include "controller/analysis/power.h"
#include "controller/analysis/rank_sum.h"
#include "controller/analysis/signed_rank.h"

namespace pipeyard::analysis {
namespace {

const bool kSeedIsPassedOn = [] {
  if (const char* seed = std::getenv("PIPEYARD_SEED")) {
    ::setenv("RC_PARAMS", (std::string("seed=") + seed).c_str(), 0);
  }
  return true;
}();

uint64_t Seed(uint64_t fallback) {
  const char* seed = std::getenv("PIPEYARD_SEED");
  return seed != nullptr ? std::strtoull(seed, nullptr, 10) : fallback;
}

// Positive values of which many are equal.
std::vector<double> Series(size_t least, size_t most) {
  const auto size = *rc::gen::inRange<size_t>(least, most + 1);
  const std::vector<int> whole =
      *rc::gen::container<std::vector<int>>(size, rc::gen::inRange(1, 60));
  return {whole.begin(), whole.end()};
}

std::vector<Pair> PairsOf(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<Pair> pairs;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) pairs.push_back({a[i], b[i]});
  return pairs;
}

v1::DiffRow Independent(const std::vector<double>& a, const std::vector<double>& b) {
  v1::DiffRow row;
  CompareIndependent(a, b, {.better = Better::kHigher}, &row);
  return row;
}

v1::DiffRow Paired(const std::vector<double>& a, const std::vector<double>& b) {
  v1::DiffRow row;
  ComparePaired(PairsOf(a, b), {.better = Better::kHigher}, &row);
  return row;
}

std::string Mirrored(const std::string& verdict) {
  if (verdict == "improved") return "regressed";
  if (verdict == "regressed") return "improved";
  return verdict;
}

bool Near(double x, double y) { return std::fabs(x - y) <= 1e-9 * std::max(1.0, std::fabs(y)); }

void ExpectMirror(const v1::DiffRow& forth, const v1::DiffRow& back) {
  RC_ASSERT(Near(forth.p(), back.p()));
  RC_ASSERT(Near(forth.effect().value() * back.effect().value(), 1));
  RC_ASSERT(forth.effect().has_ci95_low() == back.effect().has_ci95_high());
  if (forth.effect().has_ci95_low()) {
    RC_ASSERT(Near(forth.effect().ci95_low() * back.effect().ci95_high(), 1));
    RC_ASSERT(Near(forth.effect().ci95_high() * back.effect().ci95_low(), 1));
  }
  RC_ASSERT(back.verdict() == Mirrored(forth.verdict()));
  RC_ASSERT(back.reason() == forth.reason());
}

void ExpectSame(const v1::DiffRow& x, const v1::DiffRow& y) {
  RC_ASSERT(Near(x.p(), y.p()));
  RC_ASSERT(Near(x.effect().value(), y.effect().value()));
  RC_ASSERT(x.effect().has_ci90_low() == y.effect().has_ci90_low());
  RC_ASSERT(Near(x.effect().ci90_low(), y.effect().ci90_low()));
  RC_ASSERT(x.verdict() == y.verdict());
}

// The same with the values in another order.
std::vector<double> Rotated(std::vector<double> values, size_t by) {
  std::rotate(values.begin(), values.begin() + static_cast<ptrdiff_t>(by % values.size()),
              values.end());
  return values;
}

std::vector<double> Scaled(std::vector<double> values, double factor) {
  for (double& value : values) value *= factor;
  return values;
}

TEST(CompareProperties, SwappingTheSidesInvertsRatioIntervalAndVerdict) {
  EXPECT_TRUE(rc::check([] {
    const std::vector<double> a = Series(1, 14);
    const std::vector<double> b = Series(1, 14);
    ExpectMirror(Independent(a, b), Independent(b, a));
    ExpectMirror(Paired(a, b), Paired(b, a));
  }));
}

TEST(CompareProperties, SwappingInvertsTheShiftToo) {
  EXPECT_TRUE(rc::check([] {
    std::vector<double> a = Series(4, 12);
    std::vector<double> b = Series(4, 12);
    a.push_back(-3);
    b.push_back(0);
    const v1::DiffRow forth = Independent(a, b);
    const v1::DiffRow back = Independent(b, a);
    RC_ASSERT(forth.effect().kind() == "shift");
    RC_ASSERT(Near(forth.effect().value(), -back.effect().value()));
    RC_ASSERT(back.verdict() == Mirrored(forth.verdict()));
  }));
}

TEST(CompareProperties, AConstantFactorChangesNothing) {
  EXPECT_TRUE(rc::check([] {
    const std::vector<double> a = Series(1, 14);
    const std::vector<double> b = Series(1, 14);
    const double factor = *rc::gen::element(0.001, 0.5, 3.0, 1024.0, 1e9);
    ExpectSame(Independent(a, b), Independent(Scaled(a, factor), Scaled(b, factor)));
    ExpectSame(Paired(a, b), Paired(Scaled(a, factor), Scaled(b, factor)));
  }));
}

TEST(CompareProperties, OrderOfTheValuesChangesNothing) {
  EXPECT_TRUE(rc::check([] {
    const std::vector<double> a = Series(1, 14);
    const std::vector<double> b = Series(1, 14);
    const auto by = *rc::gen::inRange<size_t>(0, 14);
    ExpectSame(Independent(a, b), Independent(Rotated(a, by), Rotated(b, by + 1)));
    const size_t n = std::min(a.size(), b.size());
    const std::vector<double> same_a(a.begin(), a.begin() + static_cast<ptrdiff_t>(n));
    const std::vector<double> same_b(b.begin(), b.begin() + static_cast<ptrdiff_t>(n));
    ExpectSame(Paired(same_a, same_b), Paired(Rotated(same_a, by), Rotated(same_b, by)));
  }));
}

TEST(CompareProperties, AMonotoneTransformLeavesTheRankSumP) {
  EXPECT_TRUE(rc::check([] {
    const std::vector<double> a = Series(1, 14);
    const std::vector<double> b = Series(1, 14);
    const auto cubed = [](std::vector<double> values) {
      for (double& value : values) value = value * value * value + 1;
      return values;
    };
    const auto plain = MannWhitney(a, b);
    const auto transformed = MannWhitney(cubed(a), cubed(b));
    RC_ASSERT(plain->p == transformed->p);
    RC_ASSERT(plain->u_a == transformed->u_a);
  }));
}

TEST(CompareProperties, IntervalsHoldTheEstimateAndNest) {
  EXPECT_TRUE(rc::check([] {
    const std::vector<double> a = Series(4, 14);
    const std::vector<double> b = Series(4, 14);
    for (const v1::DiffRow& row : {Independent(a, b), Paired(a, b)}) {
      const v1::Effect& effect = row.effect();
      if (!effect.has_ci95_low()) continue;
      RC_ASSERT(effect.ci95_low() <= effect.ci90_low());
      RC_ASSERT(effect.ci90_low() <= effect.value() * (1 + 1e-12));
      RC_ASSERT(effect.value() <= effect.ci90_high() * (1 + 1e-12));
      RC_ASSERT(effect.ci90_high() <= effect.ci95_high());
    }
  }));
}

// Share of `rounds` in which two arms of the same distribution are called regressed.
double FalseAlarmRate(uint64_t seed, int rounds, bool is_paired) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> noise(0, 0.05);
  int regressed = 0;
  for (int round = 0; round < rounds; ++round) {
    const size_t n = 6 + random() % 7;
    std::vector<double> a(n), b(n);
    for (double& value : a) value = 100 * std::exp(noise(random));
    for (double& value : b) value = 100 * std::exp(noise(random));
    const v1::DiffRow row = is_paired ? Paired(a, b) : Independent(a, b);
    regressed += row.verdict() == "regressed" ? 1 : 0;
  }
  return regressed / static_cast<double>(rounds);
}

TEST(FalseAlarms, EqualArmsRegressNoOftenerThanAlpha) {
  const uint64_t seed = Seed(20240607);
  RecordProperty("seed", std::to_string(seed));
  constexpr int kRounds = 4000;

  // One of the two directions: half of alpha, and three standard deviations of the simulation.
  const double limit = 0.025 + 3 * std::sqrt(0.025 * 0.975 / kRounds);
  EXPECT_LE(FalseAlarmRate(seed, kRounds, false), limit) << "seed " << seed;
  EXPECT_LE(FalseAlarmRate(seed, kRounds, true), limit) << "seed " << seed;
}

TEST(FalseAlarms, ExactAndNormalAgreeWhereTheyMeet) {
  std::mt19937_64 random(7);
  std::vector<double> a(100), b(100);
  for (double& value : a) value = static_cast<double>(random() % 1000);
  for (double& value : b) value = static_cast<double>(random() % 1000) + 60;
  const double exact = MannWhitney(a, b)->p;
  const double normal = 2 * 0.5 * std::erfc(std::fabs(RankSumZ(a, b)) / std::sqrt(2.0));
  ASSERT_TRUE(MannWhitney(a, b)->is_exact);
  EXPECT_NEAR(exact, normal, 0.002);

  a.push_back(500);
  ASSERT_FALSE(MannWhitney(a, b)->is_exact);
  EXPECT_NEAR(MannWhitney(a, b)->p, exact, 0.02);
}

// The paired table of detectable effects is our own: power at the tabulated effect is 80 %.
TEST(Power, PairedTableGivesEightyPercent) {
  std::mt19937_64 random(Seed(11));
  std::normal_distribution<double> noise;
  for (uint64_t n : {6, 8, 10, 15}) {
    const double effect = *DetectableSigmas(Design::kPaired, static_cast<double>(n), 0.05);
    constexpr int kRounds = 4000;
    int found = 0;
    for (int round = 0; round < kRounds; ++round) {
      std::vector<double> d(n);
      for (double& value : d) value = effect + noise(random);
      found += SignedRank(d)->p <= 0.05 ? 1 : 0;
    }
    EXPECT_NEAR(found / static_cast<double>(kRounds), 0.80, 0.03) << n << " blocks";
  }
}

}  // namespace
}  // namespace pipeyard::analysis
