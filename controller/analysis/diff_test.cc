#include "controller/analysis/diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "controller/analysis/cell_diff.h"
#include "controller/analysis/testing.h"

namespace pipeyard::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::kBase;
using testing::kBetter;
using testing::RunBuilder;
using testing::TrialSpec;
using testing::TwoArms;

TEST(DiffRun, PairsByBlockAlongTheComparedFactor) {
  const RunBuilder built = TwoArms();

  const Result<v1::DiffResponse> diff = DiffRun(built.run, built.attempts);

  ASSERT_TRUE(diff.ok()) << diff.status().ToString();
  ASSERT_EQ(diff->rows_size(), 1);
  const v1::DiffRow& row = diff->rows(0);
  EXPECT_EQ(row.host(), "vera");
  EXPECT_EQ(row.variant(), "writers=1");
  EXPECT_EQ(row.a_label(), "two-page");
  EXPECT_EQ(row.b_label(), "prealloc");
  EXPECT_EQ(row.test(), "signed-rank");
  EXPECT_EQ(row.verdict(), "improved");
  EXPECT_EQ(row.reason(), "");
  EXPECT_DOUBLE_EQ(row.p(), 2.0 / 64);
  EXPECT_DOUBLE_EQ(row.min_p(), 2.0 / 64);
  EXPECT_EQ(row.effect().kind(), "ratio");
  EXPECT_NEAR(row.effect().value(), 1.2, 0.01);
  EXPECT_TRUE(row.effect().has_ci95_low());
  EXPECT_EQ(row.a().n(), 6u);
  EXPECT_EQ(row.a().boots(), 1u);
  EXPECT_DOUBLE_EQ(row.a().median(), 100.25);
  EXPECT_EQ(diff->tests(), 1u);
  EXPECT_DOUBLE_EQ(diff->expected_false_positives(), 0.05);
  EXPECT_EQ(diff->exit_status(), 0u);
}

TEST(DiffRun, EachOtherLevelMeetsTheBaseline) {
  RunBuilder built = TwoArms();
  built.Values("vera", built.Variant("writers=1", "one-page"), kBase);

  const Result<v1::DiffResponse> diff = DiffRun(built.run, built.attempts);

  ASSERT_TRUE(diff.ok());
  ASSERT_EQ(diff->rows_size(), 2);
  EXPECT_EQ(diff->rows(0).b_label(), "prealloc");
  EXPECT_EQ(diff->rows(1).b_label(), "one-page");
  EXPECT_EQ(diff->rows(1).a_label(), "two-page");
  EXPECT_EQ(diff->rows(1).verdict(), "unchanged");
}

TEST(DiffRun, RegressionExitsWithOne) {
  RunBuilder built("run-a");
  built.Values("vera", built.Variant("", "two-page"), kBetter);
  built.Values("vera", built.Variant("", "prealloc"), kBase);

  const Result<v1::DiffResponse> diff = DiffRun(built.run, built.attempts);

  ASSERT_TRUE(diff.ok());
  EXPECT_EQ(diff->rows(0).verdict(), "regressed");
  EXPECT_EQ(diff->exit_status(), 1u);
}

TEST(DiffRun, FiveBlocksAreInconclusiveAndNeedOneMore) {
  RunBuilder built("run-a");
  built.Values("vera", built.Variant("", "two-page"), {100, 101, 99, 102, 98});
  built.Values("vera", built.Variant("", "prealloc"), {150, 151, 149, 152, 148});

  const Result<v1::DiffResponse> diff = DiffRun(built.run, built.attempts);

  ASSERT_TRUE(diff.ok());
  EXPECT_EQ(diff->rows(0).verdict(), "inconclusive");
  EXPECT_EQ(diff->rows(0).reason(), "insufficient-samples");
  EXPECT_EQ(diff->rows(0).need_more(), 1u);
  EXPECT_FALSE(diff->rows(0).effect().has_ci95_low());
  EXPECT_EQ(diff->exit_status(), 3u);
}

