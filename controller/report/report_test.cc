// Whole outputs against golden files: controller/report/testdata/. PIPEYARD_UPDATE_GOLDEN=1
// rewrites them; review the diff.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include "base/testing/golden.h"
#include "controller/report/diff_text.h"
#include "controller/report/host_text.h"
#include "controller/report/json.h"
#include "controller/report/run_text.h"
#include "controller/report/sweep_text.h"
#include "controller/report/table.h"
#include "controller/report/testing.h"
#include "controller/report/words.h"

namespace pipeyard::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

void ExpectGolden(const std::string& name, const std::string& actual) {
  pipeyard::testing::ExpectGolden(PIPEYARD_SOURCE_DIR "/controller/report/testdata/" + name,
                                  actual);
}

TEST(Golden, DiffAlongAFactor) {
  ExpectGolden("diff_factor.txt", DiffText(testing::FactorDiff(), false));
  ExpectGolden("diff_factor.json", DiffJson(testing::FactorDiff()));
}

TEST(Golden, DiffOfTwoRunsOverBoots) {
  ExpectGolden("diff_runs.txt", DiffText(testing::RunsDiff(), false));
  ExpectGolden("diff_runs.json", DiffJson(testing::RunsDiff()));
}

TEST(Golden, DiffOfAnEmulatedTopologyWithAnInertSwitch) {
  ExpectGolden("diff_emulated.txt", DiffText(testing::EmulatedDiff(), false));
  ExpectGolden("diff_emulated.json", DiffJson(testing::EmulatedDiff()));
}

TEST(Golden, DiffInColour) {
  ExpectGolden("diff_colour.txt", DiffText(testing::FactorDiff(), true));
}

TEST(Inert, IsNeverPrintedAsARatio) {
  v1::DiffResponse diff = testing::EmulatedDiff();
  diff.mutable_rows()->DeleteSubrange(2, 2);

  const std::string text = DiffText(diff, false);

  EXPECT_THAT(text, HasSubstr("inert: engine.metadata_placement"));
  EXPECT_THAT(text, HasSubstr("nothing in which they differ can act"));
  EXPECT_THAT(text, HasSubstr("2 inert"));
  EXPECT_THAT(text, Not(HasSubstr("1.00")));
  EXPECT_THAT(text, Not(HasSubstr("0.0%")));
}

TEST(Golden, Stat) {
  ExpectGolden("stat.txt", StatText(testing::StatRow(), false));
  ExpectGolden("stat.json", StatJson(testing::StatRow()));
}

TEST(Golden, RunList) {
  v1::ListRunsResponse runs;
  *runs.add_runs() = testing::SomeRun().summary();
  ExpectGolden("run_list.txt", RunListText(runs, false));
  ExpectGolden("run_list.json", RunListJson(runs));
}

TEST(Golden, RunShow) {
  ExpectGolden("run_show.txt", RunText(testing::SomeRun(), false));
  ExpectGolden("run_show.json", RunJson(testing::SomeRun()));
}

TEST(Golden, Hosts) {
  v1::ListHostsResponse hosts;
  *hosts.add_hosts() = testing::SomeHost();
  ExpectGolden("host_list.txt", HostListText(hosts, false));
  ExpectGolden("host_list.json", HostListJson(hosts));
  ExpectGolden("host_show.txt", HostText(testing::SomeHost(), false));
  ExpectGolden("host_show.json", HostJson(testing::SomeHost()));
}

TEST(Golden, SweepValidate) {
  ExpectGolden("sweep_validate.txt", SweepText(testing::SomeSweep().sweep, false));
  ExpectGolden("sweep_validate.json", ValidateJson(testing::SomeSweep()));
}

TEST(Golden, SweepPlan) {
  ExpectGolden("sweep_plan.txt", PlanText(testing::SomePlan(), false));
  ExpectGolden("sweep_plan.json", PlanJson(testing::SomePlan()));
}

TEST(Golden, Submit) {
  v1::SubmitSweepResponse response;
  response.set_run_id("01900000-0000-7000-8000-00000000000a");
  *response.mutable_problems() = testing::SomePlan().problems();
  ExpectGolden("submit.json", SubmitJson(response));
  ExpectGolden("problems.txt", ProblemsText(response.problems(), "prealloc.yaml"));
}

TEST(Golden, WatchEndsWithTheComparison) {
  v1::RunProgress progress;
  *progress.mutable_summary() = testing::SomeRun().summary();
  progress.set_exit_status(6);
  ExpectGolden("watch.json", WatchJson(progress, nullptr));
  ExpectGolden("cancel.json", CancelJson(progress));
  const v1::DiffResponse diff = testing::RunsDiff();
  EXPECT_THAT(WatchJson(progress, &diff), HasSubstr("\"schema\": \"pipeyard.diff/v1\""));
}

