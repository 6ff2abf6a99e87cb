// The real pipeyard-agent and pipeyard-worker against a controller that is a test, over real gRPC.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <algorithm>
#include <array>

#include "agent/core/fake_controller.h"
#include "agent/paths.h"
#include "agent/runner/leftover.h"
#include "base/env.h"
#include "base/process.h"
#include "proto/grpc/agent_server.h"
#include "proto/grpc/endpoint.h"

namespace pipeyard::agent {
namespace {

using runner::TestAssign;
using testing::HasSubstr;

constexpr Nanos kPatience = Seconds(100);

// A FakeController behind a real server, asked from the test's thread.
class ServedController {
 public:
  ServedController() {
    controller_.on_change = [this] {
      MutexLock lock(mutex_);
      ++num_changes_;
      changed_.NotifyAll();
    };
    const std::array<grpc::Service*, 1> services = {&agents_.service()};
    auto server = grpc_edge::BuildServer({.address = "127.0.0.1:0"}, services);
    if (server.ok()) server_ = std::move(server).value();
  }
  ~ServedController() {
    if (server_) server_->Shutdown(Nanos(0));
    executor_.Stop();
  }

  std::string address() const { return server_ ? server_->address() : ""; }

  // Runs `question` on the controller's executor.
  template <typename Question>
  auto Ask(Question question) -> decltype(question(std::declval<FakeController&>())) {
    std::optional<decltype(question(std::declval<FakeController&>()))> answer;
    executor_.Post([&] {
      auto given = question(controller_);
      MutexLock lock(mutex_);
      answer = std::move(given);
      ++num_changes_;
      changed_.NotifyAll();
    });
    MutexLock lock(mutex_);
    while (!answer) changed_.Wait(mutex_);
    return *answer;
  }
  // Waits as long as the test may take.
  template <typename Question>
  void Until(Question question) {
    for (;;) {
      uint64_t seen = 0;
      {
        MutexLock lock(mutex_);
        // Ask() itself counts as one change.
        seen = num_changes_ + 1;
      }
      if (Ask(question)) return;
      MutexLock lock(mutex_);
      while (num_changes_ == seen) changed_.Wait(mutex_);
    }
  }
  void Assign(const v1::Assign& assign) {
    Ask([&](FakeController& controller) {
      controller.Assign(assign);
      return true;
    });
  }
  v1::AttemptEnd WaitForEnd(int number) {
    const std::string id = TestAssign(number).attempt_id();
    Until([&](FakeController& c) { return c.finals.contains(id); });
    return Ask([&](FakeController& c) { return c.finals[id].front(); });
  }
  void WaitForPhase(int number, v1::AttemptPhase phase) {
    const std::string id = TestAssign(number).attempt_id();
    Until([&](FakeController& c) {
      for (const v1::HeldAttempt& held : c.heartbeat.held()) {
        if (held.attempt_id() == id && held.phase() == phase) return true;
      }
      return false;
    });
  }
  void WaitForAgent(const std::string& name) {
    Until([&](FakeController& c) { return c.has_stream() && c.hello.name() == name; });
  }

 private:
  SerialExecutor executor_{"controller"};
  FakeController controller_;
  grpc_edge::AgentServer agents_{executor_, controller_};
  std::unique_ptr<grpc_edge::Server> server_;
  Mutex mutex_;
  CondVar changed_;
  uint64_t num_changes_ GUARDED_BY(mutex_) = 0;
};

class DaemonTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/pipeyard-agent.XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override { EXPECT_TRUE(PosixEnv().RemoveTree(folder_).ok()); }

  std::unique_ptr<Process> Agent(const std::string& name, const std::string& address) {
    SpawnOptions spawn;
    spawn.argv = {std::string(PIPEYARD_BIN_DIR) + "/pipeyard-agent",
                  "--state",
                  folder_ + "/" + name,
                  "--name",
                  name,
                  "--controller",
                  address,
                  "--trial-lock",
                  folder_ + "/trial-lock"};
    spawn.stderr_path = folder_ + "/" + name + ".log";
    auto process = Process::Spawn(spawn);
    EXPECT_TRUE(process.ok()) << process.status().ToString();
    return std::move(process).value();
  }
  std::string LogOf(const std::string& name) {
    return PosixEnv().ReadFile(folder_ + "/" + name + ".log").value();
  }
  static int ExitOf(Process& process) {
    const auto exit = process.Wait(kPatience);
    return exit.ok() && exit->has_value() && (*exit)->signal == 0 ? (*exit)->exit_code : -1;
  }
  std::string RequestOf(const std::string& name, int number) {
    return AttemptPaths(AgentPaths(folder_ + "/" + name).Attempts(),
                        TestAssign(number).attempt_id())
        .Request();
  }

