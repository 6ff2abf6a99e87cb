// What a person is told about a broken sweep: where, what, and what was meant.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/testing/golden.h"
#include "controller/spec/sweep.h"

namespace pipeyard::spec {
namespace {

const std::string kGood = R"(sweep: contract
workload: transfer
target: kernel
parameters: { message_bytes: 64KiB, pipe_bytes: 1MiB, duration: 200ms, warmup: 0 }
factors: { writers: [1, 2] }
compare: { factor: writers, baseline: 1 }
repetitions: { min: 6, max: 6 }
order: { kind: blocked, seed: 7 }
)";

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string Told(const std::string& yaml, const std::vector<std::string>& sets = {}) {
  std::string told;
  for (const Problem& problem : ReadSweep(yaml, sets).problems) {
    told += problem.Format("s.yaml") + "\n";
  }
  return told;
}

TEST(Problem, IsFormattedWithItsPlaceUnlessItHasNone) {
  EXPECT_EQ((Problem{.line = 3, .column = 7, .what = "a", .meant = "b"}).Format("f"),
            "f:3:7: a; b");
  EXPECT_EQ(
      (Problem{.line = 3, .column = 7, .what = "a", .meant = "", .is_warning = true}).Format("f"),
      "f:3:7: warning: a");
  EXPECT_EQ((Problem{.what = "a", .meant = "b"}).Format("f"), "f: a; b");
}

TEST(ReadSweep, AcceptsTheGoodOne) {
  const ReadResult result = ReadSweep(kGood, {});

  EXPECT_TRUE(result.ok());
  EXPECT_TRUE(result.problems.empty()) << Told(kGood);
}

struct BadSweep {
  const char* name;
  std::string yaml;
  uint32_t line;
  std::string part;  // of what is told
};

std::vector<BadSweep> BadSweeps() {
  const auto with = [](const std::string& line) { return kGood + line + "\n"; };
  const auto engine = [&](const std::string& lines) {
    return Replaced(kGood, "target: kernel", "target: engine") + lines + "\n";
  };
  return {
      // From outside, scripts rely on the lines of these.
      {"UnknownKey", with("paralel: 3"), 9, "unknown key 'paralel'"},
      {"DuplicateKey", with("workload: transfer"), 9,
       "duplicate key 'workload'; it is first given in line 2"},
      {"UnknownWorkload", Replaced(kGood, "workload: transfer", "workload: transfr"), 2,
       "'transfr'; did you mean 'transfer'?"},
      {"MissingUnit", Replaced(kGood, "64KiB", "65536"), 4,
       "message_bytes: '65536' lacks its unit; a size with a unit"},
      {"WrongUnit", Replaced(kGood, "200ms", "200MiB"), 4,
       "duration: '200MiB' has the unknown unit 'MiB'"},
      {"EmptyFactor", Replaced(kGood, "[1, 2]", "[]"), 5, "factor writers has no levels"},
      {"BaselineNoLevel", Replaced(kGood, "baseline: 1", "baseline: 3"), 6,
       "baseline '3' is no level of writers; one of 1, 2"},
      {"MinAboveMax", Replaced(kGood, "min: 6", "min: 9"), 7, "min 9 is above max 6"},
      {"UnknownOrder", Replaced(kGood, "kind: blocked", "kind: shuffled"), 8,
       "'shuffled' is not one of its values; one of blocked"},
      {"EngineSwitchWithoutEngine", with("engine: { page_cache: prealloc }"), 9,
       "no variant targets the engine"},
      {"NoMap", "- 1\n- 2\n", 1, "a list stands here; a map of keys and values"},
      {"BrokenYaml", with("labels: { a: [1, }"), 9, "broken YAML"},
      {"ExcludesNothing", with("exclude: [ { writers: 17 } ]"), 9, "exclude: excludes nothing"},
      {"ZipOfUnequalLengths",
       Replaced(kGood, "[1, 2] }", "[1, 2], readers: [1] }") + "zip: [[writers, readers]]\n", 9,
       "zip: factors of unequal length: writers has 2, readers has 1"},
      // Names.
      {"NearSetting", Replaced(kGood, "message_bytes", "mesage_bytes"), 4,
       "unknown setting 'mesage_bytes'; did you mean 'message_bytes'?"},
      {"NearSwitch", engine("engine: { page_cach: prealloc }"), 9,
       "unknown setting 'engine.page_cach'; did you mean 'engine.page_cache'?"},
      {"BareSwitch",
       Replaced(kGood, "{ writers: [1, 2] }", "{ writers: [1, 2], page_cache: [two-page] }"), 5,
       "did you mean 'engine.page_cache'?"},
      {"OtherWorkloadsParameter", Replaced(kGood, "warmup: 0", "loops: 5"), 4,
       "unknown setting 'loops'; it is a parameter of messaging"},
      {"FarName", Replaced(kGood, "warmup: 0", "colour: red"), 4,
       "unknown setting 'colour'; one of target, allocator, duration,"},
      {"SwitchUnderParameters", Replaced(kGood, "warmup: 0", "engine.page_cache: prealloc"), 4,
       "'engine.page_cache' does not belong under parameters; 'page_cache' under engine"},
      {"PrefixUnderItsSection", engine("engine: { engine.page_cache: prealloc }"), 9,
       "'page_cache' under engine"},
      {"TargetUnderParameters", Replaced(kGood, "warmup: 0", "target: kernel"), 4,
       "'target' as a key of the file"},
      {"ReservedKernel", Replaced(kGood, "writers: [1, 2]", "writers: [1, 2], kernel: [6.1]"), 5,
       "'kernel' is reserved for a later version"},
      {"UnknownKnob", with("knobs: { swapiness: 1 }"), 9, "did you mean 'knob.swappiness'?"},
      {"DuplicateInSection", Replaced(kGood, "warmup: 0", "duration: 1s"), 4,
       "parameters: duplicate key 'duration'"},
      {"DuplicateFactor", Replaced(kGood, "writers: [1, 2]", "writers: [1, 2], writers: [3]"), 5,
       "factors: duplicate key 'writers'"},
      {"SettingAndFactor", Replaced(kGood, "warmup: 0", "writers: 1"), 5,
       "'writers' is both a setting and a factor"},
      {"NoSweepKey", Replaced(kGood, "sweep: contract\n", ""), 1, "the key 'sweep' is missing"},
      {"NoWorkloadKey", Replaced(kGood, "workload: transfer\n", ""), 1,
       "the key 'workload' is missing"},
      {"NoTargetKey", Replaced(kGood, "target: kernel\n", ""), 2,
       "the key 'target' is missing; target: engine or kernel"},
      {"NoName", Replaced(kGood, "contract", "\"a b\""), 1, "sweep: 'a b' is no name"},
      {"ReservedName", Replaced(kGood, "contract", "latest"), 1, "not latest"},
      // Types and values.
      {"MapForValue", Replaced(kGood, "duration: 200ms", "duration: { s: 1 }"), 4,
       "duration: a map stands here; one value"},
      {"ListForValue", Replaced(kGood, "duration: 200ms", "duration: [1s]"), 4,
       "duration: a list stands here"},
      {"NothingForValue", Replaced(kGood, "duration: 200ms", "duration: "), 4,
       "duration: has no value"},
      {"NullForValue", Replaced(kGood, "duration: 200ms", "duration: null"), 4,
       "duration: has no value"},
      {"ValueForMap", Replaced(kGood, "{ min: 6, max: 6 }", "6"), 7,
       "repetitions: '6' stands here; a map"},
      {"ValueForFactor", Replaced(kGood, "[1, 2]", "1"), 5,
       "factor writers: '1' stands here; a list of levels"},
      {"LevelTwice", Replaced(kGood, "[1, 2]", "[1, 2, 1]"), 5, "the level '1' is there already"},
      {"LevelTwiceInOtherUnits",
       Replaced(kGood, "{ writers: [1, 2] }",
                "{ writers: [1, 2], message_bytes: [1MiB, 1024KiB] }"),
       5, "the level '1024KiB' is there already"},
      {"LeadingZero", Replaced(kGood, "[1, 2]", "[08, 2]"), 5,
       "'08' begins with a zero; 8 was meant"},
      {"NoIsAWord", Replaced(kGood, "[1, 2]", "[no, 2]"), 5, "writers: 'no' is no whole number"},
      {"OutOfRange", Replaced(kGood, "[1, 2]", "[1, 2000]"), 5,
       "writers: 2000 is out of range; 1 to 1024 was meant"},
      {"TrueIsNoChoice", engine("engine: { fastpath: true }"), 9,
       "'true' is not one of its values; one of off, on was meant"},
      {"PostedPatch", engine("engine: { interleave_bulk: posted-patch }"), 9,
       "'posted-patch' is not one of its values"},
      {"BadTopology", engine("engine: { topology: { nodes: [ { cpus: 2, memory: 256 } ] } }"), 9,
       "nodes[0].memory: '256' lacks its unit"},
      // Parts that must agree.
      {"BulkOnKernel",
       Replaced(Replaced(kGood, "workload: transfer", "workload: bulk"), "target: kernel",
                "target:  kernel"),
       3, "workload bulk does not drive 'kernel'; engine"},
      {"CommandTarget", Replaced(kGood, "target: kernel", "target: command"), 3,
       "workload transfer does not drive 'command'"},
      {"CommandName", with("command: hackbench"), 9, "command: is for workload command only"},
      {"EngineFactorWithoutEngine",
       Replaced(kGood, "{ writers: [1, 2] }", "{ writers: [1, 2], engine.page_cache: [prealloc] }"),
       5, "'engine.page_cache' is given, but no variant targets the engine"},
      {"CompareNoFactor", Replaced(kGood, "factor: writers", "factor: readers"), 6,
       "compare: 'readers' is no factor; one of writers"},
      {"CompareOneLevel", Replaced(kGood, "[1, 2]", "[1]"), 6,
       "compare: writers has one level only"},
      {"CompareWithoutBaseline", Replaced(kGood, ", baseline: 1", ""), 6,
       "the key 'baseline' is missing"},
      {"ZipNoFactor", with("zip: [[writers, readers]]"), 9, "zip: 'readers' is no factor"},
      {"ZipNoFactorFirst", with("zip: [[readers, writers]]"), 9, "zip: 'readers' is no factor"},
      {"ZipOfNames", with("zip: [writers, readers]"), 9,
       "zip: 'writers' stands here; a list of lists"},
      {"ZippedTwice",
       Replaced(kGood, "[1, 2] }", "[1, 2], readers: [1, 2] }") +
           "zip: [[writers, readers], [readers, writers]]\n",
       9, "is zipped twice"},
      {"ExcludesAll", with("exclude: [ { writers: 1 }, { writers: 2 } ]"), 9,
       "nothing is left to run"},
      {"ExcludeEmpty", with("exclude: [ {} ]"), 9, "an empty map excludes everything"},
      {"ExcludeUnknown", with("exclude: [ { writrs: 1 } ]"), 9, "did you mean 'writers'?"},
      {"TooManyVariants",
       Replaced(kGood, "[1, 2] }",
                "[1, 2], readers: "
                "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,"
                "31,32,33,34,35,36,37,38,39,40,41,42,43,44,45,46,47,48,49,50,51,52,53,54,55,56,57,"
                "58,59,60,61,62,63,64,65,66,67,68,69,70,71], message_bytes: "
                "[1B,2B,3B,4B,5B,6B,7B,8B,9B,10B,11B,12B,13B,14B,15B,16B,17B,18B,19B,20B,21B,22B,"
                "23B,24B,25B,26B,27B,28B,29B,30B,31B,32B,33B,34B,35B,36B,37B,38B,39B,40B,41B,42B,"
                "43B,44B,45B,46B,47B,48B,49B,50B,51B,52B,53B,54B,55B,56B,57B,58B,59B,60B,61B,62B,"
                "63B,64B,65B,66B,67B,68B,69B,70B,71B] }"),
       5, "more than 10000 combinations"},
      {"TimeoutTooShort", with("limits: { trial_timeout: 100ms }"), 9,
       "limits.trial_timeout: 100ms is no longer than warm-up and duration, 200ms"},
      {"UnknownMetric", with("metrics: { thruput: { min_change: 2% } }"), 9,
       "metrics: unknown key 'thruput'"},
      {"SeedNoNumber", Replaced(kGood, "seed: 7", "seed: x"), 8, "order.seed: 'x' is no seed"},
      {"ControlCharacterInLabel", with("labels: { a: \"b\\nc\" }"), 9,
       "labels.a: holds a line break"},
      {"LongLabel", with("labels: { a: " + std::string(2000, 'x') + " }"), 9,
       "labels.a: 2000 bytes are too long"},
      {"UnknownHostKey", with("hosts: { nmes: [a] }"), 9,
       "hosts: unknown key 'nmes'; did you mean 'names'?"},
      {"UnknownFact", with("expect: { kernl: 6.1 }"), 9,
       "expect: unknown key 'kernl'; did you mean 'kernel'?"},
      // What YAML does to unquoted values.
      {"BrokenPolicy", Replaced(kGood, "[1, 2] }", "[1, 2], placement.memory: [interleave:0,1] }"),
       5, "YAML splits 'interleave:0,1' at its commas; quote it: \"interleave:0,1\""},
      {"BrokenWeights",
       Replaced(kGood, "[1, 2] }",
                "[1, 2], placement.memory: [\"bind:0\", weighted-interleave:0=3,1=1] }"),
       5, "quote it: \"weighted-interleave:0=3,1=1\""},
      {"BrokenCpus", with("placement: {cpus: 0-3,8,10-11}"), 9,
       "placement: YAML splits '0-3,8,10-11' at its commas; quote it: \"0-3,8,10-11\""},
      {"BrokenPolicyInMap", with("placement: {memory: interleave:0,1}"), 9,
       "quote it: \"interleave:0,1\""},
      {"BrokenInExclude", with("exclude: [ {placement.cpus: 0-3,8} ]"), 9, "quote it: \"0-3,8\""},
      {"Anchor", with("labels: &x { a: b }"), 9, "anchors (&name) are not part of the grammar"},
      {"Alias", with("labels: *x"), 9, ""},
      {"Tag", with("labels: { a: !!str b }"), 9, "tags (!name) are not part of the grammar"},
      {"SecondDocument", with("---\nsweep: b"), 9, "a second document begins here"},
      {"UnclosedMap", with("labels: { a: b"), 10,
       "broken YAML: end of map flow not found; a \'}\' that closes what line 9 opens"},
      {"Tab", with("labels:\n\ta: b"), 10, "indent with blanks, YAML knows no tabs"},
      {"ColonInValue", with("labels: { a: b: c }"), 9, "broken YAML"},
      {"MapAsKey", with("{ a: b }: c"), 9, "a key is a map"},
      {"CommandMissing", "sweep: s\nworkload: command\n", 2, "the key 'command' is missing"},
      {"CommandNoName", "sweep: s\nworkload: command\ncommand: ../x\n", 3,
       "command: '../x' is no name of a command"},
      {"CommandParameterName",
       "sweep: s\nworkload: command\ncommand: x\nparameters: { Groups: 1 }\n", 4,
       "unknown setting 'Groups'"},
      {"CommandEngine", "sweep: s\nworkload: command\ncommand: x\nengine: { slab: cpu-slab }\n", 4,
       "no variant targets the engine"},
      {"CommandMetric",
       "sweep: s\nworkload: command\ncommand: x\nmetrics: { ops: { min_chnge: 2% } }\n", 4,
       "did you mean 'min_change'?"},
      // Parsed, and refused until it is executed.
      {"NoCpus", with("placement: { cpus: socket0 }"), 9,
       "placement.cpus: 'socket0' names no CPUs; node0,"},
      {"NoPolicy", with("placement: { memory: membind }"), 9,
       "placement.memory: 'membind' is no policy; default, local,"},
      {"LaterKnob", with("knobs: { numa_balancing: 0 }"), 9,
       "knob.numa_balancing: '0' is not supported yet; leave it out"},
      {"LaterPrepare", with("prepare: [ { command: kbuild-clean, each: trial } ]"), 9,
       "prepare is not supported yet"},
      {"LaterInterference", with("interference: { steal: 1%, cpu_pressure: 5% }"), 9,
       "interference is not supported yet"},
      {"LaterCounters", with("counters: [cycles]"), 9, "counters is not supported yet"},
      {"LaterUntil",
       Replaced(kGood, "max: 6", "max: 30, until: { metric: throughput, half_width: 2% }"), 7,
       "repetitions.until is not supported yet"},
      {"LaterOrderRandom", Replaced(kGood, "kind: blocked", "kind: random"), 8,
       "order.kind: 'random' is not supported yet"},
      {"LaterOrderListed", Replaced(kGood, "kind: blocked", "kind: listed"), 8,
       "order.kind: 'listed' is not supported yet"},
      {"LaterWebhook", with("notify: { webhook: \"http://x/\" }"), 9,
       "notify.webhook is not supported yet"},
      {"LaterHostClass", with("hosts: { class: [vera-2s] }"), 9,
       "hosts.class is not supported yet"},
      {"LaterAbsoluteChange", with("metrics: { throughput: { min_change_abs: 5 } }"), 9,
       "min_change_abs is not supported yet"},
      {"WrongAllocator", Replaced(kGood, "warmup: 0", "allocator: aged"), 4,
       "allocator: 'aged' is no state of an allocator; fresh, or aged:NODE such as aged:1 was "
       "meant"},
      // Wrong even though it is not executed yet.
      {"WrongPrepare", with("prepare: [ { command: x, each: day } ]"), 9,
       "prepare.each: 'day' is not one of its values"},
      {"WrongInterference", with("interference: { steel: 1% }"), 9, "did you mean 'steal'?"},
      {"WrongUntil", Replaced(kGood, "max: 6", "max: 30, until: { metric: speed }"), 7,
       "'speed' is no metric of transfer"},
  };
}

class BadSweepTest : public ::testing::TestWithParam<BadSweep> {};

TEST_P(BadSweepTest, IsToldWithItsPlace) {
  const BadSweep& bad = GetParam();

  const ReadResult result = ReadSweep(bad.yaml, {});

  EXPECT_FALSE(result.ok());
  EXPECT_TRUE(result.sweep.variants.empty() || !result.ok());
  bool is_told = false;
  for (const Problem& problem : result.problems) {
    const std::string told = problem.Format("s.yaml");
    is_told |= problem.line == bad.line && told.find(bad.part) != std::string::npos;
    EXPECT_GT(problem.column, 0u) << told;
    EXPECT_EQ(told.find('\n'), std::string::npos);
  }
  EXPECT_TRUE(is_told) << "wanted line " << bad.line << ": " << bad.part << "\ntold:\n"
                       << Told(bad.yaml);
}

INSTANTIATE_TEST_SUITE_P(All, BadSweepTest, ::testing::ValuesIn(BadSweeps()),
                         [](const auto& param) { return std::string(param.param.name); });

TEST(ReadSweep, TellsAllProblemsOfOneFile) {
  EXPECT_EQ(Told("sweep: x\nworkload: nope\ntarget: nope\nfactors: { writers: [] }\n"),
            "s.yaml:2:11: unknown workload 'nope'; one of messaging, transfer, churn, fault, bulk, "
            "bandwidth, command\n"
            "s.yaml:3:9: target: 'nope' is not one of its values; one of engine, kernel, command "
            "was meant\n"
            "s.yaml:4:12: factor writers has no levels; at least one\n");
}

// One file with a bit of everything: the whole output is reviewed as people see it.
TEST(ReadSweep, TellsThemAsInTheGoldenFile) {
  const std::string root = PIPEYARD_SOURCE_DIR;
  const std::string yaml =
      pipeyard::testing::ReadFile(root + "/controller/spec/testdata/broken.yaml");
  ASSERT_FALSE(yaml.empty());

  pipeyard::testing::ExpectGolden(PIPEYARD_SOURCE_DIR "/controller/spec/testdata/broken.golden",
                                  Told(yaml));
}

TEST(ReadSweep, WarnsOfTooFewRepetitions) {
  const ReadResult result = ReadSweep(Replaced(kGood, "min: 6, max: 6", "min: 3"), {});

  EXPECT_TRUE(result.ok());
  ASSERT_EQ(result.problems.size(), 1u);
  EXPECT_EQ(result.problems[0].Format("s.yaml").find(
                "s.yaml:7:21: warning: repetitions.min 3 is below 6"),
            0u);
  EXPECT_EQ(result.sweep.repetitions_min, 3u);
  EXPECT_EQ(result.sweep.repetitions_max, 3u);
}

TEST(ReadSweep, WarnsOfAComparisonThatLacksASide) {
  const std::string yaml = Replaced(kGood, "[1, 2] }", "[1, 2], readers: [1, 5] }") +
                           "exclude: [ { writers: 2, readers: 5 } ]\n";

  const ReadResult result = ReadSweep(yaml, {});

  EXPECT_TRUE(result.ok());
  EXPECT_NE(Told(yaml).find("warning: compare: 'readers=5' has 1 only"), std::string::npos)
      << Told(yaml);
}

TEST(ReadSweep, EndsOddFilesWithOneShortProblem) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "s.yaml:1:1: the file holds nothing"},
      {"# only a comment\n", "s.yaml:1:1: the file holds nothing"},
      {"~\n", "the file holds nothing"},
      {"just words\n", "s.yaml:1:1: the file: 'just words' stands here; a map"},
      {std::string("a: \0b", 5), "s.yaml:1:4: byte 0x00 is no text"},
      {"a: \x1b[31m", "s.yaml:1:4: byte 0x1b is no text"},
      {"sweep: x\nb: \xff\xfe", "s.yaml:2:4: byte 0xff is no valid UTF-8"},
      {"a: " + std::string(20'000, '['), "more than 64 levels are nested"},
      {std::string(20'000, '{'), "more than 64 levels are nested"},
      {"sweep: " + std::string(5'000'000, 'x'), "s.yaml:1:1: the file is 5000007 bytes long"},
  };
  for (const auto& [yaml, part] : cases) {
    const std::string told = Told(yaml);
    EXPECT_NE(told.find(part), std::string::npos) << told;
    EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 1) << told;
    EXPECT_LT(told.size(), 300u);
  }
  std::string nested;
  for (int i = 0; i < 20'000; ++i) nested += "- ";
  EXPECT_NE(Told(nested).find("more than 64 levels are nested"), std::string::npos);
}

TEST(ReadSweep, KeepsTerminalEscapesOutOfWhatItTells) {
  const std::string told = Told(kGood + "\"\\e[31mred\": 1\n");

  EXPECT_NE(told.find("[31mred"), std::string::npos);
  EXPECT_EQ(told.find('\x1b'), std::string::npos);
}

TEST(ReadSweep, ShortensLongTextsAndEndlessLists) {
  std::string yaml = kGood;
  for (int i = 0; i < 5000; ++i) yaml += fmt::format("no_such_key_{}: 1\n", i);
  yaml += "x" + std::string(1000, 'y') + ": 1\n";

  const ReadResult result = ReadSweep(yaml, {});

  EXPECT_EQ(result.problems.size(), 201u);
  EXPECT_EQ(result.problems.back().what, "4801 more problems are not shown");
  for (const Problem& problem : result.problems) EXPECT_LT(problem.Format("s").size(), 1000u);
}

}  // namespace
}  // namespace pipeyard::spec