TEST(Json, BytesThatAreNoUtf8AreReplaced) {
  v1::Host host = testing::SomeHost();
  host.set_running("\xff\xfe");

  EXPECT_THAT(HostJson(host), HasSubstr("\xEF\xBF\xBD"));
}

TEST(Json, NumbersThatAreNotFiniteAreNull) {
  v1::DiffRow row = testing::StatRow();
  row.mutable_effect()->set_value(std::numeric_limits<double>::infinity());

  EXPECT_THAT(StatJson(row), HasSubstr("\"value\": null"));
}

TEST(Json, LargeIntegersStayNumbers) {
  v1::Run run = testing::SomeRun();
  run.set_order_seed(std::numeric_limits<uint64_t>::max());

  EXPECT_THAT(RunJson(run), HasSubstr("\"order_seed\": 18446744073709551615"));
}

TEST(RunText, ARunWithoutAttemptsDoesNotClaimThatAllWereOk) {
  v1::Run run = testing::SomeRun();
  for (v1::Cell& cell : *run.mutable_cells()) cell.clear_trials();

  const std::string text = RunText(run, false);

  EXPECT_THAT(text, HasSubstr("no attempt was begun"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("was ok")));
}

TEST(DiffText, EscapeSequencesOfAHostDoNotReachTheTerminal) {
  v1::DiffResponse diff = testing::RunsDiff();
  diff.mutable_rows(0)->set_host("evil\x1b[2J");

  EXPECT_THAT(DiffText(diff, false), Not(HasSubstr("\x1b")));
}

TEST(RunText, NamesInOtherLettersKeepThemAndTheColumns) {
  Table table({{"name"}, {"n"}});
  for (const std::string text : {"Größe", "3 µs €", "日本", "e\u0301", "ab\xff\xc2\x9b"}) {
    table.Row({Printable(text), "1"});
  }

  EXPECT_EQ(table.Render(false),
            "name    n\n"
            "Größe   1\n"
            "3 µs €  1\n"
            "??      1\n"
            "e?      1\n"
            "ab??    1\n");
}

TEST(DiffText, OnlyLatenciesAreShownInFull) {
  v1::DiffResponse diff = testing::RunsDiff();
  for (v1::DiffRow& row : *diff.mutable_rows()) row.set_metric("latency_p99");

  EXPECT_THAT(DiffText(diff, false), HasSubstr("median A"));
}

TEST(DiffText, ManyMoreBlocksAreNotCountedToTheLastDigit) {
  v1::DiffRow row = testing::FactorDiff().rows(2);
  row.set_need_more(1000);
  EXPECT_EQ(NeedsWords(row), "~1000 more blocks");
  row.set_need_more(9994);
  EXPECT_EQ(NeedsWords(row), "over 1,000 more blocks");
  EXPECT_EQ(VerdictWords(row), "inconclusive: noisy (detects 90%, needs over 1,000 more blocks)");
}

TEST(DiffText, APercentileOfFewerBlocksSaysSo) {
  v1::DiffResponse diff = testing::FactorDiff();
  diff.mutable_rows(2)->mutable_a()->set_n(2);
  diff.mutable_rows(2)->mutable_b()->set_n(2);

  EXPECT_THAT(DiffText(diff, false), HasSubstr("-8.6% better  +10.0% unclear (n 2)  6 blocks"));
}

TEST(DiffText, SettingsThatAllRowsShareStandInTheHeading) {
  const std::string text = DiffText(testing::FactorDiff(), false);

  EXPECT_THAT(text, HasSubstr("\neverywhere: readers=5\n"));
  EXPECT_THAT(text, HasSubstr("\nvera   writers=1  1.13 GB/s"));
}

TEST(DiffText, ATestThatNoRowHadIsNotNamed) {
  v1::DiffResponse diff = testing::FactorDiff();
  v1::DiffRow& missing = *diff.add_rows();
  missing = diff.rows(0);
  missing.clear_p();
  missing.set_verdict("missing");
  missing.set_test("mann-whitney");

  EXPECT_THAT(DiffText(diff, false), Not(HasSubstr("Mann-Whitney")));
}

