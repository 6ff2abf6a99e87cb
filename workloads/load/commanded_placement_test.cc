#include "workloads/load/commanded_placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <map>
#include <string>
#include <thread>
#include <utility>

#include "workloads/load/result_testing.h"
#include "workloads/numa/fake_numa_kernel.h"

namespace pipeyard::load {
namespace {

using numa::FakeNumaKernel;
using numa::NodeMask;
using numa::PolicyMode;
using numa::Topology;
using testing::HasSubstr;
using Values = std::map<std::string, settings::Value>;

constexpr int64_t kGiB = int64_t{1} << 30;
constexpr char kTwoNodes[] =
    R"({"distances":[[10,21],[21,10]],"nodes":[{"cpus":2,"memory":67108864},{"cpus":2,"memory":67108864}],"remote_access":120})";

Topology TwoNodes() {
  return *Topology::Make({{0, {0}, kGiB, {10, 21}}, {1, {1}, kGiB, {21, 10}}}, {0, 1}, false);
}

// A kernel whose weight of node 0 is 3.
Result<std::string> ReadWeights(const std::string& path) {
  if (path.ends_with("weighted_interleave/node0")) return std::string("3\n");
  if (path.ends_with("weighted_interleave/node1")) return std::string("1\n");
  return NotFound(path);
}

struct Resolved {
  Judgement judgement;
  settings::Variant variant;
  CommandedPlacement placement;
  v1::WorkerResult result;
};

Resolved Resolve(const std::string& target, const Values& values) {
  Resolved resolved;
  resolved.variant = *settings::MakeVariant("transfer", target, values);
  resolved.judgement = ResolvePlacement(TwoNodes(), ReadWeights, resolved.variant,
                                        resolved.placement, resolved.result);
  return resolved;
}

Resolved ResolveMemory(const std::string& target, const std::string& policy) {
  return Resolve(target, {{"placement.memory", policy}});
}

TEST(ResolvePlacement, NothingCommandedIsNothingDone) {
  const Resolved resolved = Resolve("kernel", {});
  FakeNumaKernel kernel;

  ASSERT_TRUE(resolved.judgement.ok());
  EXPECT_TRUE(resolved.placement.cpus.empty());
  EXPECT_FALSE(resolved.placement.memory);
  kernel.policy_error = EPERM;
  EXPECT_TRUE(TakePlacement(resolved.placement, kernel).ok());
  EXPECT_TRUE(CheckPlacement(resolved.placement, kernel).ok());
}

TEST(ResolvePlacement, RolesBecomeNodesAndTheResultSaysWhich) {
  const Resolved resolved = ResolveMemory("kernel", "interleave:all-nodes");

  ASSERT_TRUE(resolved.judgement.ok()) << resolved.judgement.reason_text;
  EXPECT_EQ(resolved.placement.memory->nodes, NodeMask::Of({0, 1}));
  EXPECT_EQ(resolved.variant.Text("placement.memory"), "interleave:0-1");
  ASSERT_EQ(resolved.result.resolved_size(), 1);
  EXPECT_EQ(resolved.result.resolved(0).as_written(), "interleave:all-nodes");
  EXPECT_EQ(resolved.result.resolved(0).resolved(), "interleave:0-1");
}

TEST(ResolvePlacement, WeightsThatTheKernelDoesNotHaveAreNotApplicable) {
  EXPECT_TRUE(ResolveMemory("kernel", "weighted-interleave:0=3,1=1").judgement.ok());
  const Judgement judged = ResolveMemory("kernel", "weighted-interleave:0=2,1=1").judgement;

  EXPECT_EQ(judged.outcome, v1::OUTCOME_NOT_APPLICABLE);
  EXPECT_EQ(judged.reason_code, "weights_not_set");
  EXPECT_THAT(judged.reason_text, HasSubstr("weight of node 0 is 3; write 2 to"));
  // The engine has its own.
  EXPECT_TRUE(ResolveMemory("engine", "weighted-interleave:0=2,1=1").judgement.ok());
}

TEST(ResolvePlacement, AnEmulatedTopologyHasItsOwnCpusAndSetsNothing) {
  const Resolved resolved = Resolve("engine", {{"engine.topology", settings::JsonText{kTwoNodes}},
                                               {"placement.cpus", std::string("node1")},
                                               {"placement.memory", std::string("bind:1")}});
  FakeNumaKernel kernel;

  ASSERT_TRUE(resolved.judgement.ok()) << resolved.judgement.reason_text;
  EXPECT_EQ(resolved.placement.cpus, (std::vector<numa::CpuId>{2, 3}));
  EXPECT_TRUE(TakePlacement(resolved.placement, kernel).ok());
  EXPECT_EQ(kernel.policy_mode, PolicyMode::kDefault);
}

TEST(TakePlacement, SetsThePolicyAndIsProvedByAsking) {
  const Resolved resolved = ResolveMemory("kernel", "bind:1");
  FakeNumaKernel kernel;

  EXPECT_EQ(CheckPlacement(resolved.placement, kernel).reason_code, "placement_not_obtained");
  ASSERT_TRUE(TakePlacement(resolved.placement, kernel).ok());
  EXPECT_EQ(kernel.policy_mode, PolicyMode::kBind);
  EXPECT_EQ(kernel.policy_nodes, NodeMask::Of({1}));
  EXPECT_TRUE(CheckPlacement(resolved.placement, kernel).ok());
}

TEST(TakePlacement, AKernelWithoutThePolicyIsNotApplicable) {
  const Resolved resolved = ResolveMemory("kernel", "weighted-interleave:0,1");
  FakeNumaKernel kernel;
  kernel.policy_error = EINVAL;

  EXPECT_EQ(TakePlacement(resolved.placement, kernel).outcome, v1::OUTCOME_NOT_APPLICABLE);
  kernel.policy_error = EPERM;
  EXPECT_EQ(TakePlacement(resolved.placement, kernel).outcome, v1::OUTCOME_VOID);
}

TEST(CheckUserMemory, ABufferOutsideTheBoundNodesIsVoid) {
  Resolved resolved = ResolveMemory("kernel", "bind:1");
  v1::Placement& proof = *resolved.result.add_placements();
  proof.set_memory("message-buffers");
  (*proof.mutable_pages_per_node())[1] = 4;
  EXPECT_TRUE(CheckUserMemory(resolved.placement, resolved.result).ok());

  (*proof.mutable_pages_per_node())[0] = 2;
  const Judgement judged = CheckUserMemory(resolved.placement, resolved.result);

  EXPECT_EQ(judged.outcome, v1::OUTCOME_VOID);
  EXPECT_THAT(judged.reason_text, HasSubstr("2 pages of message buffers lie on node 0"));
  // Preferred may go elsewhere.
  const Resolved preferred = ResolveMemory("kernel", "preferred:1");
  EXPECT_TRUE(CheckUserMemory(preferred.placement, resolved.result).ok());
}

TEST(PinWorker, GivesWorkersTheirCpusInTurn) {
  CommandedPlacement placement;
  placement.is_per_worker = true;
  placement.cpus = {0};
  cpu_set_t held;
  // In a thread of its own: it stays there.
  std::thread([&] {
    ASSERT_TRUE(PinWorker(placement, 3));
    ASSERT_EQ(::sched_getaffinity(0, sizeof(held), &held), 0);
  }).join();

  EXPECT_EQ(CPU_COUNT(&held), 1);
  EXPECT_TRUE(CPU_ISSET(0, &held));
}

}  // namespace
}  // namespace pipeyard::load
