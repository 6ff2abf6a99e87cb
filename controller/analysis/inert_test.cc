// Comparisons of what cannot differ, and of what is only modelled.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/analysis/diff.h"
#include "controller/analysis/testing.h"

namespace pipeyard::analysis {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::RunBuilder;

const std::vector<double> kA = {100, 101, 99, 102, 98, 100.5};
const std::vector<double> kB = {100.1, 101.1, 99.1, 102.1, 98.1, 100.6};
constexpr char kSwitch[] = "engine.page_cache";

void Set(RunBuilder& built, uint32_t variant, const std::string& name, const std::string& text) {
  v1::Setting& setting = *built.run.variants[variant].settings.add_settings();
  setting.set_name(name);
  setting.mutable_value()->set_text(text);
}

uint32_t Arm(RunBuilder& built, const std::string& level) {
  const uint32_t variant = built.Variant("writers=1", level);
  Set(built, variant, kSwitch, level);
  return variant;
}

v1::DiffRow OnlyRow(const Result<v1::DiffResponse>& diff) {
  EXPECT_TRUE(diff.ok()) << diff.status().ToString();
  if (!diff.ok() || diff->rows_size() != 1) {
    ADD_FAILURE() << "not one row";
    return {};
  }
  return diff->rows(0);
}

TEST(Inert, ASwitchThatCannotActHasAVerdictAndNoEffect) {
  RunBuilder built("run-a");
  built.Values("vera", Arm(built, "two-page"), kA);
  built.inert_switches = {kSwitch};
  built.Values("vera", Arm(built, "prealloc"), kB);

  const Result<v1::DiffResponse> diff = DiffRun(built.run, built.attempts);

  const v1::DiffRow row = OnlyRow(diff);
  EXPECT_EQ(row.verdict(), "inert");
  EXPECT_EQ(row.reason(), kSwitch);
  EXPECT_FALSE(row.has_effect());
  EXPECT_FALSE(row.has_p());
  EXPECT_FALSE(row.has_min_p());
  EXPECT_FALSE(row.has_mde());
  EXPECT_EQ(row.need_more(), 0u);
  EXPECT_EQ(row.a().n(), 6u);
  EXPECT_EQ(row.b().n(), 6u);
  EXPECT_EQ(diff->exit_status(), 0u);
  EXPECT_EQ(diff->tests(), 0u);
}

TEST(Inert, AnotherSwitchRecordedInertChangesNothing) {
  RunBuilder built("run-a");
  built.inert_switches = {"engine.interleave_bulk"};
  built.Values("vera", Arm(built, "two-page"), kA);
  built.Values("vera", Arm(built, "prealloc"), kB);

  EXPECT_EQ(OnlyRow(DiffRun(built.run, built.attempts)).verdict(), "unchanged");
}

TEST(Inert, OneSampleInWhichTheSwitchActedIsEnoughToCompare) {
  RunBuilder built("run-a");
  built.Values("vera", Arm(built, "two-page"), kA);
  built.inert_switches = {kSwitch};
  built.Values("vera", Arm(built, "prealloc"), kB);
  built.attempts.back().inert_switches.clear();

  EXPECT_EQ(OnlyRow(DiffRun(built.run, built.attempts)).verdict(), "unchanged");
}

// `prealloc` cannot act where `pool` does.
TEST(Inert, ALevelThatActsIsComparedWithABaselineThatCannot) {
  RunBuilder built("run-a");
  built.run.compare_baseline = "prealloc";
  built.inert_switches = {kSwitch};
  built.Values("vera", Arm(built, "prealloc"), kA);
  built.inert_switches = {};
  built.Values("vera", Arm(built, "pool"), kB);

  EXPECT_EQ(OnlyRow(DiffRun(built.run, built.attempts)).verdict(), "unchanged");
}

TEST(Inert, TwoLevelsThatBothCannotActAreInert) {
  RunBuilder built("run-a");
  built.run.compare_baseline = "prealloc";
  built.inert_switches = {kSwitch};
  built.Values("vera", Arm(built, "prealloc"), kA);
  built.Values("vera", Arm(built, "prealloc-v1"), kB);

  EXPECT_EQ(OnlyRow(DiffRun(built.run, built.attempts)).verdict(), "inert");
}

TEST(Inert, ASettingThatAdvancesAlongMakesADifference) {
  RunBuilder built("run-a");
  const uint32_t a = Arm(built, "two-page");
  Set(built, a, "placement.cpus", "node0");
  built.Values("vera", a, kA);
  built.inert_switches = {kSwitch};
  const uint32_t b = Arm(built, "prealloc");
  Set(built, b, "placement.cpus", "node1");
  built.Values("vera", b, kB);

  EXPECT_EQ(OnlyRow(DiffRun(built.run, built.attempts)).verdict(), "unchanged");
}

TEST(Inert, WhatIsMissingStaysMissing) {
  RunBuilder built("run-a");
  built.Values("vera", Arm(built, "two-page"), kA);
  built.inert_switches = {kSwitch};
  built.Values("vera", Arm(built, "prealloc"), kB);
  for (size_t i = 6; i < 12; ++i) {
    built.attempts[i].metrics[0].set_name("latency_mean");
    built.attempts[i].metrics[0].set_unit("ns");
  }
  // A pair of values, so that there is a comparison at all.
  v1::Metric extra = built.attempts[0].metrics[0];
  extra.set_name("cpu_time");
  for (storage::AttemptData& data : built.attempts) data.metrics.push_back(extra);

  const Result<v1::DiffResponse> diff = DiffRun(built.run, built.attempts);

  ASSERT_TRUE(diff.ok()) << diff.status().ToString();
  std::vector<std::string> verdicts;
  for (const v1::DiffRow& row : diff->rows()) verdicts.push_back(row.verdict());
  EXPECT_THAT(verdicts, ::testing::UnorderedElementsAre("inert", "missing", "missing"));
}

TEST(Inert, TwoNamedVariantsOfARunAreJudgedByTheirDifferenceToo) {
  RunBuilder built("run-a");
  built.Values("vera", Arm(built, "two-page"), kA);
  built.inert_switches = {kSwitch};
  built.Values("vera", Arm(built, "prealloc"), kB);

  const Result<v1::DiffResponse> diff =
      DiffRuns(built.run, built.attempts, built.run, built.attempts,
               {.run = "", .variant = "engine.page_cache=two-page", .host = ""},
               {.run = "", .variant = "engine.page_cache=prealloc", .host = ""});

  EXPECT_EQ(OnlyRow(diff).verdict(), "inert");
}

TEST(Inert, TheSameVariantInTwoRunsDiffersInNoSwitch) {
  RunBuilder a("run-a");
  RunBuilder b("run-b");
  for (RunBuilder* built : {&a, &b}) {
    built->inert_switches = {kSwitch};
    built->Values("vera", Arm(*built, "prealloc"), kA);
  }

  const Result<v1::DiffResponse> diff = DiffRuns(a.run, a.attempts, b.run, b.attempts);

  EXPECT_NE(OnlyRow(diff).verdict(), "inert");
}

void SetTopology(RunBuilder& built, uint32_t variant, const std::string& remote_access) {
  v1::Setting& setting = *built.run.variants[variant].settings.add_settings();
  setting.set_name("engine.topology");
  setting.mutable_value()->set_json(
      R"({"distances":[[10]],"nodes":[{"cpus":2,"memory":1048576}],"remote_access":)" +
      remote_access + "}");
}

TEST(Emulated, RowsAndReferencesSayWhatTheirTimesAreModelledWith) {
  RunBuilder built("run-a");
  built.emulated = true;
  for (const char* level : {"two-page", "prealloc"}) {
    const uint32_t variant = Arm(built, level);
    SetTopology(built, variant, "120");
    built.Values("vera", variant, kA);
  }
  const uint32_t reference = built.Variant("target=engine", "");
  SetTopology(built, reference, "1500");
  built.Values("vera", reference, kA);

  const Result<v1::DiffResponse> diff = DiffRun(built.run, built.attempts);

  const v1::DiffRow row = OnlyRow(diff);
  EXPECT_TRUE(row.emulated());
  EXPECT_EQ(row.modelled(), "remote_access=120ns");
  EXPECT_EQ(diff->references(0).modelled(), "remote_access=1500ns");
}

TEST(Emulated, RealResultsAreNotModelled) {
  RunBuilder built("run-a");
  built.Values("vera", Arm(built, "two-page"), kA);
  built.Values("vera", Arm(built, "prealloc"), kB);

  const v1::DiffRow row = OnlyRow(DiffRun(built.run, built.attempts));

  EXPECT_FALSE(row.emulated());
  EXPECT_THAT(row.modelled(), IsEmpty());
}

TEST(Emulated, AgainstRealIsRefusedUnlessForcedAndThenSaysSo) {
  RunBuilder built("run-a");
  built.Values("vera", Arm(built, "two-page"), kA);
  built.emulated = true;
  const uint32_t variant = Arm(built, "prealloc");
  SetTopology(built, variant, "120");
  built.Values("vera", variant, kB);

  const Result<v1::DiffResponse> refused = DiffRun(built.run, built.attempts);
  const Result<v1::DiffResponse> forced =
      DiffRun(built.run, built.attempts, {}, {.is_forced = true});

  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.status().message(), HasSubstr("--force"));
  const v1::DiffRow row = OnlyRow(forced);
  EXPECT_EQ(row.modelled(), "A real, B remote_access=120ns");
  EXPECT_THAT(forced->warnings(), Contains(HasSubstr("emulated topology are modelled")));
}

TEST(Selection, WhatMatchesNothingIsNotFound) {
  RunBuilder built("run-a");
  built.Values("vera", Arm(built, "two-page"), kA);
  built.Values("vera", Arm(built, "prealloc"), kB);

  for (const DiffOperand& only : {DiffOperand{.run = "", .variant = "", .host = "nohost"},
                                  DiffOperand{.run = "", .variant = "novariant", .host = ""}}) {
    EXPECT_EQ(DiffRun(built.run, built.attempts, only).status().code(), StatusCode::kNotFound);
    EXPECT_EQ(
        DiffRuns(built.run, built.attempts, built.run, built.attempts, only, {}).status().code(),
        StatusCode::kNotFound);
  }
}

}  // namespace
}  // namespace pipeyard::analysis
