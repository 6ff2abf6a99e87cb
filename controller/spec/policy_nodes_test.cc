#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/spec/sweep.h"

namespace pipeyard::spec {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kTwoNodes[] =
    "{ nodes: [{ cpus: 2, memory: 64MiB }, { cpus: 2, memory: 64MiB }, { cpus: 2 }] }";

std::vector<Problem> ProblemsOf(const std::string& rest,
                                const std::vector<std::string>& sets = {}) {
  return ReadSweep("sweep: s\nworkload: transfer\ntarget: engine\n" + rest, sets).problems;
}

std::vector<Problem> ProblemsOfPolicy(const std::string& policy) {
  return ProblemsOf(std::string("engine:\n  topology: ") + kTwoNodes + "\n  policy: \"" + policy +
                    "\"\n");
}

TEST(PolicyNodes, ThoseThatTheTopologyHasAreTaken) {
  for (const char* policy : {"default", "local", "preferred:1", "preferred-many:0,1", "bind:0-1",
                             "interleave:0,1", "weighted-interleave:0=3,1=1"}) {
    EXPECT_THAT(ProblemsOfPolicy(policy), IsEmpty()) << policy;
  }
}

TEST(PolicyNodes, ThoseThatItLacksAreNamedAtThePolicy) {
  const struct {
    const char* policy;
    const char* why;
  } kCases[] = {
      {"preferred:3", "names node 3, which engine.topology in line 5 lacks"},
      {"preferred-many:0,5", "names node 5, which"},
      {"bind:1-4", "names nodes 3, 4, which"},
      {"interleave:0,63", "names node 63, which"},
      {"weighted-interleave:0=3,7=1", "names node 7, which"},
      {"weighted-interleave:0,7", "names node 7, which"},
      {"bind:2", "names node 2, which engine.topology in line 5 has without memory"},
  };
  for (const auto& c : kCases) {
    const std::vector<Problem> problems = ProblemsOfPolicy(c.policy);
    ASSERT_FALSE(problems.empty()) << c.policy;
    EXPECT_EQ(problems[0].line, 6u);
    EXPECT_FALSE(problems[0].is_warning);
    EXPECT_THAT(problems[0].what, HasSubstr(std::string("engine.policy: '") + c.policy + "' "));
    EXPECT_THAT(problems.back().what, HasSubstr("engine.topology"));
    EXPECT_THAT(problems[0].meant + problems.back().meant,
                HasSubstr("it has memory on nodes 0, 1"));
    EXPECT_TRUE(problems[0].what.find(c.why) != std::string::npos ||
                problems.back().what.find(c.why) != std::string::npos)
        << problems[0].what;
  }
}

TEST(PolicyNodes, TheNodeThatIsAgedIsLookedAtToo) {
  const std::string topology = std::string("engine:\n  topology: ") + kTwoNodes + "\n";

  EXPECT_THAT(ProblemsOf(topology + "parameters: { allocator: aged:1 }\n"), IsEmpty());
  const std::vector<Problem> problems =
      ProblemsOf(topology + "factors: { allocator: [fresh, aged:1, aged:2] }\n");
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_THAT(problems[0].what,
              HasSubstr("allocator: 'aged:2' names node 2, which engine.topology in line 5 has "
                        "without memory"));
}

TEST(PolicyNodes, HostsAnswerForTheirOwn) {
  EXPECT_THAT(ProblemsOf("engine: { policy: \"bind:7\" }\n"), IsEmpty());
}

TEST(PolicyNodes, EachPairThatMeetsInAVariantIsLookedAt) {
  const std::vector<Problem> problems = ProblemsOf(
      "factors:\n"
      "  engine.topology:\n"
      "    - host\n"
      "    - { nodes: [{ cpus: 1, memory: 64MiB }] }\n"
      "    - { nodes: [{ cpus: 1, memory: 64MiB }, { cpus: 1, memory: 64MiB }] }\n"
      "  engine.policy:\n"
      "    - \"bind:0\"\n"
      "    - \"bind:1\"\n"
      "  writers: [1, 2]\n");

  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].line, 10u + 1u);
  EXPECT_THAT(problems[0].what,
              HasSubstr("'bind:1' names node 1, which engine.topology in line 7"));
  EXPECT_EQ(problems[0].meant, "it has memory on node 0");
}

TEST(PolicyNodes, PairsThatAreExcludedOrZippedApartAreNot) {
  EXPECT_THAT(
      ProblemsOf("factors:\n"
                 "  engine.topology:\n"
                 "    - { nodes: [{ cpus: 1, memory: 64MiB }] }\n"
                 "    - { nodes: [{ cpus: 1, memory: 64MiB }, { cpus: 1, memory: 64MiB }] }\n"
                 "  engine.policy: [\"bind:0\", \"bind:1\"]\n"
                 "zip: [[engine.topology, engine.policy]]\n"),
      IsEmpty());
}

TEST(PolicyNodes, SetFromTheCommandLineIsCheckedToo) {
  const std::vector<Problem> problems =
      ProblemsOf(std::string("engine:\n  topology: ") + kTwoNodes + "\n", {"engine.policy=bind:9"});

  ASSERT_EQ(problems.size(), 1u);
  EXPECT_THAT(problems[0].what, HasSubstr("--set: engine.policy: 'bind:9' names node 9"));
}

TEST(Topology, WhatTheEngineCannotTakeIsRefusedAsSettingAndAsFactor) {
  std::string nodes;
  for (int i = 0; i < 17; ++i) {
    nodes += i == 0 ? "" : ", ";
    nodes += "{ cpus: 4096, memory: 1MiB }";
  }
  const struct {
    std::string topology;
    const char* what;
    const char* meant;
  } kCases[] = {
      {"{ nodes: [{ cpus: 1, memory: 4095B }] }", "nodes[0].memory is 4095B, less than one page",
       "0, or 4KiB and more was meant"},
      {"{ nodes: [" + nodes + "] }", "nodes: 69632 cpus in all",
       "at most 65535 over all nodes was meant"},
  };
  for (const auto& c : kCases) {
    for (const std::string& text : {"engine:\n  topology: " + c.topology + "\n",
                                    "factors:\n  engine.topology: [" + c.topology + ", host]\n"}) {
      const std::vector<Problem> problems = ProblemsOf(text);
      ASSERT_FALSE(problems.empty()) << text;
      EXPECT_EQ(problems[0].line, 5u);
      EXPECT_THAT(problems[0].what, HasSubstr(c.what));
      EXPECT_EQ(problems[0].meant, c.meant);
    }
  }
}

}  // namespace
}  // namespace pipeyard::spec