TEST(DiffText, RareEventsDoNotCrowdOutTheMechanism) {
  v1::DiffResponse diff = testing::FactorDiff();
  v1::DiffRow& row = *diff.mutable_rows(0);
  v1::DiffRow::CounterDelta rare;
  rare.set_name("minor_faults");
  rare.set_unit("count");
  rare.set_a(1);
  rare.set_b(0);
  const std::vector<v1::DiffRow::CounterDelta> others(row.counters().begin(), row.counters().end());
  row.clear_counters();
  *row.add_counters() = rare;
  for (const v1::DiffRow::CounterDelta& other : others) *row.add_counters() = other;

  const std::string text = DiffText(diff, false);

  EXPECT_LT(text.find("mutex_hold"), text.find("minor_faults"));
}

TEST(DiffText, MetricsOfWhichTheSameIsToBeSaidShareALine) {
  v1::DiffResponse diff = testing::RunsDiff();
  for (v1::DiffRow& row : *diff.mutable_rows()) row.set_verdict("unchanged");
  diff.mutable_rows(1)->set_metric("latency_mean");

  EXPECT_THAT(DiffText(diff, false),
              HasSubstr("throughput, latency_mean, drift: B is better than A in 0 of 1"));
}

TEST(DiffText, ALevelThatIsABareNumberIsNamedWithItsFactor) {
  v1::DiffResponse diff = testing::FactorDiff();
  diff.set_factor("writers");
  for (v1::DiffRow& row : *diff.mutable_rows()) {
    row.set_a_label("1");
    row.set_b_label("5");
  }

  EXPECT_THAT(DiffText(diff, false), HasSubstr("writers=5 is better than writers=1 in 1 of 4"));
}

TEST(DiffText, TheSameWarningOfManyPlacesIsToldOnce) {
  v1::DiffResponse diff = testing::FactorDiff();
  diff.clear_warnings();
  for (const char* host : {"a", "b", "c"}) {
    diff.add_warnings(std::string(host) + ": latency_p999 has no value: too-few-operations");
  }
  diff.add_warnings("a: alone");

  EXPECT_THAT(DiffText(diff, false),
              HasSubstr("\nwarnings\n  latency_p999 has no value: too-few-operations (in 3 places; "
                        "each: -o json)\n  a: alone\n"));
}

TEST(Table, WidthsComeFromTheCellsAndEmptyColumnsVanish) {
  Table table({{"name"}, {"gone"}, {"n", Align::kRight}});
  table.Row({"a", "", "1"});
  table.Row({"longer", "", "1000"});

  EXPECT_EQ(table.Render(false),
            "name       n\n"
            "a          1\n"
            "longer  1000\n");
}

TEST(Table, ColourDoesNotTakeRoom) {
  Table table({{"v", Align::kRight}, {"w"}});
  table.Row({TableCell("ok", Tone::kGood), "x"});
  table.Row({"worse", "y"});

  EXPECT_EQ(table.Render(true), "    v  w\n   \x1b[32mok\x1b[0m  x\nworse  y\n");
}

TEST(Words, ChangesAtTheEdges) {
  EXPECT_EQ(ChangeWords(100, 0, "count"), "-100.0%");
  EXPECT_EQ(ChangeWords(3069448, 0, "count"), "-100.0%");
  EXPECT_EQ(ChangeWords(0, 0, "count"), "0.0%");
  EXPECT_EQ(ChangeWords(0, 5, "count"), "n/a (+5 abs)");
  EXPECT_EQ(ChangeWords(-5, 5, "count"), "n/a (+10 abs)");
  EXPECT_EQ(ChangeWords(0, 409000, "count"), "n/a (+409 k abs)");
  EXPECT_EQ(ChangeWords(std::nullopt, 5, "count"), "new");
  EXPECT_EQ(ChangeWords(5, std::nullopt, "count"), "gone");
  EXPECT_EQ(ChangeWords(1, 1.082, "count"), "+8.2%");
  EXPECT_EQ(ChangeWords(1, 0.9999999, "count"), "+0.0%");
  EXPECT_EQ(ChangeWords(1, 25, "count"), "x25.0");
}

TEST(Words, ATinyShareIsNotGivenInDigits) {
  EXPECT_EQ(PercentWords(5.7e-16), "<0.01%");
  EXPECT_EQ(PercentWords(0), "0%");
  EXPECT_EQ(PercentWords(0.008), "0.8%");
}

TEST(Words, Times) {
  EXPECT_EQ(UtcWords(0), "-");
  EXPECT_EQ(UtcWords(1709210096000000000), "2024-02-29 12:34:56Z");
  EXPECT_EQ(SpanWords(850000000), "850 ms");
  EXPECT_EQ(SpanWords(125000000000), "2m 05s");
  EXPECT_EQ(SpanWords(3720000000000), "1h 02m");
}

}  // namespace
}  // namespace pipeyard::report
