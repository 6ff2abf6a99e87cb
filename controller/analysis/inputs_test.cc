#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "controller/analysis/compare.h"
#include "controller/analysis/normal.h"
#include "controller/analysis/number_file.h"
#include "controller/analysis/operand.h"
#include "controller/analysis/power.h"
#include "controller/analysis/rank_sum.h"
#include "controller/analysis/signed_rank.h"

namespace pipeyard::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ReadNumbers, BlankLinesAndCommentsArePassedOver) {
  const auto values = ReadNumbers("# ops\n1\n\n  2.5e3 # warm\r\n+3\n-4", "a.txt");

  ASSERT_TRUE(values.ok()) << values.status().ToString();
  EXPECT_THAT(*values, ElementsAre(1, 2500, 3, -4));
}

TEST(ReadNumbers, EveryBadLineIsToldWithItsPlace) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"1\nnan\n3\n", "a.txt:2: 'nan' is not a finite number"},
      {"inf\n", "a.txt:1: 'inf' is not a finite number"},
      {"1 2\n", "a.txt:1: '1 2' is not a number; one number a line was meant"},
      {"1e999\n", "a.txt:1: '1e999' is out of range"},
      {"0x10\n", "a.txt:1: '0x10' is not a number; one number a line was meant"},
      {"12ms\n", "a.txt:1: '12ms' is not a number; one number a line was meant"},
      {"x\n1\ny\n",
       "a.txt:1: 'x' is not a number; one number a line was meant\n"
       "a.txt:3: 'y' is not a number; one number a line was meant"},
      {"", "a.txt: holds no numbers"},
      {"# nothing\n\n", "a.txt: holds no numbers"},
  };
  for (const auto& [text, message] : cases) {
    const auto values = ReadNumbers(text, "a.txt");
    EXPECT_EQ(values.status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(values.status().message(), message);
  }
}

TEST(ReadNumbers, BinaryTextMakesAShortMessage) {
  std::string text;
  for (int i = 0; i < 100000; ++i) text += static_cast<char>(i * 7);

  EXPECT_LT(ReadNumbers(text, "a.bin").status().message().size(), 2000u);
}

TEST(CompareTexts, EffectThatNoNumberHoldsIsNotCalledAChange) {
  const std::string largest = "1.1e308\n1.2e308\n1.3e308\n1.4e308\n1.5e308\n1.6e308\n";
  const std::string smallest = "3.1e-308\n3.2e-308\n3.3e-308\n3.4e-308\n3.5e-308\n3.6e-308\n";
  const std::string negative = "-1.1e308\n-1.2e308\n-1.3e308\n-1.4e308\n-1.5e308\n-1.6e308\n";
  const std::pair<std::string, std::string> kCases[] = {
      {smallest, largest}, {largest, smallest}, {negative, largest}, {largest, negative}};
  for (const auto& [a, b] : kCases) {
    const auto row = CompareTexts(a, "a", b, "b", {});

    ASSERT_TRUE(row.ok()) << row.status().ToString();
    EXPECT_EQ(row->verdict(), "inconclusive");
    EXPECT_EQ(row->reason(), "out-of-range");
    EXPECT_FALSE(row->has_effect());
    EXPECT_TRUE(row->has_p());
    EXPECT_TRUE(row->has_min_p());
  }
}

TEST(CompareTexts, LargeValuesWhoseEffectIsANumberAreJudged) {
  const auto row =
      CompareTexts("1.01e308\n1.02e308\n1.03e308\n1.04e308\n1.05e308\n1.06e308\n", "a",
                   "1.31e308\n1.32e308\n1.33e308\n1.34e308\n1.35e308\n1.36e308\n", "b", {});

  ASSERT_TRUE(row.ok());
  EXPECT_EQ(row->verdict(), "changed");
  EXPECT_NEAR(row->effect().value(), 1.29, 0.01);
}

TEST(CompareTexts, BothSidesProblemsAreTold) {
  const auto row = CompareTexts("", "a", "nan", "b", {});

  EXPECT_EQ(row.status().message(), "a: holds no numbers\nb:1: 'nan' is not a finite number");
}

TEST(CompareTexts, WithoutADirectionAChangeIsAChange) {
  const auto row = CompareTexts("1\n2\n3\n4\n", "a", "15\n16\n17\n18\n", "b", {});

  ASSERT_TRUE(row.ok());
  EXPECT_EQ(row->verdict(), "changed");
  EXPECT_EQ(row->effect().kind(), "ratio");
}

TEST(CompareTexts, ZeroMakesItAShift) {
  const auto row =
      CompareTexts("0\n0\n0\n0\n", "a", "5\n5\n5\n5\n", "b", {.better = Better::kLower});

  ASSERT_TRUE(row.ok());
  EXPECT_EQ(row->effect().kind(), "shift");
  EXPECT_EQ(row->effect().value(), 5);
  EXPECT_EQ(row->verdict(), "regressed");
  EXPECT_FALSE(row->has_mde());
}

