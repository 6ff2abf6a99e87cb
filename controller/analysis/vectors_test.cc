// The known answers of tests/vectors/statistics.json, every entry of the groups that are computed.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "controller/analysis/compare.h"
#include "controller/analysis/fisher.h"
#include "controller/analysis/power.h"
#include "controller/analysis/rank_sum.h"
#include "controller/analysis/signed_rank.h"
#include "controller/analysis/summary.h"
#include "controller/analysis/verdict.h"

namespace pipeyard::analysis {
namespace {

using Json = nlohmann::json;

const Json& Vectors() {
  static const Json vectors = [] {
    std::ifstream file(PIPEYARD_SOURCE_DIR "/tests/vectors/statistics.json");
    return Json::parse(file);
  }();
  return vectors;
}

// Relative tolerance of the vectors, absolute below 1.
void ExpectNear(double actual, double expected) {
  EXPECT_NEAR(actual, expected, 1e-9 * std::max(std::fabs(expected), 1e-6));
}

void ExpectBound(const std::optional<double>& actual, const Json& expected) {
  ASSERT_EQ(actual.has_value(), !expected.is_null());
  if (!actual) return;
  EXPECT_NEAR(*actual, expected.get<double>(), 1e-9 * std::fabs(*actual) + 1e-12);
}

void ExpectInterval(const Interval& actual, const Json& expected) {
  ExpectBound(actual.low, expected.at(0));
  ExpectBound(actual.high, expected.at(1));
}

std::vector<double> Numbers(const Json& array) { return array.get<std::vector<double>>(); }

const Json& SamplesNamed(const Json& name) {
  for (const Json& entry : Vectors().at("mann_whitney")) {
    if (entry.at("name") == name) return entry;
  }
  throw std::out_of_range(name.dump());
}

TEST(MannWhitneyVectors, StatisticAndAllTails) {
  ASSERT_EQ(Vectors().at("mann_whitney").size(), 19u);
  for (const Json& entry : Vectors().at("mann_whitney")) {
    SCOPED_TRACE(entry.at("name"));
    const std::vector<double> a = Numbers(entry.at("A"));
    const std::vector<double> b = Numbers(entry.at("B"));

    const Result<RankSumResult> result = MannWhitney(a, b);

    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result->u_a, entry.at("U_a").get<double>());
    EXPECT_EQ(result->u_b, entry.at("U_b").get<double>());
    ExpectNear(result->p, entry.at("p_two_central").at("value"));
    ExpectNear(result->p_a_less, entry.at("p_A_less_than_B").at("value"));
    ExpectNear(result->p_a_greater, entry.at("p_A_greater_than_B").at("value"));
    ExpectNear(result->min_p, entry.at("min_attainable_p_no_ties"));
    EXPECT_NEAR(RankSumZ(a, b), entry.at("asym_cc_z").get<double>(), 1e-9);
  }
}

TEST(HodgesLehmannVectors, ShiftRatioAndIntervals) {
  ASSERT_EQ(Vectors().at("hodges_lehmann").size(), 19u);
  for (const Json& entry : Vectors().at("hodges_lehmann")) {
    SCOPED_TRACE(entry.at("name"));
    const Json& samples = SamplesNamed(entry.at("name"));
    const std::vector<double> a = Numbers(samples.at("A"));
    const std::vector<double> b = Numbers(samples.at("B"));

    const Estimate shift = HodgesLehmannShift(a, b);
    const Estimate ratio = HodgesLehmannRatio(a, b);

    EXPECT_NEAR(shift.value, entry.at("shift").get<double>(), 1e-9);
    ExpectInterval(shift.ci95, entry.at("ci95"));
    ExpectInterval(shift.ci90, entry.at("ci90"));
    ExpectNear(ratio.value, entry.at("ratio"));
    ExpectInterval(ratio.ci95, entry.at("ratio_ci95"));
    EXPECT_EQ(RankSumCriticalK(a.size(), b.size(), 0.05), entry.at("k95").get<uint64_t>());
    EXPECT_EQ(RankSumCriticalK(a.size(), b.size(), 0.10), entry.at("k90").get<uint64_t>());
    ExpectNear(*Median(a), entry.at("median_A"));
    ExpectNear(*Median(b), entry.at("median_B"));
  }
}

TEST(HodgesLehmannVectors, CriticalKTable) {
  const std::map<std::string, double> alphas{
      {"alpha0.05", 0.05}, {"alpha0.10", 0.10}, {"alpha0.01", 0.01}};
  for (const auto& [name, alpha] : alphas) {
    for (const auto& [sizes, k] : Vectors().at("hl_k_table").at(name).items()) {
      SCOPED_TRACE(name + " " + sizes);
      const size_t v = sizes.find('v');
      const uint64_t n_a = std::stoul(sizes.substr(0, v));
      const uint64_t n_b = std::stoul(sizes.substr(v + 1));

      EXPECT_EQ(RankSumCriticalK(n_a, n_b, alpha), k.get<uint64_t>());
      EXPECT_EQ(RankSumCriticalK(n_b, n_a, alpha), k.get<uint64_t>());
    }
  }
}

TEST(MedianVectors, OrderStatistics) {
  for (const Json& entry : Vectors().at("median_ci")) {
    SCOPED_TRACE(entry.dump());
    const uint64_t n = entry.at("n");
    const uint64_t k = MedianIntervalRank(n, entry.at("conf"));
    if (entry.at("order_stats").is_null()) {
      EXPECT_EQ(k, 0u);
    } else {
      EXPECT_EQ(k, entry.at("order_stats").at(0).get<uint64_t>());
      EXPECT_EQ(n + 1 - k, entry.at("order_stats").at(1).get<uint64_t>());
    }
  }
}

TEST(SignedRankVectors, StatisticTailsAndWalshInterval) {
  ASSERT_EQ(Vectors().at("paired_signed_rank").size(), 4u);
  for (const Json& entry : Vectors().at("paired_signed_rank")) {
    SCOPED_TRACE(entry.at("name"));
    const std::vector<double> d = Numbers(entry.at("d"));
    const Json& pratt = entry.at("pratt");

    const Result<SignedRankResult> result = SignedRank(d);
    const Estimate estimate = PseudoMedian(d);

    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result->v, pratt.at("V").at("value").get<double>());
    EXPECT_EQ(result->n_nonzero, pratt.at("n").get<uint64_t>());
    ExpectNear(result->p, pratt.at("p_two").at("value"));
    ExpectNear(result->p_greater, pratt.at("p_greater").at("value"));
    ExpectNear(result->p_less, pratt.at("p_less").at("value"));
    ExpectNear(estimate.value, entry.at("walsh_hl"));
    ExpectInterval(estimate.ci95, entry.at("walsh_ci95"));
    EXPECT_EQ(SignedRankCriticalK(d.size(), 0.05), entry.at("walsh_k").get<uint64_t>());
  }
}