TEST(DiffRun, PairThatLacksASideIsDroppedAndListed) {
  RunBuilder built("run-a");
  built.Values("vera", built.Variant("", "two-page"), {100, 101, 99, 102, 98, 100, 103});
  std::vector<TrialSpec> trials;
  for (double value : {120.0, 121.0, 119.0}) trials.push_back({value});
  trials.push_back({std::nullopt, storage::Outcome::kFailed});
  for (double value : {118.0, 120.0, 122.0}) trials.push_back({value});
  built.Cell("vera", built.Variant("", "prealloc"), trials);

  const Result<v1::DiffResponse> diff = DiffRun(built.run, built.attempts);

  ASSERT_TRUE(diff.ok());
  EXPECT_EQ(diff->rows(0).a().n(), 6u);
  EXPECT_EQ(diff->rows(0).dropped_pairs(), 1u);
  EXPECT_EQ(diff->rows(0).failed_attempts(), 1u);
  EXPECT_THAT(diff->warnings(), ElementsAre("vera: pairs dropped, one side has no value: block 4"));
}

TEST(DiffRun, APercentileThatATrialLacksIsNamed) {
  RunBuilder built = TwoArms();
  for (size_t i = 0; i < built.attempts.size(); ++i) {
    if (i == 2) continue;
    v1::Metric metric = built.attempts[i].metrics[0];
    metric.set_name("latency_p99");
    built.attempts[i].metrics.push_back(metric);
  }

  const Result<v1::DiffResponse> diff = DiffRun(built.run, built.attempts);

  ASSERT_TRUE(diff.ok());
  EXPECT_THAT(diff->warnings(),
              ElementsAre("vera, writers=1: pairs dropped, one side has no latency_p99: block 3"));
}

TEST(DiffRun, SampleIsTheFirstCommittedOkOfADoneTrial) {
  RunBuilder built = TwoArms();
  built.Attempt(built.run.cells[1], 1, {1.0});
  built.run.cells[0].trials[5].state = storage::TrialState::kFailed;

  const Result<v1::DiffResponse> diff = DiffRun(built.run, built.attempts);

  ASSERT_TRUE(diff.ok());
  EXPECT_EQ(diff->rows(0).a().n(), 5u);
  EXPECT_DOUBLE_EQ(diff->rows(0).b().median(), 120);
}

TEST(DiffRun, ArmThatIsVoidMoreOftenIsNotJudged) {
  RunBuilder built("run-a");
  const uint32_t base = built.Variant("", "two-page");
  const uint32_t other = built.Variant("", "prealloc");
  built.Values("vera", base, kBase);
  built.Values("vera", other, kBetter);
  for (uint32_t trial = 1; trial <= 6; ++trial) {
    built.Attempt(built.run.cells[1], trial, {std::nullopt, storage::Outcome::kVoid});
    built.Attempt(built.run.cells[1], trial, {std::nullopt, storage::Outcome::kVoid});
  }

  const Result<v1::DiffResponse> diff = DiffRun(built.run, built.attempts);

  ASSERT_TRUE(diff.ok());
  EXPECT_EQ(diff->rows(0).verdict(), "inconclusive");
  EXPECT_EQ(diff->rows(0).reason(), "void-imbalance");
  EXPECT_EQ(diff->rows(0).void_attempts(), 12u);
}

TEST(DiffRun, VariantWithoutTheFactorIsAReferenceRow) {
  RunBuilder built = TwoArms();
  built.Values("vera", built.Variant("target=kernel", ""), {90, 91, 92});

  const Result<v1::DiffResponse> diff = DiffRun(built.run, built.attempts);

  ASSERT_TRUE(diff.ok());
  EXPECT_EQ(diff->rows_size(), 1);
  ASSERT_EQ(diff->references_size(), 1);
  EXPECT_EQ(diff->references(0).variant(), "target=kernel");
  EXPECT_DOUBLE_EQ(diff->references(0).side().median(), 91);
}

TEST(DiffRun, ListedOrderUsesTheTwoSampleTest) {
  RunBuilder built = TwoArms();
  built.run.order_kind = "listed";

  const Result<v1::DiffResponse> diff = DiffRun(built.run, built.attempts);

  ASSERT_TRUE(diff.ok());
  EXPECT_EQ(diff->rows(0).test(), "mann-whitney");
}