TEST(CompareTexts, ZeroAgainstZeroIsUnchanged) {
  const auto row = CompareTexts("0\n0\n0\n0\n", "a", "0\n0\n0\n0\n", "b", {});

  ASSERT_TRUE(row.ok());
  EXPECT_EQ(row->verdict(), "unchanged");
  EXPECT_EQ(row->p(), 1);
}

TEST(CompareTexts, ThreeAgainstThreeNeedsOneMoreASide) {
  const auto row = CompareTexts("1\n2\n3\n", "a", "9\n8\n7\n", "b", {.min_change = 1.0});

  ASSERT_TRUE(row.ok());
  EXPECT_EQ(row->verdict(), "inconclusive");
  EXPECT_EQ(row->reason(), "insufficient-samples");
  EXPECT_GE(row->need_more(), 1u);
}

TEST(MannWhitney, EmptyAndNanSidesAreErrors) {
  const std::vector<double> some{1, 2};
  const std::vector<double> odd{1, NAN};

  EXPECT_EQ(MannWhitney({}, some).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(MannWhitney(some, odd).status().code(), StatusCode::kInvalidArgument);
}

TEST(SignedRank, OnlyZerosGiveOne) {
  const std::vector<double> zeros(6, 0.0);

  EXPECT_EQ(SignedRank(zeros)->p, 1);
  EXPECT_EQ(PseudoMedian(zeros).value, 0);
  EXPECT_EQ(*PseudoMedian(zeros).ci95.low, 0);
}

TEST(SignedRank, DifferencesWithinTheToleranceAreTied) {
  const std::vector<double> d{0.1, -0.1 - 1e-15, 0.2};
  const std::vector<double> tied{0.1, -0.1, 0.2};

  EXPECT_EQ(SignedRank(d, 1e-12)->v, SignedRank(tied)->v);
  EXPECT_NE(SignedRank(d)->v, SignedRank(tied)->v);
}

TEST(MoreSamples, BringsTheDetectableEffectDownToTheThreshold) {
  const AdviceInput noisy{.n = 5, .sigma = 0.03, .threshold = std::log1p(0.02)};

  const uint64_t more = MoreSamples(noisy);

  const double n = static_cast<double>(5 + more);
  EXPECT_LE(*DetectableSigmas(Design::kTwoSample, n, 0.05) * 0.03, std::log1p(0.02));
  EXPECT_GT(*DetectableSigmas(Design::kTwoSample, n - 1, 0.05) * 0.03, std::log1p(0.02));
}

TEST(MoreSamples, IsBounded) {
  EXPECT_EQ(MoreSamples({.n = 6, .sigma = 100, .threshold = 1e-6}), kMaxAdvisedSamples - 6);
  EXPECT_EQ(MoreSamples({.n = 6, .sigma = 1, .threshold = 0}), 0u);
  EXPECT_EQ(MoreSamples({.n = kMaxAdvisedSamples, .sigma = 9, .threshold = 0.02}), 1u);
}

TEST(Normal, QuantileInvertsTheDistribution) {
  for (double p : {1e-9, 0.005, 0.025, 0.05, 0.3, 0.5, 0.7, 0.975, 0.999}) {
    EXPECT_NEAR(NormalCdf(NormalQuantile(p)) / p, 1, 1e-12) << p;
  }
  EXPECT_NEAR(NormalQuantile(0.975), 1.959963984540054, 1e-12);
}

TEST(ParseDiffOperand, TakesRunVariantAndHost) {
  struct Case {
    std::string text, run, variant, host;
  };
  for (const Case& c : std::vector<Case>{
           {"latest", "latest", "", ""},
           {"prealloc~1", "prealloc~1", "", ""},
           {"latest@0f3a", "latest", "0f3a", ""},
           {"latest/vera", "latest", "", "vera"},
           {"latest/vera@writers=1;readers=2", "latest", "writers=1;readers=2", "vera"},
           {"latest@x=a/b@c", "latest", "x=a/b@c", ""}}) {
    const auto operand = ParseDiffOperand(c.text);
    ASSERT_TRUE(operand.ok()) << c.text;
    EXPECT_EQ(operand->run, c.run);
    EXPECT_EQ(operand->variant, c.variant);
    EXPECT_EQ(operand->host, c.host);
  }
}

TEST(ParseDiffOperand, SaysWhatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "no run is named"},
      {"@x", "no run is named"},
      {"latest@", "no variant follows"},
      {"latest/", "no host follows"},
      {"latest/class:x", "not supported yet"}};
  for (const auto& [text, what] : cases) {
    EXPECT_THAT(ParseDiffOperand(text).status().message(), HasSubstr(what)) << text;
  }
}

}  // namespace
}  // namespace pipeyard::analysis