  std::string folder_;
};

TEST_F(DaemonTest, RunsAnAttemptFromAssignmentToAcknowledgement) {
  ServedController controller;
  const auto agent = Agent("h1", controller.address());
  controller.WaitForAgent("h1");
  EXPECT_GT(controller.Ask([](FakeController& c) { return c.hello.facts().online_cpus(); }), 0u);

  controller.Assign(TestAssign(1));

  const v1::AttemptEnd end = controller.WaitForEnd(1);
  EXPECT_EQ(end.outcome(), v1::OUTCOME_OK) << end.reason_code() << ": " << end.reason_text();
  EXPECT_GT(end.elapsed_ns(), 0);
  ASSERT_TRUE(agent->Kill(SIGTERM).ok());
  EXPECT_EQ(ExitOf(*agent), 0) << LogOf("h1");
}

TEST_F(DaemonTest, KilledAgentVoidsWhatItRanAndLeavesNoWorker) {
  ServedController controller;
  auto agent = Agent("h1", controller.address());
  controller.WaitForAgent("h1");
  controller.Assign(TestAssign(1, Seconds(600)));
  controller.WaitForPhase(1, v1::ATTEMPT_PHASE_RUNNING);

  ASSERT_TRUE(agent->Kill(SIGKILL).ok());
  ASSERT_TRUE(agent->Wait(kPatience).ok());
  agent = Agent("h1", controller.address());

  const v1::AttemptEnd end = controller.WaitForEnd(1);
  EXPECT_EQ(end.outcome(), v1::OUTCOME_VOID);
  EXPECT_EQ(end.reason_code(), "agent_restarted");
  EXPECT_TRUE(runner::FindProcessesWithArgument(RequestOf("h1", 1)).empty());
}

TEST_F(DaemonTest, SigtermKillsTheWorkerAndTheEndIsSentAtTheNextStart) {
  ServedController controller;
  auto agent = Agent("h1", controller.address());
  controller.WaitForAgent("h1");
  controller.Assign(TestAssign(1, Seconds(600)));
  controller.WaitForPhase(1, v1::ATTEMPT_PHASE_RUNNING);

  ASSERT_TRUE(agent->Kill(SIGTERM).ok());
  EXPECT_EQ(ExitOf(*agent), 0) << LogOf("h1");
  EXPECT_TRUE(runner::FindProcessesWithArgument(RequestOf("h1", 1)).empty());
  agent = Agent("h1", controller.address());

  EXPECT_EQ(controller.WaitForEnd(1).reason_code(), "agent_restarted");
}

TEST_F(DaemonTest, StateFolderInUseIsRefusedInOneLine) {
  ServedController controller;
  const auto first = Agent("h1", controller.address());
  controller.WaitForAgent("h1");

  SpawnOptions spawn;
  spawn.argv = {std::string(PIPEYARD_BIN_DIR) + "/pipeyard-agent", "--state", folder_ + "/h1"};
  spawn.stderr_path = folder_ + "/second.log";
  const auto second = Process::Spawn(spawn);
  ASSERT_TRUE(second.ok());

  EXPECT_EQ(ExitOf(**second), 1);
  EXPECT_THAT(LogOf("second"), HasSubstr("in use by another pipeyard-agent"));
  const std::string log = LogOf("second");
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
}

TEST_F(DaemonTest, RefusalForGoodEndsItWithStatusFour) {
  ServedController controller;
  controller.Ask([](FakeController& c) {
    c.refusal.emplace();
    c.refusal->set_reason(v1::HelloRefused::REASON_NAME_IN_USE);
    c.refusal->set_text("name h1 is that of another agent");
    c.refusal->set_protocol_version(1);
    return true;
  });

  const auto agent = Agent("h1", controller.address());

  EXPECT_EQ(ExitOf(*agent), 4);
  EXPECT_THAT(LogOf("h1"), HasSubstr("name h1 is that of another agent"));
}

TEST_F(DaemonTest, WrongFlagsAreExitTwo) {
  struct Case {
    const char* flag;
    const char* value;
    const char* what;
  };
  for (const Case& c :
       {Case{"--controller", "nowhere", "HOST:PORT"}, Case{"--name", "a b", "letters"},
        Case{"--min-free", "64", "--min-free"}, Case{"--backoff-max", "0", "more than 0"}}) {
    SpawnOptions spawn;
    spawn.argv = {std::string(PIPEYARD_BIN_DIR) + "/pipeyard-agent", "--state", folder_ + "/x",
                  c.flag, c.value};
    spawn.stderr_path = folder_ + "/wrong.log";
    const auto agent = Process::Spawn(spawn);
    ASSERT_TRUE(agent.ok());
    EXPECT_EQ(ExitOf(**agent), 2) << c.flag;
    EXPECT_THAT(LogOf("wrong"), HasSubstr(c.what));
  }
  EXPECT_FALSE(PosixEnv().Exists(folder_ + "/x"));
}

}  // namespace
}  // namespace pipeyard::agent
