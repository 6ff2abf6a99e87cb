#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/analysis/cell_diff.h"
#include "controller/analysis/diff.h"
#include "controller/analysis/testing.h"

namespace pipeyard::analysis {
namespace {

using ::testing::HasSubstr;
using testing::kBase;
using testing::kBetter;
using testing::RunBuilder;
using testing::TwoArms;

TEST(DiffRuns, SameBootIsTheTwoSampleTest) {
  const RunBuilder a = TwoArms("run-a");
  const RunBuilder b = TwoArms("run-b");

  const Result<v1::DiffResponse> diff = DiffRuns(a.run, a.attempts, b.run, b.attempts);

  ASSERT_TRUE(diff.ok()) << diff.status().ToString();
  ASSERT_EQ(diff->rows_size(), 2);
  EXPECT_EQ(diff->rows(0).test(), "mann-whitney");
  EXPECT_EQ(diff->rows(0).verdict(), "unchanged");
}

TEST(DiffRuns, OtherBootIsTooFewBoots) {
  const RunBuilder a = TwoArms("run-a", "boot-1");
  const RunBuilder b = TwoArms("run-b", "boot-2");

  const Result<v1::DiffResponse> diff = DiffRuns(a.run, a.attempts, b.run, b.attempts);

  ASSERT_TRUE(diff.ok());
  EXPECT_EQ(diff->rows(0).test(), kTestOverBoots);
  EXPECT_EQ(diff->rows(0).verdict(), "inconclusive");
  EXPECT_EQ(diff->rows(0).reason(), "too-few-boots");
  EXPECT_EQ(diff->rows(0).need_more(), 3u);
  EXPECT_EQ(diff->rows(0).a().n(), 6u);
  EXPECT_FALSE(diff->rows(0).effect().has_ci95_low());
  EXPECT_EQ(diff->exit_status(), 3u);
}

TEST(DiffRuns, UnknownBootsAreNeverShared) {
  const RunBuilder a = TwoArms("run-a", "");
  const RunBuilder b = TwoArms("run-b", "");

  const Result<v1::DiffResponse> diff = DiffRuns(a.run, a.attempts, b.run, b.attempts);

  ASSERT_TRUE(diff.ok());
  EXPECT_EQ(diff->rows(0).reason(), "too-few-boots");
}

TEST(DiffRuns, CellOfOneSideOnlyIsMissing) {
  const RunBuilder a = TwoArms("run-a");
  RunBuilder b("run-b");
  b.Values("vera", b.Variant("writers=1", "two-page"), kBase);

  const Result<v1::DiffResponse> diff = DiffRuns(a.run, a.attempts, b.run, b.attempts);

  ASSERT_TRUE(diff.ok());
  ASSERT_EQ(diff->rows_size(), 2);
  EXPECT_EQ(diff->rows(1).verdict(), "missing");
  EXPECT_EQ(diff->rows(1).a().n(), 6u);
  EXPECT_EQ(diff->rows(1).b().n(), 0u);
  EXPECT_FALSE(diff->rows(1).b().has_median());
  EXPECT_FALSE(diff->rows(1).has_p());
  EXPECT_EQ(diff->exit_status(), 3u);
}

TEST(DiffRuns, TwoNamedVariantsOfOneBlockedRunArePaired) {
  const RunBuilder run = TwoArms();

  const Result<v1::DiffResponse> diff =
      DiffRuns(run.run, run.attempts, run.run, run.attempts,
               {.run = "", .variant = "engine.page_cache=two-page", .host = ""},
               {.run = "", .variant = "engine.page_cache=prealloc", .host = ""});

  ASSERT_TRUE(diff.ok()) << diff.status().ToString();
  ASSERT_EQ(diff->rows_size(), 1);
  EXPECT_EQ(diff->rows(0).test(), "signed-rank");
  EXPECT_EQ(diff->rows(0).verdict(), "improved");
}

TEST(DiffRuns, VariantOfOneOperandRestrictsTheOther) {
  const RunBuilder a = TwoArms("run-a");
  const RunBuilder b = TwoArms("run-b");
  const DiffOperand only{.run = "", .variant = "engine.page_cache=prealloc", .host = ""};

  const Result<v1::DiffResponse> left = DiffRuns(a.run, a.attempts, b.run, b.attempts, only);
  const Result<v1::DiffResponse> right = DiffRuns(a.run, a.attempts, b.run, b.attempts, {}, only);

  ASSERT_TRUE(left.ok());
  ASSERT_TRUE(right.ok());
  EXPECT_EQ(left->rows_size(), 1);
  EXPECT_EQ(right->rows_size(), 1);
}

TEST(DiffRuns, VariantThatIsNotUniqueIsRefused) {
  const RunBuilder run = TwoArms();

  const Result<v1::DiffResponse> diff = DiffRuns(
      run.run, run.attempts, run.run, run.attempts, {.run = "", .variant = "writers=1", .host = ""},
      {.run = "", .variant = "engine.page_cache=prealloc", .host = ""});

  EXPECT_EQ(diff.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(diff.status().message(), HasSubstr("is not one variant but 2"));
}

TEST(DiffRuns, RunAgainstItselfIsRefused) {
  const RunBuilder run = TwoArms();

  const Result<v1::DiffResponse> diff = DiffRuns(run.run, run.attempts, run.run, run.attempts);

  EXPECT_EQ(diff.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(diff.status().message(), HasSubstr("the same trials"));
}

TEST(DiffRuns, TwoNamedHostsAreComparedAcrossHosts) {
  RunBuilder a("run-a");
  const uint32_t variant = a.Variant("writers=1", "two-page");
  a.Values("vera", variant, kBase, "boot-of-vera");
  a.Values("rack2", variant, kBetter, "boot-of-rack2");

  const Result<v1::DiffResponse> diff =
      DiffRuns(a.run, a.attempts, a.run, a.attempts, {.run = "", .variant = "", .host = "vera"},
               {.run = "", .variant = "", .host = "rack2"});

  ASSERT_TRUE(diff.ok()) << diff.status().ToString();
  EXPECT_EQ(diff->rows(0).host(), "vera vs rack2");
  EXPECT_EQ(diff->rows(0).reason(), "too-few-boots");
}

TEST(DiffRuns, NothingInCommonSaysWhatDidNotMatch) {
  const RunBuilder a = TwoArms("run-a");
  RunBuilder b("run-b");
  b.Values("other", b.Variant("writers=9", "two-page"), kBase);

  const Result<v1::DiffResponse> diff = DiffRuns(a.run, a.attempts, b.run, b.attempts);

  EXPECT_EQ(diff.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(diff.status().message(),
              HasSubstr("hosts: 1 in a, 1 in b, 0 in both; variants: 2 in a, 1 in b, 0 in both"));
}

}  // namespace
}  // namespace pipeyard::analysis
