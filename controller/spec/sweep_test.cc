// What a valid sweep becomes.
#include "controller/spec/sweep.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "base/testing/golden.h"

namespace pipeyard::spec {
namespace {

const std::string kPlain = "sweep: s\nworkload: transfer\ntarget: engine\n";
const std::string kFull = R"(sweep: s
workload: transfer
factors:
  target: [engine, kernel]
  engine.page_cache: [two-page, prealloc]
  writers: [1, 2]
  message_bytes: [4KiB, 1MiB]
compare: { factor: engine.page_cache, baseline: two-page }
)";

Sweep Read(const std::string& yaml, const std::vector<std::string>& sets = {}) {
  ReadResult result = ReadSweep(yaml, sets);
  for (const Problem& problem : result.problems) {
    EXPECT_TRUE(problem.is_warning) << problem.Format("s.yaml");
  }
  return std::move(result.sweep);
}

std::string ErrorsOf(const std::string& yaml, const std::vector<std::string>& sets) {
  std::string told;
  for (const Problem& problem : ReadSweep(yaml, sets).problems) {
    told += problem.Format("s.yaml") + "\n";
  }
  return told;
}

// "text|arm|comparison" of each variant.
std::vector<std::string> Shape(const Sweep& sweep) {
  std::vector<std::string> shape;
  for (const SweepVariant& variant : sweep.variants) {
    shape.push_back(fmt::format("{}|{}|{}", variant.text, variant.arm, variant.comparison));
  }
  return shape;
}

TEST(Sweep, OfCommandsHasTheirNamesAndParametersAsFactors) {
  const Sweep sweep = Read(R"(sweep: s
workload: command
parameters: { loops: 50 }
factors:
  command: [hackbench, hackbench-new]
  groups: [1, 10]
compare: { factor: command, baseline: hackbench }
metrics: { time: { min_change: 5% } }
)");

  EXPECT_EQ(Shape(sweep),
            (std::vector<std::string>{"command=hackbench;groups=1|hackbench|groups=1",
                                      "command=hackbench;groups=10|hackbench|groups=10",
                                      "command=hackbench-new;groups=1|hackbench-new|groups=1",
                                      "command=hackbench-new;groups=10|hackbench-new|groups=10"}));
  EXPECT_EQ(sweep.variants[0].variant.target, "command");
  EXPECT_EQ(sweep.variants[0].variant.Text("loops"), "50");
  EXPECT_EQ(sweep.min_change.at("time"), 0.05);
}

TEST(Sweep, OfOneVariantNeedsThreeLines) {
  const Sweep sweep = Read(kPlain);

  ASSERT_EQ(sweep.variants.size(), 1u);
  EXPECT_EQ(sweep.name, "s");
  EXPECT_EQ(sweep.workload, "transfer");
  EXPECT_EQ(sweep.variants[0].text, "");
  EXPECT_EQ(sweep.variants[0].arm, "");
  EXPECT_EQ(sweep.variants[0].variant.target, "engine");
  EXPECT_EQ(sweep.variants[0].variant_id, settings::VariantId(sweep.variants[0].variant));
}

TEST(Sweep, HasTheDefaultsOfTheContract) {
  const Sweep sweep = Read(kPlain);

  EXPECT_EQ(sweep.repetitions_min, 6u);
  EXPECT_EQ(sweep.repetitions_max, 6u);
  EXPECT_EQ(sweep.order, OrderKind::kBlocked);
  EXPECT_EQ(sweep.seed, std::nullopt);
  EXPECT_EQ(sweep.attempts_limit, 3u);
  EXPECT_EQ(sweep.host_wait, Minutes(10));
  EXPECT_TRUE(sweep.stops_host_on_crash);
  EXPECT_TRUE(sweep.min_change.empty());
  EXPECT_EQ(sweep.hosts.min_nodes, 1u);
  EXPECT_EQ(sweep.compare_factor, "");
  // 30 s + 5 x (0.5 s + 3 s)
  EXPECT_EQ(sweep.variants[0].trial_timeout, Milliseconds(47'500));
}

TEST(Sweep, TakesEveryKeyThatSaysHowItIsRun) {
  const Sweep sweep = Read(kPlain + R"(
hosts: { names: [a, b], labels: { rack: 7 }, not: { labels: { noisy: "1" } }, min_nodes: 2, class: [] }
expect: { kernel: "6.18*" }
prepare: []
interference: {}
counters: []
zip: []
exclude: []
repetitions: { min: 7, max: 9 }
order: { kind: blocked, seed: 18446744073709551615 }
limits: { trial_timeout: 60s, attempts: 5, host_wait: 0, on_crash: retry }
metrics: { throughput: { min_change: 1.5%, min_change_abs: 0 }, latency_p99: { min_change: 10% } }
labels: { ticket: MM-123, quiet: no, note: "a; b" }
priority: -5
notify: { webhook: "" }
)");

  EXPECT_EQ(sweep.hosts.names, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(sweep.hosts.labels, (std::map<std::string, std::string>{{"rack", "7"}}));
  EXPECT_EQ(sweep.hosts.not_labels, (std::map<std::string, std::string>{{"noisy", "1"}}));
  EXPECT_EQ(sweep.hosts.min_nodes, 2u);
  EXPECT_EQ(sweep.expect, (std::map<std::string, std::string>{{"kernel", "6.18*"}}));
  EXPECT_EQ(sweep.repetitions_min, 7u);
  EXPECT_EQ(sweep.repetitions_max, 9u);
  EXPECT_EQ(sweep.seed, UINT64_MAX);
  EXPECT_EQ(sweep.attempts_limit, 5u);
  EXPECT_EQ(sweep.host_wait, Nanos(0));
  EXPECT_FALSE(sweep.stops_host_on_crash);
  EXPECT_EQ(sweep.min_change,
            (std::map<std::string, double>{{"throughput", 0.015}, {"latency_p99", 0.1}}));
  EXPECT_EQ(sweep.labels, (std::map<std::string, std::string>{
                              {"ticket", "MM-123"}, {"quiet", "no"}, {"note", "a; b"}}));
  EXPECT_EQ(sweep.priority, -5);
  EXPECT_EQ(sweep.variants[0].trial_timeout, Seconds(60));
}

TEST(Sweep, ExpandsInFileOrderTheFirstFactorSlowest) {
  const Sweep sweep = Read(kPlain + "factors:\n  writers: [5, 1]\n  readers: [1, 10]\n");

  EXPECT_EQ(Shape(sweep), (std::vector<std::string>{"writers=5;readers=1||writers=5;readers=1",
                                                    "writers=5;readers=10||writers=5;readers=10",
                                                    "writers=1;readers=1||writers=1;readers=1",
                                                    "writers=1;readers=10||writers=1;readers=10"}));
}

TEST(Sweep, MergesKernelVariantsIntoReferencesWithoutAnArm) {
  const Sweep sweep = Read(kFull, {"writers=2", "message_bytes=[65536B]"});

  EXPECT_EQ(Shape(sweep),
            (std::vector<std::string>{
                "target=engine;engine.page_cache=two-page;writers=2;message_bytes=64KiB|two-page|"
                "target=engine;writers=2;message_bytes=64KiB",
                "target=engine;engine.page_cache=prealloc;writers=2;message_bytes=64KiB|prealloc|"
                "target=engine;writers=2;message_bytes=64KiB",
                "target=kernel;writers=2;message_bytes=64KiB||target=kernel;writers=2;message_"
                "bytes=64KiB"}));
}

TEST(Sweep, ZipsBeforeItMultiplies) {
  const Sweep sweep = Read(kPlain +
                           "factors:\n  writers: [1, 2]\n  message_bytes: [4KiB, 1MiB]\n"
                           "  readers: [1, 5]\nzip: [[writers, readers]]\n");

  std::vector<std::string> texts;
  for (const SweepVariant& variant : sweep.variants) texts.push_back(variant.text);
  EXPECT_EQ(texts, (std::vector<std::string>{"writers=1;message_bytes=4KiB;readers=1",
                                             "writers=1;message_bytes=1MiB;readers=1",
                                             "writers=2;message_bytes=4KiB;readers=5",
                                             "writers=2;message_bytes=1MiB;readers=5"}));
}

TEST(Sweep, ComparesAZippedFactorTogetherWithItsMates) {
  const Sweep sweep =
      Read(kPlain +
           "factors:\n  writers: [1, 2]\n  readers: [1, 5]\n  message_bytes: [4KiB, 8KiB]\n"
           "zip: [[writers, readers]]\ncompare: { factor: writers, baseline: 1 }\n");

  EXPECT_EQ(sweep.variants[0].comparison, "message_bytes=4KiB");
  EXPECT_EQ(sweep.variants[2].comparison, "message_bytes=4KiB");
  EXPECT_EQ(sweep.variants[2].arm, "2");
}

TEST(Sweep, ExcludesByFactorBySettingByDefaultAndByTarget) {
  const std::string factors = "factors: { writers: [1, 2], readers: [1, 5] }\n";
  const auto count = [&](const std::string& exclude) {
    return Read(kPlain + factors + "exclude: [ " + exclude + " ]\n").variants.size();
  };

  EXPECT_EQ(count("{ writers: 2, readers: 5 }"), 3u);
  EXPECT_EQ(count("{ writers: 2 }, { readers: 5 }"), 1u);
  EXPECT_EQ(count("{ writers: 2, duration: 3000ms }"), 2u);
  EXPECT_EQ(count("{ writers: 2, target: engine }"), 2u);
}

TEST(Sweep, ComparesBaselinesByValue) {
  const Sweep sweep = Read(kPlain +
                           "factors: { message_bytes: [1MiB, 4KiB] }\n"
                           "compare: { factor: message_bytes, baseline: 1024KiB }\n");

  EXPECT_EQ(sweep.compare_factor, "message_bytes");
  EXPECT_EQ(sweep.compare_baseline, "1MiB");
  EXPECT_EQ(sweep.variants[0].arm, "1MiB");
}

TEST(Sweep, ReadsScalarsAsTheirText) {
  const Sweep sweep = Read(kPlain +
                           "labels: { a: no, b: 08, c: 1e3, d: \"null\", e: 'x', f: on }\n"
                           "parameters: { writers: \"2\" }\n");

  EXPECT_EQ(sweep.labels,
            (std::map<std::string, std::string>{
                {"a", "no"}, {"b", "08"}, {"c", "1e3"}, {"d", "null"}, {"e", "x"}, {"f", "on"}}));
  EXPECT_EQ(sweep.variants[0].variant.Integer("writers"), 2);
}

TEST(Sweep, MayNameADefaultOfWhatIsNotSupportedYet) {
  const Sweep sweep = Read(kPlain + R"(
engine: { page_source: resident, fastpath: off, topology: host, policy: "", memory_limit: none }
parameters: { workers: threads, pressure: none, allocator: fresh }
)");

  EXPECT_EQ(sweep.variants[0].variant_id, Read(kPlain).variants[0].variant_id);
}

TEST(Sweep, GetsTheOnlyTargetOfItsWorkload) {
  EXPECT_EQ(Read("sweep: s\nworkload: bulk\n").variants[0].variant.target, "engine");
}

TEST(Set, ReplacesASettingOrAWholeFactor) {
  EXPECT_EQ(Read(kFull, {"duration=10s"}).variants[0].variant.Integer("duration"), 10'000'000'000);
  EXPECT_EQ(Read(kFull, {"duration=10s", "duration=5s"}).variants[0].variant.Integer("duration"),
            5'000'000'000);
  EXPECT_EQ(Read(kFull, {"writers=7"}).variants.size(), 6u);
  EXPECT_EQ(Read(kFull, {"writers=[3, 4, 5]"}).variants.size(), 18u);
  EXPECT_EQ(Read(kFull, {"target=engine"}).variants.size(), 8u);
}

TEST(Set, MakesAFactorOfASetting) {
  const Sweep sweep = Read(kPlain + "parameters: { writers: 1 }\n", {"writers=[1, 2]"});

  EXPECT_EQ(Shape(sweep),
            (std::vector<std::string>{"writers=1||writers=1", "writers=2||writers=2"}));
}

TEST(Set, TakesAValueThatYamlWouldSplitAsItIs) {
  for (const char* const set :
       {"placement.memory=interleave:0,1", "placement.memory=[\"interleave:0,1\"]"}) {
    EXPECT_EQ(Read(kPlain, {set}).variants[0].variant.Text("placement.memory"), "interleave:0,1");
  }
}

TEST(Set, ThatEmptiesAnExcludeOnlyWarns) {
  const std::string yaml = kPlain +
                           "factors: { pressure: [none, stress-vm-50] }\n"
                           "exclude: [ { pressure: stress-vm-50 } ]\n";

  const ReadResult result = ReadSweep(yaml, {"pressure=none"});

  EXPECT_TRUE(result.ok()) << ErrorsOf(yaml, {"pressure=none"});
  ASSERT_EQ(result.problems.size(), 1u);
  EXPECT_EQ(result.problems[0].what, "exclude: excludes nothing since --set");
  EXPECT_TRUE(result.problems[0].is_warning);
}

TEST(Set, ThatLeavesOneLevelOnlyWarns) {
  const ReadResult result = ReadSweep(kFull, {"engine.page_cache=[two-page]"});

  EXPECT_TRUE(result.ok());
  ASSERT_EQ(result.problems.size(), 1u);
  EXPECT_NE(result.problems[0].what.find("has one level only since --set"), std::string::npos);
}

TEST(Set, TellsWhatIsWrongWithoutAPlace) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"wrters=1", "s.yaml: --set: unknown setting 'wrters'; did you mean 'writers'?"},
      {"writers=x", "s.yaml: --set: writers: 'x' is no whole number"},
      {"writers", "s.yaml: --set writers: is no assignment; --set NAME=VALUE"},
      {"=1", "is no assignment"},
      {"writers=", "writers: '' is no whole number"},
      {"writers=[]", "factor writers has no levels"},
      {"writers=[1, 1]", "the level '1' is there already"},
      {"writers=[1", "s.yaml: --set writers=[1: broken YAML"},
      {"writers={a: b}", "writers: a map stands here"},
      {"repetitions.min=3", "unknown setting 'repetitions.min'"},
      {"knob.ksm=1", "knob.ksm: '1' is not supported yet"},
      {"kernel=6.1", "'kernel' is reserved"},
  };
  for (const auto& [set, part] : cases) {
    const ReadResult result = ReadSweep(kFull, {set});
    EXPECT_FALSE(result.ok()) << set;
    ASSERT_FALSE(result.problems.empty());
    EXPECT_EQ(result.problems[0].line, 0u);
    EXPECT_NE(ErrorsOf(kFull, {set}).find(part), std::string::npos) << ErrorsOf(kFull, {set});
  }
}

TEST(ReadySweeps, AllValidateWithoutAWarning) {
  const std::filesystem::path folder =
      std::filesystem::path(PIPEYARD_SOURCE_DIR) / "workloads" / "sweeps";
  int num_sweeps = 0;
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".yaml") continue;
    ++num_sweeps;
    const ReadResult result = ReadSweep(pipeyard::testing::ReadFile(entry.path().string()), {});
    for (const Problem& problem : result.problems) {
      ADD_FAILURE() << problem.Format(entry.path().string());
    }
    EXPECT_TRUE(names.insert(result.sweep.name).second) << "two sweeps named " << result.sweep.name;
    EXPECT_FALSE(result.sweep.variants.empty()) << entry.path();
  }
  EXPECT_GE(num_sweeps, 2);
}

TEST(ReadySweeps, PreallocIsTheMatrixWithTheKernelBesideIt) {
  const std::string path = std::string(PIPEYARD_SOURCE_DIR) + "/workloads/sweeps/prealloc.yaml";
  const Sweep sweep = Read(pipeyard::testing::ReadFile(path));

  std::map<std::string, int> arms;
  for (const SweepVariant& variant : sweep.variants) {
    ++arms[variant.arm.empty() ? variant.variant.target : variant.arm];
  }

  // Nine cells, with pressure and without.
  EXPECT_EQ(arms, (std::map<std::string, int>{{"one-page", 18},
                                              {"two-page", 18},
                                              {"prealloc-v1", 18},
                                              {"prealloc", 18},
                                              {"pool", 18},
                                              {"kernel", 18}}));
}

}  // namespace
}  // namespace pipeyard::spec
