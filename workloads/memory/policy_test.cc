#include "workloads/memory/policy.h"

#include <gtest/gtest.h>

#include <string>

#include "workloads/memory/interleave.h"

namespace pipeyard::memory {
namespace {

using numa::NodeMask;
using numa::PolicyMode;

struct Spelling {
  const char* text;
  PolicyMode mode;
  uint64_t nodes;
  const char* formatted;
};

TEST(ParsePolicy, ReadsEveryModeAndFormatsItBack) {
  for (const Spelling& spelling : {
           Spelling{"default", PolicyMode::kDefault, 0, "default"},
           {"local", PolicyMode::kLocal, 0, "local"},
           {"preferred:1", PolicyMode::kPreferred, 0b10, "preferred:1"},
           {"preferred-many:0,1", PolicyMode::kPreferredMany, 0b11, "preferred-many:0-1"},
           {"bind:0-1,3", PolicyMode::kBind, 0b1011, "bind:0-1,3"},
           {"bind:63", PolicyMode::kBind, uint64_t{1} << 63, "bind:63"},
           {"interleave:0,2", PolicyMode::kInterleave, 0b101, "interleave:0,2"},
           {"weighted-interleave:0,1", PolicyMode::kWeightedInterleave, 0b11,
            "weighted-interleave:0-1"},
       }) {
    SCOPED_TRACE(spelling.text);

    const Result<Policy> policy = ParsePolicy(spelling.text);

    ASSERT_TRUE(policy.ok()) << policy.status().ToString();
    EXPECT_EQ(policy->mode, spelling.mode);
    EXPECT_EQ(policy->nodes.bits(), spelling.nodes);
    EXPECT_FALSE(policy->has_weights);
    EXPECT_EQ(FormatPolicy(*policy), spelling.formatted);
    EXPECT_EQ(ParsePolicy(FormatPolicy(*policy)).value(), *policy);
  }
}

TEST(ParsePolicy, ReadsWeightsWrittenInTheSetting) {
  const Result<Policy> policy = ParsePolicy("weighted-interleave:3=255,0=1");

  ASSERT_TRUE(policy.ok()) << policy.status().ToString();
  EXPECT_EQ(policy->nodes, NodeMask::Of({0, 3}));
  EXPECT_TRUE(policy->has_weights);
  EXPECT_EQ(policy->weights[0], 1);
  EXPECT_EQ(policy->weights[3], 255);
  EXPECT_EQ(FormatPolicy(*policy), "weighted-interleave:0=1,3=255");
}

TEST(ParsePolicy, RefusesWhatNoKernelWouldTakeAndSaysWhatWasMeant) {
  for (const auto& [text, meant] : {
           std::pair{"", "not one of default"},
           {"bound:0", "not one of default"},
           {"Default", "not one of default"},
           {"local:0", "takes no nodes"},
           {"default:", "takes no nodes"},
           {"bind", "bind:0,1"},
           {"bind:", "names no node"},
           {"bind:x", "not a number or range"},
           {"bind:64", "at most 63"},
           {"bind:1-0", "not a number or range"},
           {"preferred:0,1", "preferred-many"},
           {"interleave:0=3", "not a number or range"},
           {"weighted-interleave:0=0", "1..255"},
           {"weighted-interleave:0=256", "1..255"},
           {"weighted-interleave:0=", "1..255"},
           {"weighted-interleave:0=-1", "1..255"},
           {"weighted-interleave:0=3,1", "every node needs a weight"},
           {"weighted-interleave:0=3,0=1", "twice"},
           {"weighted-interleave:64=1", "0..63"},
           {"weighted-interleave:0=3,", "NODE=WEIGHT"},
       }) {
    SCOPED_TRACE(text);

    const Result<Policy> policy = ParsePolicy(text);

    ASSERT_FALSE(policy.ok());
    EXPECT_EQ(policy.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(policy.status().message().find(meant), std::string::npos)
        << policy.status().message();
  }
}

TEST(WeightsOf, ThePolicysOwnGoBeforeTheHosts) {
  WeightTable host;
  host[0] = 9;

  EXPECT_EQ(WeightsOf(ParsePolicy("weighted-interleave:0=3,1=1").value(), host)[0], 3);
  EXPECT_EQ(WeightsOf(ParsePolicy("weighted-interleave:0,1").value(), host)[0], 9);
}

TEST(TaskPolicy, SettingAPolicyStartsInterleavingAnew) {
  TaskPolicy task;
  task.state = {.prev = 1, .carry = 4};

  task.SetPolicy(ParsePolicy("interleave:0,1").value());

  EXPECT_EQ(task.state, (InterleaveState{.prev = 63, .carry = 0}));
}

TEST(ParseBulkAlgorithm, KnowsTheThreeOfSweepsAndRefusesTheDroppedPatch) {
  for (const char* name : {"split-carry", "single-step", "folded-carry"}) {
    const Result<BulkAlgorithm> algorithm = ParseBulkAlgorithm(name);
    ASSERT_TRUE(algorithm.ok()) << name;
    EXPECT_EQ(BulkAlgorithmName(*algorithm), name);
  }
  const Result<BulkAlgorithm> posted = ParseBulkAlgorithm("posted-patch");
  ASSERT_FALSE(posted.ok());
  EXPECT_NE(posted.status().message().find("unit tests only"), std::string::npos);
  EXPECT_FALSE(ParseBulkAlgorithm("").ok());
}

}  // namespace
}  // namespace pipeyard::memory
