// Whole attempts of the fault workload, small. Nothing here depends on how fast the machine is.
#include "workloads/load/fault.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <string>
#include <tuple>

#include "proto/settings/definition.h"
#include "proto/settings/structure.h"
#include "workloads/load/load.h"
#include "workloads/load/result_testing.h"

namespace pipeyard::load {
namespace {

using settings::Value;
using testing::HasSubstr;
using namespace std::string_literals;

constexpr char kTwoNodes[] =
    R"({"nodes":[{"cpus":"2","memory":"32MiB"},{"cpus":"2","memory":"32MiB"}]})";
constexpr int64_t kMebibyte = 1 << 20;

v1::WorkerResult Attempt(const std::string& target, std::map<std::string, Value> values,
                         const Surroundings& surroundings = {}) {
  values.try_emplace("warmup", int64_t{2'000'000});
  values.try_emplace("duration", int64_t{20'000'000});
  values.try_emplace("region_bytes", kMebibyte);
  const Result<settings::Variant> variant = settings::MakeVariant("fault", target, values);
  EXPECT_TRUE(variant.ok()) << variant.status().ToString();
  return RunWorkload(*variant, surroundings);
}

v1::WorkerResult RunOnTwoNodes(std::map<std::string, Value> values) {
  values["engine.topology"] = settings::ParseTopology(kTwoNodes).value();
  return Attempt("engine", std::move(values));
}

const v1::Placement* PlacementOf(const v1::WorkerResult& result, const std::string& memory) {
  for (const v1::Placement& placement : result.placements()) {
    if (placement.memory() == memory) return &placement;
  }
  return nullptr;
}

// Target, kind of workers.
class FaultOn : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  static v1::WorkerResult Attempt(std::map<std::string, Value> values) {
    values["workers"] = std::get<1>(GetParam());
    return load::Attempt(std::get<0>(GetParam()), std::move(values));
  }
};

TEST_P(FaultOn, TouchesEveryPageOnceAPassAndGivesEveryMetric) {
  const v1::WorkerResult result = Attempt({{"tasks", int64_t{2}}});

  ASSERT_EQ(result.outcome(), v1::OUTCOME_OK) << result.reason_text();
  ASSERT_EQ(static_cast<size_t>(result.metrics_size()), settings::Metrics("fault").size());
  EXPECT_GT(result.metrics(0).value(), 0);
  const int64_t pages = kMebibyte / ::sysconf(_SC_PAGESIZE);
  EXPECT_GT(CounterOf(result, "passes"), 0);
  EXPECT_EQ(CounterOf(result, "pages_touched"), pages * CounterOf(result, "passes"));
}

TEST_P(FaultOn, WritesAsManyLinesAsItIsTold) {
  const v1::WorkerResult result = Attempt({{"cachelines", int64_t{64}}});

  EXPECT_EQ(result.outcome(), v1::OUTCOME_OK) << result.reason_text();
}

TEST_P(FaultOn, MoreTasksThanPagesAreNotApplicable) {
  const v1::WorkerResult result =
      Attempt({{"region_bytes", int64_t{65536}}, {"tasks", int64_t{65}}});

  EXPECT_EQ(result.outcome(), v1::OUTCOME_NOT_APPLICABLE);
  EXPECT_EQ(result.reason_code(), "region_bytes");
  EXPECT_THAT(result.reason_text(), HasSubstr("region_bytes 64KiB has "));
}

INSTANTIATE_TEST_SUITE_P(Target, FaultOn,
                         testing::Combine(testing::Values("kernel", "engine"),
                                          testing::Values("threads", "processes")),
                         [](const auto& tested) {
                           return std::get<0>(tested.param) + "_" + std::get<1>(tested.param);
                         });

// Anonymous memory without huge pages: a fault for each page, and what the loop itself takes.
TEST(FaultOnTheKernel, TakesAMinorFaultForEachPage) {
  const v1::WorkerResult result = Attempt("kernel", {{"tasks", int64_t{2}}});

  ASSERT_EQ(result.outcome(), v1::OUTCOME_OK) << result.reason_text();
  EXPECT_GE(CounterOf(result, "minor_faults"), CounterOf(result, "pages_touched"));
  ASSERT_EQ(result.self_checks_size(), 1);
  EXPECT_EQ(result.self_checks(0).name(), "minor-faults");
  // Whether they agree is the check's to say: what a sanitizer keeps of the pages faults, too.
  EXPECT_EQ(result.self_checks(0).expected(), CounterOf(result, "pages_touched"));
  EXPECT_EQ(result.self_checks(0).measured(), CounterOf(result, "minor_faults"));
}

TEST(FaultOnTheKernel, ProvesWhereTheRegionLies) {
  const BoundToNode0 bound;
  if (bound.error() != 0) GTEST_SKIP() << "set_mempolicy: " << ErrnoText(bound.error());
  const v1::WorkerResult result = Attempt("kernel", {{"placement.memory", "bind:0"s}});

  ASSERT_EQ(result.outcome(), v1::OUTCOME_OK) << result.reason_text();
  const v1::Placement* const placement = PlacementOf(result, "region-pages");
  if (placement == nullptr) GTEST_SKIP() << "move_pages is not to be had here";
  EXPECT_EQ(placement->evidence(), "move_pages");
  EXPECT_EQ(placement->pages_per_node().at(0), kMebibyte / ::sysconf(_SC_PAGESIZE));
}

TEST(FaultOnTheKernel, APolicyForANodeThatIsNotThereIsNotApplicable) {
  const v1::WorkerResult result = Attempt("kernel", {{"placement.memory", "bind:63"s}});

  EXPECT_EQ(result.outcome(), v1::OUTCOME_NOT_APPLICABLE);
  EXPECT_EQ(result.reason_code(), "no_such_node");
}

TEST(Fault, AnAgedAllocatorIsInertOnBothTargets) {
  for (const char* target : {"kernel", "engine"}) {
    const v1::WorkerResult result = Attempt(target, {{"allocator", "aged:0"s}});

    ASSERT_EQ(result.outcome(), v1::OUTCOME_OK) << target << ": " << result.reason_text();
    ASSERT_EQ(result.inert_switches_size(), 1) << target;
    EXPECT_EQ(result.inert_switches(0), "allocator");
  }
}

TEST(Fault, RegionsThatDoNotFitIntoMemoryAreRefusedOnBothTargets) {
  Surroundings surroundings;
  surroundings.memory_limits = [] { return std::vector<MemoryLimit>{{"the machine", 1 << 20}}; };
  for (const char* target : {"kernel", "engine"}) {
    const v1::WorkerResult result =
        Attempt(target, {{"region_bytes", 4 * kMebibyte}}, surroundings);

    EXPECT_EQ(result.outcome(), v1::OUTCOME_NOT_APPLICABLE) << target;
    EXPECT_EQ(result.reason_code(), "memory_limit");
    EXPECT_THAT(result.reason_text(), HasSubstr("the machine leaves 1MiB"));
  }
}

TEST(FaultOnTheEngine, AllocatesByThePathThatIsAskedFor) {
  struct Case {
    const char* path;
    const char* fastpath;
    std::string counter;  // of all pages; the other one's is 0
  };
  for (const Case& c :
       {Case{"fault", "off", "none"}, Case{"page", "off", "none"},
        Case{"fault", "on", "fastpath_fault_pages"}, Case{"page", "on", "fastpath_page_pages"}}) {
    const v1::WorkerResult result = Attempt(
        "engine", {{"path", std::string(c.path)}, {"engine.fastpath", std::string(c.fastpath)}});

    ASSERT_EQ(result.outcome(), v1::OUTCOME_OK) << result.reason_text();
    if (result.inert_switches_size() != 0) GTEST_SKIP() << "this machine has several nodes";
    for (const char* counter : {"fastpath_fault_pages", "fastpath_page_pages"}) {
      const int64_t expected = counter == c.counter ? CounterOf(result, "pages_touched") : 0;
      EXPECT_EQ(CounterOf(result, counter), expected) << c.path << " " << c.fastpath;
    }
  }
}

// Page i of the region goes to the node that its index names: of 256 pages under 3:1 each pass
// takes 192 and 64.
TEST(FaultOnTheEngine, InterleavesByTheIndexOfThePage) {
  struct Case {
    const char* policy;
    int64_t of_node_0;
    int64_t of_node_1;
  };
  for (const Case& c :
       {Case{"bind:1", 0, 256}, Case{"interleave:0,1", 128, 128},
        Case{"weighted-interleave:0=3,1=1", 192, 64}, Case{"preferred:1", 0, 256}}) {
    const v1::WorkerResult result =
        RunOnTwoNodes({{"engine.policy", std::string(c.policy)}, {"tasks", int64_t{2}}});

    ASSERT_EQ(result.outcome(), v1::OUTCOME_OK) << result.reason_text();
    EXPECT_TRUE(result.emulated());
    const int64_t passes = CounterOf(result, "passes");
    EXPECT_EQ(CounterOf(result, "node0_pages"), c.of_node_0 * passes) << c.policy;
    EXPECT_EQ(CounterOf(result, "node1_pages"), c.of_node_1 * passes) << c.policy;
  }
}

TEST(FaultOnTheEngine, ARegionLargerThanItsNodesIsNotApplicable) {
  const v1::WorkerResult result =
      RunOnTwoNodes({{"engine.policy", "bind:1"s}, {"region_bytes", 40 * kMebibyte}});

  EXPECT_EQ(result.outcome(), v1::OUTCOME_NOT_APPLICABLE);
  EXPECT_EQ(result.reason_code(), "memory_limit");
  EXPECT_THAT(result.reason_text(), HasSubstr("policy bind:1 have 32MiB here, and 40MiB"));
}

TEST(FaultOnTheEngine, ARegionAboveTheMemoryLimitIsNotApplicable) {
  const v1::WorkerResult result =
      Attempt("engine", {{"engine.memory_limit", kMebibyte}, {"region_bytes", 2 * kMebibyte}});

  EXPECT_EQ(result.outcome(), v1::OUTCOME_NOT_APPLICABLE);
  EXPECT_THAT(result.reason_text(), HasSubstr("engine.memory_limit is 1MiB, and 2MiB"));
}

TEST(FaultOnTheEngine, SwitchesOfPipesAreInert) {
  const v1::WorkerResult result = Attempt("engine", {{"engine.page_cache", "prealloc"s},
                                                     {"engine.wakeup", "always"s},
                                                     {"engine.slab", "cpu-slab"s}});

  ASSERT_EQ(result.outcome(), v1::OUTCOME_OK) << result.reason_text();
  EXPECT_THAT(
      std::vector<std::string>(result.inert_switches().begin(), result.inert_switches().end()),
      testing::ElementsAre("engine.page_cache", "engine.slab", "engine.wakeup"));
}

}  // namespace
}  // namespace pipeyard::load