TEST(SignedRankVectors, MinimumAttainableP) {
  for (const Json& entry : Vectors().at("paired_min_p")) {
    EXPECT_EQ(MinSignedRankP(entry.at("n")), entry.at("min_p").get<double>()) << entry.dump();
  }
}

TEST(VerdictVectors, Classification) {
  ASSERT_EQ(Vectors().at("classification").size(), 13u);
  for (const Json& entry : Vectors().at("classification")) {
    SCOPED_TRACE(entry.dump());
    const int direction = entry.at("dir");
    const Judgement judgement = Classify({.n_a = entry.at("nA"),
                                          .n_b = entry.at("nB"),
                                          .p = entry.at("p"),
                                          .min_p = entry.at("minp"),
                                          .alpha = entry.at("alpha"),
                                          .effect = std::log(entry.at("ratio").get<double>()),
                                          .ci90 = {std::log(entry.at("ci90").at(0).get<double>()),
                                                   std::log(entry.at("ci90").at(1).get<double>())},
                                          .threshold = std::log1p(entry.at("delta").get<double>()),
                                          .better = direction > 0   ? Better::kHigher
                                                    : direction < 0 ? Better::kLower
                                                                    : Better::kNone});

    const std::string words = std::string(Name(judgement.verdict)) +
                              (judgement.reason.empty() ? "" : ":" + judgement.reason);
    EXPECT_EQ(words, entry.at("verdict").get<std::string>());
  }
}

TEST(PowerVectors, DetectableSigmasOfTheTable) {
  const std::map<std::string, double> alphas{
      {"alpha0.05", 0.05}, {"alpha0.01", 0.01}, {"alpha0.001", 0.001}};
  for (const auto& [name, alpha] : alphas) {
    for (const auto& [n, sigmas] : Vectors().at("mde").at(name).items()) {
      SCOPED_TRACE(name + " " + n);
      const auto actual = DetectableSigmas(Design::kTwoSample, std::stod(n), alpha);
      ASSERT_TRUE(actual.has_value());
      EXPECT_NEAR(*actual, sigmas.get<double>(), 1e-12);
    }
  }
}

TEST(PowerVectors, ExampleOfThreePercentNoise) {
  const std::map<double, double> percent{{5, 7.18}, {10, 4.28}, {30, 2.31}};
  for (const auto& [n, expected] : percent) {
    EXPECT_NEAR(100 * *MinimumDetectableEffect(Design::kTwoSample, n, 0.03, 0.05), expected, 0.005);
  }
}

TEST(FisherVectors, TwoSided) {
  for (const Json& entry : Vectors().at("fail_runs_fisher")) {
    SCOPED_TRACE(entry.at("name"));
    const double p =
        FisherExact(entry.at("A_fail"), entry.at("A_runs"), entry.at("B_fail"), entry.at("B_runs"));
    EXPECT_NEAR(p / entry.at("p_two").get<double>(), 1, 1e-9);
  }
}

}  // namespace
}  // namespace pipeyard::analysis