TEST(DiffRun, ArmsInBootsOfTheirOwnAreComparedOverBoots) {
  RunBuilder built("run-a");
  std::vector<TrialSpec> base, other;
  for (int boot = 1; boot <= 5; ++boot) {
    base.push_back({100.0 + boot, storage::Outcome::kOk, fmt::format("a-{}", boot)});
    other.push_back({120.0 + boot, storage::Outcome::kOk, fmt::format("b-{}", boot)});
  }
  built.Cell("vera", built.Variant("", "two-page"), base);
  built.Cell("vera", built.Variant("", "prealloc"), other);

  const Result<v1::DiffResponse> diff = DiffRun(built.run, built.attempts);

  ASSERT_TRUE(diff.ok());
  EXPECT_EQ(diff->rows(0).test(), kTestOverBoots);
  EXPECT_EQ(diff->rows(0).a().boots(), 5u);
  EXPECT_EQ(diff->rows(0).verdict(), "improved");
}

TEST(DiffRun, PairSplitByARebootIsDropped) {
  RunBuilder built("run-a");
  std::vector<TrialSpec> base, other;
  for (int block = 1; block <= 7; ++block) {
    base.push_back({100.0 + block, storage::Outcome::kOk, block <= 3 ? "boot-1" : "boot-2"});
    other.push_back({120.0 + block, storage::Outcome::kOk, block <= 2 ? "boot-1" : "boot-2"});
  }
  built.Cell("vera", built.Variant("", "two-page"), base);
  built.Cell("vera", built.Variant("", "prealloc"), other);

  const Result<v1::DiffResponse> diff = DiffRun(built.run, built.attempts);

  ASSERT_TRUE(diff.ok());
  EXPECT_EQ(diff->rows(0).test(), "signed-rank");
  EXPECT_EQ(diff->rows(0).a().n(), 6u);
  EXPECT_EQ(diff->rows(0).dropped_pairs(), 1u);
  EXPECT_THAT(diff->warnings(0), HasSubstr("a reboot lies between their sides: block 3"));
}

TEST(DiffRun, SameNumberInEveryTrialIsCalledSuspicious) {
  RunBuilder built("run-a");
  built.Values("vera", built.Variant("", "two-page"), kBase);
  built.Values("vera", built.Variant("", "prealloc"), {1, 1, 1, 1, 1, 1});

  const Result<v1::DiffResponse> diff = DiffRun(built.run, built.attempts);

  ASSERT_TRUE(diff.ok());
  EXPECT_THAT(diff->warnings(0), HasSubstr("the same number (1) in all 6 trials: suspicious"));
}

TEST(DiffRun, ValueThatIsNotFiniteIsLeftOutAndSaid) {
  RunBuilder built("run-a");
  built.Values("vera", built.Variant("", "two-page"), kBase);
  built.Values("vera", built.Variant("", "prealloc"), {NAN, 121, 119, 122, 118, 120.5});

  const Result<v1::DiffResponse> diff = DiffRun(built.run, built.attempts);

  ASSERT_TRUE(diff.ok());
  EXPECT_EQ(diff->rows(0).b().n(), 5u);
  EXPECT_THAT(diff->warnings(), ::testing::Contains(HasSubstr("not a finite number in 1 trials")));
}

