// The parameter `allocator`: whole attempts that meet an aged allocator. Nothing here depends on
// how fast the machine is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "proto/settings/definition.h"
#include "workloads/load/kernel_aging.h"
#include "workloads/load/load.h"
#include "workloads/load/result_testing.h"

namespace pipeyard::load {
namespace {

using settings::Value;
using testing::ElementsAre;
using testing::HasSubstr;
using namespace std::string_literals;

// Two CPUs and 64 MiB on each node.
constexpr char kTwoNodes[] =
    R"({"distances":[[10,21],[21,10]],"nodes":[{"cpus":2,"memory":67108864},)"
    R"({"cpus":2,"memory":67108864}],"remote_access":0})";

v1::WorkerResult Measure(const std::string& workload, const std::string& target,
                         std::map<std::string, Value> values) {
  return RunUntilItMoves([&](int64_t duration) {
    if (workload != "messaging") values["duration"] = duration;
    const Result<settings::Variant> variant = settings::MakeVariant(workload, target, values);
    EXPECT_TRUE(variant.ok()) << variant.status().ToString();
    return RunWorkload(*variant);
  });
}

v1::WorkerResult ChurnOfTwoNodes(const std::string& allocator, const std::string& placement,
                                 const std::string& operation = "create") {
  return Measure("churn", "engine",
                 {{"warmup", int64_t{0}},
                  {"allocator", allocator},
                  {"operation", operation},
                  {"engine.metadata_placement", placement},
                  {"engine.topology", settings::JsonText{kTwoNodes}}});
}

// The worker stands on node 0: what it takes from node 1's partial slabs is remote.
TEST(AgedEngine, GivesRemoteMetadataUnlessThePolicysNodeIsAsked) {
  for (const char* operation : {"create", "resize"}) {
    const v1::WorkerResult fresh = ChurnOfTwoNodes("fresh", "any-node", operation);
    const v1::WorkerResult aged = ChurnOfTwoNodes("aged:1", "any-node", operation);
    const v1::WorkerResult asked = ChurnOfTwoNodes("aged:1", "policy-node", operation);

    ASSERT_EQ(fresh.outcome(), v1::OUTCOME_OK) << fresh.reason_text();
    ASSERT_EQ(aged.outcome(), v1::OUTCOME_OK) << aged.reason_text();
    ASSERT_EQ(asked.outcome(), v1::OUTCOME_OK) << asked.reason_text();
    EXPECT_EQ(CounterOf(fresh, "metadata_remote"), 0) << operation;
    EXPECT_GT(CounterOf(aged, "metadata_remote"), 0) << operation;
    EXPECT_EQ(CounterOf(asked, "metadata_remote"), 0) << operation;
    // An info's class and a ring's, each past the gate of six.
    EXPECT_GT(CounterOf(aged, "aged_slabs"), 2 * 6) << operation;
  }
}

// The ring of 16 slots and the one of 32 that the pipe is resized to, and all of them are there for
// all pipes.
TEST(AgedEngine, HasEnoughForEveryPipeOfALoad) {
  const v1::WorkerResult result = Measure("messaging", "engine",
                                          {{"groups", int64_t{2}},
                                           {"fds", int64_t{20}},
                                           {"loops", int64_t{100}},
                                           {"pipe_bytes", int64_t{131072}},
                                           {"allocator", "aged:1"s},
                                           {"engine.topology", settings::JsonText{kTwoNodes}}});

  ASSERT_EQ(result.outcome(), v1::OUTCOME_OK) << result.reason_text();
  EXPECT_EQ(CounterOf(result, "metadata_local"), 0);
  EXPECT_EQ(CounterOf(result, "metadata_remote"), 3 * 40);
}

TEST(AgedEngine, OfANodeThatIsNotThereIsNotApplicable) {
  const v1::WorkerResult result =
      Measure("transfer", "engine", {{"warmup", int64_t{0}}, {"allocator", "aged:63"s}});

  EXPECT_EQ(result.outcome(), v1::OUTCOME_NOT_APPLICABLE);
  EXPECT_EQ(result.reason_code(), "no_such_node");
  EXPECT_THAT(result.reason_text(), HasSubstr("allocator aged:63: "));
}

TEST(AgedEngine, ThatTheEmulatedNodeCannotHoldIsNotApplicable) {
  for (const auto& [allocator, window, where] :
       {std::tuple("aged:1"s, 8192, "node 1 has 64MiB, and allocator aged:1 takes"),
        std::tuple("fresh"s, 65536, "the nodes have 128MiB, and what lives at once takes")}) {
    const v1::WorkerResult result = Measure("churn", "engine",
                                            {{"warmup", int64_t{0}},
                                             {"tasks", int64_t{4}},
                                             {"window", int64_t{window}},
                                             {"allocator", allocator},
                                             {"engine.topology", settings::JsonText{kTwoNodes}}});

    EXPECT_EQ(result.outcome(), v1::OUTCOME_NOT_APPLICABLE);
    EXPECT_EQ(result.reason_code(), "memory_limit");
    EXPECT_THAT(result.reason_text(), HasSubstr(where));
  }
}

TEST(AgedEngine, IsInertWhereThereAreNoPipes) {
  const v1::WorkerResult result =
      Measure("bulk", "engine", {{"warmup", int64_t{0}}, {"allocator", "aged:0"s}});

  ASSERT_EQ(result.outcome(), v1::OUTCOME_OK) << result.reason_text();
  EXPECT_THAT(
      std::vector<std::string>(result.inert_switches().begin(), result.inert_switches().end()),
      ElementsAre("allocator"));
}

// Node 0 has memory and CPUs on every machine that these tests run on.
TEST(AgedKernel, HoldsHalfOfItsPipesMeanwhile) {
  const std::map<std::string, Value> aged = {{"warmup", int64_t{0}}, {"allocator", "aged:0"s}};
  for (const char* workers : {"threads", "processes"}) {
    for (const char* workload : {"transfer", "churn"}) {
      std::map<std::string, Value> values = aged;
      values["workers"] = std::string(workers);
      const v1::WorkerResult result = Measure(workload, "kernel", values);

      ASSERT_EQ(result.outcome(), v1::OUTCOME_OK) << result.reason_text();
      EXPECT_GT(CounterOf(result, "aged_pipes"), 6 * 16) << workload << " " << workers;
    }
  }
}

// The state is gone with the process that holds the pipes.
TEST(AgedKernel, IsLostWithItsProcess) {
  const Result<numa::Topology> host = numa::ReadTopology(numa::HostFiles());
  ASSERT_TRUE(host.ok());
  std::unique_ptr<KernelAging> aging;
  std::vector<MemoryLimit> memory;
  const Judgement started =
      KernelAging::Start({.node = 0, .num_free = 1, .ring_slots = {16}}, *host, memory, aging);
  ASSERT_TRUE(started.ok()) << started.reason_text;
  EXPECT_TRUE(aging->Conclude().ok());
  std::ifstream children("/proc/self/task/" + std::to_string(::getpid()) + "/children");
  pid_t child = 0;
  if (!(children >> child)) GTEST_SKIP() << "/proc does not name children here";

  ::kill(child, SIGKILL);
  siginfo_t ended;
  ::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT);
  const Judgement judged = aging->Conclude();

  EXPECT_EQ(judged.outcome, v1::OUTCOME_VOID);
  EXPECT_EQ(judged.reason_code, "aging_lost");
  EXPECT_THAT(judged.reason_text, HasSubstr("was killed by SIGKILL"));
}

TEST(AgedKernel, OfANodeThatIsNotThereIsNotApplicable) {
  const v1::WorkerResult result =
      Measure("churn", "kernel", {{"warmup", int64_t{0}}, {"allocator", "aged:63"s}});

  EXPECT_EQ(result.outcome(), v1::OUTCOME_NOT_APPLICABLE);
  EXPECT_EQ(result.reason_code(), "no_such_node");
}

TEST(AgedKernel, WithMorePipesThanFilesMayBeOpenIsNotApplicable) {
  const v1::WorkerResult result = Measure("churn", "kernel",
                                          {{"warmup", int64_t{0}},
                                           {"window", int64_t{65536}},
                                           {"tasks", int64_t{1024}},
                                           {"allocator", "aged:0"s}});

  EXPECT_EQ(result.outcome(), v1::OUTCOME_NOT_APPLICABLE);
  EXPECT_EQ(result.reason_code(), "file_limit");
}

}  // namespace
}  // namespace pipeyard::load
