// What rules read, from samples of real programs (testdata/) and from texts that are wrong.
//
// The samples are what the programs of Debian 12 printed on a test machine: hackbench 2.40
// (rt-tests 2.4), perf 6.1, stress-ng 0.15.06. pipe_bench.txt is no real output but has the form
// that docs/kernel-mechanisms.md E3 states: no package has the program.
#include "workloads/commands/read_rules.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/testing/golden.h"
#include "workloads/commands/metric_units.h"
#include "workloads/commands/presets.h"

namespace pipeyard::commands {
namespace {

std::string Sample(const std::string& name) {
  return pipeyard::testing::ReadFile(PIPEYARD_SOURCE_DIR "/workloads/commands/testdata/" + name +
                                     ".txt");
}

// "metric=value unit better", or "metric: why not", a line each.
std::string Told(const std::vector<ReadRule>& rules, const ProgramOutput& output) {
  std::string told;
  for (const Reading& reading : ReadMetrics(rules, output)) {
    told += reading.status.ok() ? fmt::format("{}={} {} {}", reading.metric, reading.value,
                                              reading.unit, reading.better)
                                : reading.status.message();
    told += '\n';
  }
  return told;
}

TEST(Presets, ReadTheOutputOfTheirPrograms) {
  const struct {
    const char* preset;
    const char* told;
  } cases[] = {
      {"hackbench", "time=10000000 ns lower\n"},
      {"perf-bench-sched-messaging", "time=64000000 ns lower\n"},
      {"perf-bench-sched-pipe",
       "time=289000000 ns lower\ntime_per_op=14488.9 ns lower\nop_rate=69018 1/s higher\n"},
      {"pipe_bench",
       "write_rate=18592 1/s higher\nthroughput=1218445312 B/s higher\n"
       "latency_mean=107546 ns lower\nlatency_p50_upper=131071 ns lower\n"
       "latency_p99_upper=524287 ns lower\nlatency_max=8121344 ns lower\n"},
      {"stress-ng-pipe",
       "bogo_op_rate=190821.333152 1/s higher\nwrite_rate=99751820.263424 B/s higher\n"},
  };
  for (const auto& c : cases) {
    const Command* preset = FindPreset(c.preset);
    ASSERT_NE(preset, nullptr) << c.preset;
    const std::string sample = Sample(c.preset);
    ASSERT_FALSE(sample.empty()) << c.preset;
    // Each where its program prints: stress-ng into a file, the others on stdout.
    const bool is_file = preset->read[0].source == Source::kFile;
    const ProgramOutput output =
        is_file ? ProgramOutput{"", "", sample} : ProgramOutput{sample, "", std::nullopt};
    EXPECT_EQ(Told(preset->read, output), c.told) << c.preset;
  }
}

TEST(Presets, ReadNothingFromTheOutputOfAnother) {
  for (const std::string_view name : PresetNames()) {
    const std::string other = Sample(name == "hackbench" ? "pipe_bench" : "hackbench");
    for (const Reading& reading : ReadMetrics(FindPreset(name)->read, {other, other, other})) {
      EXPECT_FALSE(reading.status.ok()) << name << " " << reading.metric;
    }
  }
}

TEST(ReadMetrics, SaysWhyARegexFindsNoNumber) {
  const ReadRule rule{.metric = "ops", .pattern = "^ops/s: (.+)$", .unit = "1/s"};
  const struct {
    const char* text;
    const char* told;
  } cases[] = {
      {"start\nops/s: 12.5\nend\n", "ops=12.5 1/s \n"},
      {"ops/s: 1e3", "ops=1000 1/s \n"},
      {"ops/s: 12\r\n", "ops=12 1/s \n"},
      {"", "ops: no line of stdout matches '^ops/s: (.+)$'\n"},
      {"x ops/s: 12\n", "ops: no line of stdout matches '^ops/s: (.+)$'\n"},
      {"ops/s: 12\nops/s: 13\n", "ops: 2 lines of stdout match '^ops/s: (.+)$'; one was meant\n"},
      {"ops/s: fast\n", "ops: 'fast' is no number\n"},
      {"ops/s: 1,234\n", "ops: '1,234' is no number\n"},
      {"ops/s: inf\n", "ops: 'inf' is no number\n"},
      {"ops/s: nan\n", "ops: 'nan' is no number\n"},
      {"ops/s: 1e999\n", "ops: '1e999' is no number\n"},
      {"ops/s: 12 \n", "ops: '12 ' is no number\n"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(Told({rule}, {c.text, "", std::nullopt}), c.told) << c.text;
  }
}

TEST(ReadMetrics, SaysWhyAPathLeadsToNoNumber) {
  const ReadRule rule{
      .metric = "p99", .kind = ReadRule::Kind::kJson, .pattern = ".lat[1].p99", .unit = "us"};
  const struct {
    const char* text;
    const char* told;
  } cases[] = {
      {R"({"lat":[0,{"p99":1.5}]})", "p99=1500 ns \n"},
      {R"({"lat":[0,{"p99":"1.5"}]})",
       "p99: .lat[1].p99 of stdout: string stands there, no number\n"},
      {R"({"lat":[0,{"p99":null}]})", "p99: .lat[1].p99 of stdout: null stands there, no number\n"},
      {R"({"lat":[0]})", "p99: .lat[1].p99 of stdout: .lat has no [1]\n"},
      {R"({"lat":{}})", "p99: .lat[1].p99 of stdout: .lat has no [1]\n"},
      {R"([1])", "p99: .lat[1].p99 of stdout: the document has no .lat\n"},
      {R"({"[[[\"[[":1,"lat":[0,{"p99":2}]})", "p99=2000 ns \n"},
      {"{", "p99: .lat[1].p99 of stdout: is no valid JSON\n"},
      {"", "p99: .lat[1].p99 of stdout: is no valid JSON\n"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(Told({rule}, {c.text, "", std::nullopt}), c.told) << c.text;
  }
}

TEST(ReadMetrics, RefusesADocumentThatIsNestedPastAllReason) {
  const std::string deep(1'000'000, '[');
  const ReadRule json{.metric = "a", .kind = ReadRule::Kind::kJson, .pattern = ".a", .unit = "s"};
  ReadRule yaml = json;
  yaml.kind = ReadRule::Kind::kYaml;

  EXPECT_EQ(Told({json}, {deep, "", std::nullopt}),
            "a: .a of stdout: is nested more than 200 levels deep\n");
  EXPECT_NE(Told({yaml}, {deep, "", std::nullopt}).find("more than 64 levels are nested"),
            std::string::npos);
}

TEST(ReadMetrics, ReadsEachRuleFromItsSource) {
  const std::vector<ReadRule> rules = {
      {.metric = "a", .pattern = "^n=(.*)$", .source = Source::kStdout, .unit = "count"},
      {.metric = "b", .pattern = "^n=(.*)$", .source = Source::kStderr, .unit = "count"},
      {.metric = "c", .pattern = "^n=(.*)$", .source = Source::kFile, .unit = "count"}};

  EXPECT_EQ(Told(rules, {"n=1\n", "n=2\n", "n=3\n"}), "a=1 count \nb=2 count \nc=3 count \n");
  EXPECT_EQ(Told(rules, {"n=1\n", "", std::nullopt}),
            "a=1 count \nb: no line of stderr matches '^n=(.*)$'\n"
            "c: the program has not written {output}\n");
}

TEST(ReadMetrics, RefusesAnOutputOverTheLimit) {
  const ReadRule rule{.metric = "a", .pattern = "(x)", .unit = "count"};

  EXPECT_EQ(Told({rule}, {std::string(kMaxOutputBytes + 1, 'y'), "", std::nullopt}),
            "a: stdout is 16777217 bytes long; at most 16777216 are read\n");
}

TEST(ReadMetrics, AnUnknownUnitIsNamedWithTheKnownOnes) {
  const ReadRule rule{.metric = "a", .pattern = "(.*)", .unit = "furlong"};

  EXPECT_NE(Told({rule}, {"1", "", std::nullopt}).find("unknown unit 'furlong'; one of ns, us"),
            std::string::npos);
}

TEST(ReadMetrics, AValueBeyondAllNumbersIsNone) {
  const ReadRule rule{.metric = "a", .pattern = "(.*)", .unit = "GiB"};

  EXPECT_EQ(Told({rule}, {"1e308", "", std::nullopt}), "a: 1e+308 GiB is too large\n");
}

TEST(CheckPattern, RefusesWhatWouldMeanSomethingElse) {
  EXPECT_TRUE(CheckPattern(ReadRule::Kind::kRegex, R"(^ops/s: (\S+))").ok());
  for (const char* pattern : {"", "a", "(a)(b)", "(a", R"((\d+))", R"((a)\t)"}) {
    EXPECT_FALSE(CheckPattern(ReadRule::Kind::kRegex, pattern).ok()) << pattern;
  }
  EXPECT_TRUE(CheckPattern(ReadRule::Kind::kJson, R"(.a[0]."b.c")").ok());
  for (const char* path : {"", "a", ".", ".a[", ".a[x]", ".a[0", ".a..b", R"(."a)", "[-1]"}) {
    EXPECT_FALSE(CheckPattern(ReadRule::Kind::kYaml, path).ok()) << path;
  }
}

}  // namespace
}  // namespace pipeyard::commands