TEST(DiffRun, EmulatedIsNotComparedWithReal) {
  RunBuilder built("run-a");
  built.Values("vera", built.Variant("", "two-page"), kBase);
  built.emulated = true;
  built.Values("vera", built.Variant("", "prealloc"), kBetter);

  const Result<v1::DiffResponse> diff = DiffRun(built.run, built.attempts);

  EXPECT_EQ(diff.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(diff.status().message(), HasSubstr("emulated topology"));
}

TEST(DiffRun, CountersStandInEachRowMostChangedFirst) {
  RunBuilder built = TwoArms();
  for (size_t i = 0; i < built.attempts.size(); ++i) {
    const bool is_b = i >= 6;
    const auto add = [&](const char* name, int64_t value) {
      v1::Counter counter;
      counter.set_name(name);
      counter.set_unit("count");
      counter.set_value(value);
      built.attempts[i].counters.push_back(counter);
    };
    add("pages_allocated", 1000);
    add("pages_allocated_locked", is_b ? 0 : 900);
    add("wakeups", is_b ? 110 : 100);
  }

  const Result<v1::DiffResponse> diff = DiffRun(built.run, built.attempts);

  ASSERT_TRUE(diff.ok());
  const v1::DiffRow& row = diff->rows(0);
  ASSERT_EQ(row.counters_size(), 3);
  EXPECT_EQ(row.counters(0).name(), "pages_allocated_locked");
  EXPECT_EQ(row.counters(0).a(), 900);
  EXPECT_EQ(row.counters(0).b(), 0);
  EXPECT_EQ(row.counters(1).name(), "wakeups");
}

TEST(DiffRun, EmptyComparisonIsAnErrorThatSaysWhatThereIs) {
  RunBuilder built("run-a");
  built.Values("vera", built.Variant("writers=1", "two-page"), kBase);
  built.Cell("vera", built.Variant("writers=1", "prealloc"),
             {{std::nullopt, storage::Outcome::kFailed}});

  const Result<v1::DiffResponse> diff = DiffRun(built.run, built.attempts);

  EXPECT_EQ(diff.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(diff.status().message(),
              HasSubstr("vera, writers=1;engine.page_cache=prealloc: 0 of 1 trials have a sample"));
}

TEST(DiffRun, RunWithoutCompareIsRefused) {
  RunBuilder built = TwoArms();
  built.run.compare_factor.clear();

  EXPECT_EQ(DiffRun(built.run, built.attempts).status().code(), StatusCode::kFailedPrecondition);
}

TEST(DiffRun, HostOrVariantThatIsNotThereIsNoSuchThing) {
  RunBuilder built = TwoArms();
  built.Values("rack2", built.Variant("writers=2", "two-page"), kBase);
  RunBuilder without_compare = TwoArms();
  without_compare.run.compare_factor.clear();
  const DiffOperand kAbsent[] = {
      {.run = "", .variant = "", .host = "NOHOST"},
      {.run = "", .variant = "NOVARIANT", .host = ""},
      {.run = "", .variant = "writers=9", .host = ""},
      {.run = "", .variant = "writers=1", .host = "rack2"},
  };
  for (const DiffOperand& absent : kAbsent) {
    EXPECT_EQ(DiffRun(built.run, built.attempts, absent).status().code(), StatusCode::kNotFound)
        << absent.host << absent.variant;
    EXPECT_EQ(DiffRun(without_compare.run, without_compare.attempts, absent).status().code(),
              StatusCode::kNotFound);
    EXPECT_EQ(
        DiffRuns(built.run, built.attempts, built.run, built.attempts, {}, absent).status().code(),
        StatusCode::kNotFound);
  }
}

TEST(DiffRun, MetricOfAnotherUnitIsNotCompared) {
  RunBuilder built = TwoArms();
  for (size_t i = 6; i < 12; ++i) built.attempts[i].metrics[0].set_unit("kB/s");

  const Result<v1::DiffResponse> diff = DiffRun(built.run, built.attempts);

  EXPECT_EQ(diff.status().code(), StatusCode::kFailedPrecondition);
}

TEST(DiffRun, OnlyRestrictsToAHostAndAVariant) {
  RunBuilder built = TwoArms();
  built.Values("rack2", 0, kBase);
  built.Values("rack2", 1, kBetter);

  const Result<v1::DiffResponse> diff =
      DiffRun(built.run, built.attempts, {.run = "", .variant = "writers=1", .host = "rack2"});
  const Result<v1::DiffResponse> unknown =
      DiffRun(built.run, built.attempts, {.run = "", .variant = "", .host = "rack3"});

  ASSERT_TRUE(diff.ok());
  ASSERT_EQ(diff->rows_size(), 1);
  EXPECT_EQ(diff->rows(0).host(), "rack2");
  EXPECT_EQ(unknown.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(unknown.status().message(), HasSubstr("rack2, vera"));
}

TEST(DiffRun, AttemptListedTwiceIsAnError) {
  RunBuilder a = TwoArms("run-a");
  a.attempts.push_back(a.attempts.back());

  EXPECT_EQ(DiffRun(a.run, a.attempts).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace pipeyard::analysis
