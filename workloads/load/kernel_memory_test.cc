#include "workloads/load/kernel_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "workloads/load/buffer_placement.h"
#include "workloads/load/machine_files.h"
#include "workloads/load/thread_usage.h"

namespace pipeyard::load {
namespace {

using testing::HasSubstr;

numa::Topology TwoNodes() {
  return *numa::Topology::Make(
      {{0, {0, 1}, int64_t{1} << 30, {10, 20}}, {1, {2, 3}, int64_t{1} << 30, {20, 10}}},
      {0, 1, 2, 3}, /*is_emulated=*/false);
}

// The host's weights are 3 and 1.
memory::HostWeights Weights() {
  memory::HostWeights weights;
  weights.table[0] = 3;
  return weights;
}

Judgement Read(const std::string& text, KernelPolicy& policy) {
  return ReadKernelPolicy(text, TwoNodes(), Weights(), policy);
}

KernelPolicy PolicyOf(const std::string& text) {
  KernelPolicy policy;
  const Judgement read = Read(text, policy);
  EXPECT_TRUE(read.ok()) << read.reason_text;
  return policy;
}

TEST(KernelPolicy, IsTheInheritedOneWhereNothingIsSaid) {
  EXPECT_EQ(PolicyOf("").policy.mode, numa::PolicyMode::kDefault);
  EXPECT_EQ(PolicyOf("default").policy.mode, numa::PolicyMode::kDefault);
  EXPECT_EQ(PolicyOf("local").policy.mode, numa::PolicyMode::kLocal);
}

TEST(KernelPolicy, ForANodeThatIsNotThereIsRefused) {
  KernelPolicy policy;

  const Judgement read = Read("bind:2", policy);

  EXPECT_EQ(read.outcome, v1::OUTCOME_NOT_APPLICABLE);
  EXPECT_EQ(read.reason_code, "no_such_node");
  EXPECT_THAT(read.reason_text, HasSubstr("placement.memory bind:2: "));
}

TEST(KernelPolicy, TakesWeightsThatAreTheHosts) {
  EXPECT_EQ(PolicyOf("weighted-interleave:0=3,1=1").weights[0], 3);
  EXPECT_EQ(PolicyOf("weighted-interleave:0,1").weights[0], 3);
}

TEST(KernelPolicy, RefusesOtherWeightsAndSaysWhereToWriteThem) {
  KernelPolicy policy;

  const Judgement read = Read("weighted-interleave:0=3,1=2", policy);

  EXPECT_EQ(read.outcome, v1::OUTCOME_NOT_APPLICABLE);
  EXPECT_EQ(read.reason_code, "weights_not_set");
  EXPECT_THAT(read.reason_text, HasSubstr("gives node 1 the weight 1; write 2 to "
                                          "/sys/kernel/mm/mempolicy/weighted_interleave/node1"));
}

TEST(KernelPlacement, IsJudgedByThePolicy) {
  struct Case {
    const char* policy;
    std::map<numa::NodeId, int64_t> pages;
    bool is_obtained;
  };
  const Case cases[] = {
      {"", {{1, 1000}}, true},
      {"local", {{0, 1}, {1, 1000}}, true},
      {"bind:0", {{0, 1000}}, true},
      {"bind:0", {{0, 999}, {1, 1}}, false},
      {"preferred:1", {{1, 500}, {0, 500}}, true},
      {"interleave:0", {{0, 999}, {1, 1}}, false},
      {"interleave:0,1", {{0, 500}, {1, 500}}, true},
      {"interleave:0,1", {{0, 1000}}, false},
      {"interleave:0", {{0, 1000}}, true},
      {"weighted-interleave:0,1", {{0, 750}, {1, 250}}, true},
      {"weighted-interleave:0,1", {{0, 500}, {1, 500}}, false},
  };
  for (const Case& c : cases) {
    const Judgement judged = JudgeKernelPlacement(PolicyOf(c.policy), c.pages, /*unit_pages=*/1);

    EXPECT_EQ(judged.ok(), c.is_obtained) << c.policy << ": " << judged.reason_text;
    EXPECT_EQ(judged.reason_code, c.is_obtained ? "" : "placement_not_obtained");
  }
}

// One huge page more on a node is rounding.
TEST(KernelPlacement, RoundsToHugePagesWhereTheyMayBe) {
  const KernelPolicy policy = PolicyOf("interleave:0,1");
  const std::map<numa::NodeId, int64_t> pages = {{0, 1024}, {1, 512}};

  EXPECT_FALSE(JudgeKernelPlacement(policy, pages, 1).ok());
  EXPECT_TRUE(JudgeKernelPlacement(policy, pages, 512).ok());
}

using NodeMemory = MachineFiles;

TEST_F(NodeMemory, OfBoundNodesIsWhatIsFreeOrCanBeDropped) {
  for (const char* node : {"0", "1"}) {
    const std::string prefix = "Node " + std::string(node) + " ";
    Write("/sys/devices/system/node/node" + std::string(node) + "/meminfo",
          prefix + "MemTotal:  1000 kB\n" + prefix + "MemFree:  10 kB\n" + prefix +
              "Active(file):  20 kB\n" + prefix + "Inactive(file):  30 kB\n" + prefix +
              "HugePages_Total:     0\n");
  }

  const std::vector<MemoryLimit> of_one = NodeMemoryLimits(PolicyOf("bind:1"), root());
  const std::vector<MemoryLimit> of_both = NodeMemoryLimits(PolicyOf("bind:0,1"), root());

  ASSERT_EQ(of_one.size(), 1u);
  EXPECT_EQ(of_one[0].name, "the memory of node 1");
  EXPECT_EQ(of_one[0].available_bytes, 60 * 1024);
  ASSERT_EQ(of_both.size(), 1u);
  EXPECT_EQ(of_both[0].available_bytes, 120 * 1024);
}

TEST_F(NodeMemory, LimitsNoPolicyThatGoesElsewhere) {
  for (const char* policy : {"", "local", "preferred:1", "interleave:0,1"}) {
    EXPECT_TRUE(NodeMemoryLimits(PolicyOf(policy), root()).empty()) << policy;
  }
}

TEST(KernelMapping, MappedAnewFaultsAnew) {
  const auto page_bytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  constexpr int64_t kPages = 64;
  std::unique_ptr<KernelMapping> mapping;
  const Judgement mapped = KernelMapping::Map(kPages * page_bytes, {}, HugePages::kNever, mapping);
  ASSERT_TRUE(mapped.ok()) << mapped.reason_text;

  for (int pass = 0; pass < 2; ++pass) {
    ASSERT_EQ(mapping->MapAnew(0, mapping->size_bytes()), 0);
    const int64_t before = ReadThreadUsage().minor_faults;
    for (size_t at = 0; at < mapping->size_bytes(); at += page_bytes) {
      *static_cast<volatile std::byte*>(mapping->data() + at) = std::byte{1};
    }

    EXPECT_GE(ReadThreadUsage().minor_faults - before, kPages);
  }
}

// What the host has is node 0 at least; its kernel decides whether it takes policies at all.
TEST(KernelMapping, PutsPagesWhereThePolicySays) {
  const auto page_bytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  for (const char* text : {"local", "bind:0", "preferred:0", "interleave:0"}) {
    const KernelPolicy policy = PolicyOf(text);
    std::unique_ptr<KernelMapping> mapping;
    const Judgement mapped = KernelMapping::Map(8 * page_bytes, policy, HugePages::kNever, mapping);
    if (mapped.reason_code == "policy_refused") GTEST_SKIP() << mapped.reason_text;
    ASSERT_TRUE(mapped.ok()) << text << ": " << mapped.reason_text;
    for (size_t at = 0; at < mapping->size_bytes(); at += page_bytes) {
      *static_cast<volatile std::byte*>(mapping->data() + at) = std::byte{1};
    }

    const BufferPlacement placement = AskPlacement(mapping->data(), mapping->size_bytes());

    if (placement.is_known == 0) GTEST_SKIP() << "move_pages is not to be had here";
    const auto pages = SumPlacements({&placement, 1});
    int64_t total = 0;
    for (const auto& [node, count] : *pages) total += count;
    EXPECT_EQ(total, 8) << text;
    EXPECT_TRUE(JudgeKernelPlacement(policy, *pages, 1).ok()) << text;
  }
}

}  // namespace
}  // namespace pipeyard::load
