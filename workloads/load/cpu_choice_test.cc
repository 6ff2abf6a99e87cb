#include "workloads/load/cpu_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace pipeyard::load {
namespace {

using numa::NodeMask;
using numa::Topology;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kGiB = int64_t{1} << 30;

// Two nodes of two cores with two hardware threads each, and two memory expanders, the higher one
// nearer to node 0.
Topology TwoNodesWithExpanders() {
  return *Topology::Make({{0, {0, 1, 4, 5}, kGiB, {10, 21, 50, 40}},
                          {1, {2, 3, 6, 7}, kGiB, {21, 10, 40, 50}},
                          {2, {}, kGiB, {50, 40, 10, 60}},
                          {3, {}, kGiB, {40, 50, 60, 10}}},
                         {0, 1, 2, 3, 4, 5, 6, 7}, false);
}

// CPU n and n + 4 are one core.
Result<std::string> ReadSiblings(const std::string& path) {
  for (int cpu = 0; cpu < 8; ++cpu) {
    const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/";
    if (!path.starts_with(folder)) continue;
    return std::to_string(cpu % 4) + "," + std::to_string(cpu % 4 + 4) + "\n";
  }
  return NotFound(path);
}

std::vector<numa::CpuId> CpusOf(const std::string& text) {
  const auto choice =
      ChooseCpus(*settings::ParseCpuText(text), TwoNodesWithExpanders(), ReadSiblings);
  return choice.ok() ? choice->cpus : std::vector<numa::CpuId>{-1};
}

std::string ErrorOf(const std::string& text) {
  return ChooseCpus(*settings::ParseCpuText(text), TwoNodesWithExpanders(), ReadSiblings)
      .status()
      .message();
}

TEST(ChooseCpus, ReadsEveryForm) {
  EXPECT_THAT(CpusOf(""), ElementsAre());
  EXPECT_THAT(CpusOf("0-2,7"), ElementsAre(0, 1, 2, 7));
  EXPECT_THAT(CpusOf("node1"), ElementsAre(2, 3, 6, 7));
  EXPECT_THAT(CpusOf("node1,node0"), ElementsAre(0, 1, 4, 5, 2, 3, 6, 7));
  EXPECT_THAT(CpusOf("dram-nodes"), ElementsAre(0, 1, 4, 5, 2, 3, 6, 7));
  EXPECT_THAT(CpusOf("50%cpus"), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(CpusOf("1%cpus"), ElementsAre(0));
}

TEST(ChooseCpus, SpreadTakesNodesInTurnAndWholeCoresFirst) {
  EXPECT_THAT(CpusOf("spread"), ElementsAre(0, 2, 1, 3, 4, 6, 5, 7));
}

TEST(ChooseCpus, OnePerCoreLeavesTheOtherThreadsOut) {
  EXPECT_THAT(CpusOf("one-per-core"), ElementsAre(0, 1, 2, 3));
}

TEST(ChooseCpus, AHostThatDoesNotSayHasOneThreadACore) {
  const auto choice =
      ChooseCpus(*settings::ParseCpuText("one-per-core"), TwoNodesWithExpanders(),
                 [](const std::string& path) -> Result<std::string> { return NotFound(path); });

  EXPECT_EQ(choice->cpus.size(), 8u);
  EXPECT_TRUE(choice->is_per_worker);
}

TEST(ChooseCpus, StaysWithinTheCpuset) {
  const Topology all = TwoNodesWithExpanders();
  const Topology some = *Topology::Make(all.nodes(), {1, 4, 5, 6}, false);
  const auto choose = [&](const std::string& text) {
    return ChooseCpus(*settings::ParseCpuText(text), some, ReadSiblings);
  };

  EXPECT_THAT(choose("node0")->cpus, ElementsAre(1, 4, 5));
  EXPECT_THAT(choose("50%cpus")->cpus, ElementsAre(1, 4));
  // CPU 4 stands for the core of 0 and 4.
  EXPECT_THAT(choose("one-per-core")->cpus, ElementsAre(1, 4, 6));
  EXPECT_THAT(choose("spread")->cpus, ElementsAre(1, 6, 4, 5));
  EXPECT_THAT(choose("0").status().message(), HasSubstr("outside of this process's cpuset"));
}

TEST(ChooseCpus, NamesWhatIsNotThere) {
  EXPECT_THAT(ErrorOf("8"), HasSubstr("no CPU 8; CPUs 0-7"));
  EXPECT_THAT(ErrorOf("node4"), HasSubstr("no node 4; nodes 0-3"));
  EXPECT_THAT(ErrorOf("node2"), HasSubstr("belongs to nodes 2"));
  EXPECT_THAT(ErrorOf("cxl-nodes"), HasSubstr("belongs to nodes 2-3"));
}

TEST(NodesOfRole, AreByMemoryAndCpus) {
  const Topology topology = TwoNodesWithExpanders();

  EXPECT_EQ(*NodesOfRole("all-nodes", topology), NodeMask::Of({0, 1, 2, 3}));
  EXPECT_EQ(*NodesOfRole("dram-nodes", topology), NodeMask::Of({0, 1}));
  EXPECT_EQ(*NodesOfRole("cxl-nodes", topology), NodeMask::Of({2, 3}));
  EXPECT_EQ(*NodesOfRole("nearest-cxl", topology), NodeMask::Of({3}));
}

TEST(NodesOfRole, AHostWithoutExpandersSaysSo) {
  const Topology one = *Topology::Make({{0, {0}, kGiB, {10}}}, {0}, false);

  EXPECT_THAT(NodesOfRole("nearest-cxl", one).status().message(), HasSubstr("nearest-cxl"));
}

}  // namespace
}  // namespace pipeyard::load
