// An agent without threads, processes and sockets: the real session, spool and tracker over a disk
// that fails, a network that breaks and a runner that does as told.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/core/agent.h"
#include "agent/core/fake_controller.h"
#include "agent/core/state_folder.h"
#include "agent/runner/testing_assign.h"
#include "base/faulty_env.h"
#include "base/log.h"
#include "proto/session/fake_transport.h"

namespace pipeyard::agent {

using runner::StopReason;
using runner::TestAssign;

inline constexpr char kBoot[] = "01931c2e-0000-4000-8000-00000000b007";
inline constexpr char kNextBoot[] = "01931c2e-0000-4000-8000-00000000b008";

// Keeps what it was asked to; a test says when something starts or ends.
class FakeRunner final : public runner::AttemptRunner {
 public:
  void Run(const v1::Assign& assign) override { runs.push_back(assign.attempt_id()); }
  void Stop(const std::string& attempt_id, StopReason reason, const std::string&) override {
    stops.emplace_back(attempt_id, reason);
  }
  std::vector<std::string> runs;
  std::vector<std::pair<std::string, StopReason>> stops;
};

inline runner::EndedAttempt Ended(const std::string& attempt_id,
                                  v1::Outcome outcome = v1::OUTCOME_OK) {
  v1::Frame frame;
  frame.set_is_final(true);
  frame.mutable_end()->set_outcome(outcome);
  if (outcome != v1::OUTCOME_OK) frame.mutable_end()->set_reason_code("test");
  frame.mutable_end()->set_boot_id(kBoot);
  return {attempt_id, {frame}};
}

inline v1::Hello Identity(const std::string& agent_id, const std::string& boot_id) {
  v1::Hello hello;
  hello.set_agent_id(agent_id);
  hello.set_name("host1");
  hello.set_boot_id(boot_id);
  hello.set_agent_version("test");
  hello.set_instance_id("01931c2e-0000-7000-8000-0000000000ff");
  return hello;
}

// Runs on `inner` until the process that it belongs to dies: then whatever was posted is dropped.
class MortalExecutor final : public Executor {
 public:
  explicit MortalExecutor(Executor& inner) : inner_(inner) {}
  ~MortalExecutor() override { *is_alive_ = false; }
  void Post(Task task) override { inner_.Post(Guard(std::move(task))); }
  TimerId PostAfter(Nanos delay, Task task) override {
    return inner_.PostAfter(delay, Guard(std::move(task)));
  }
  bool Cancel(TimerId id) override { return inner_.Cancel(id); }

 private:
  Task Guard(Task task) {
    return [is_alive = is_alive_, task = std::move(task)] {
      if (*is_alive) task();
    };
  }
  Executor& inner_;
  const std::shared_ptr<bool> is_alive_ = std::make_shared<bool>(true);
};

// One life of the agent's process.
struct Life {
  explicit Life(Executor& inner) : executor(inner) {}
  MortalExecutor executor;
  std::unique_ptr<StateFolder> folder;
  std::unique_ptr<spool::Spool> spool;
  std::unique_ptr<Agent> agent;
  FakeRunner runner;
  std::unique_ptr<session::AgentSession> session;
  std::optional<Agent::Finish> finish;
};

class AgentTest : public testing::Test {
 protected:
  void SetUp() override {
    SetLogLevel(LogLevel::kError);
    network_.Listen(&controller_);
  }
  void TearDown() override { Kill(); }

  // False where the start failed, as it does on a disk that fails.
  bool TryStart(const std::string& boot_id = kBoot) {
    life_ = std::make_unique<Life>(executor_);
    Life& life = *life_;
    auto folder = StateFolder::Open(env_, paths_, ids_);
    if (!folder.ok()) return false;
    life.folder = std::move(folder).value();
    auto spool = spool::Spool::Open(env_, {.folder = paths_.Spool()});
    if (!spool.ok()) return false;
    life.spool = std::move(spool).value();
    auto recovery = RecoverAttempts(env_, paths_, *life.spool, clock_, boot_id);
    if (!recovery.ok()) return false;
    life.agent =
        std::make_unique<Agent>(life.executor, life.executor, clock_, env_, paths_, *life.spool,
                                AgentOptions{.boot_id = boot_id},
                                [&life](const Agent::Finish& finish) { life.finish = finish; });
    life.session = std::make_unique<session::AgentSession>(
        life.executor, clock_, network_, *life.agent, *life.agent,
        Identity(life.folder->agent_id(), boot_id), session::AgentSessionOptions{});
    life.agent->Connect(*life.session, life.runner);
    life.agent->Start(std::move(recovery).value());
    executor_.RunUntilIdle();
    return true;
  }
  void Start(const std::string& boot_id = kBoot) { ASSERT_TRUE(TryStart(boot_id)); }
  // SIGKILL.
  void Kill() {
    life_.reset();
    Settle();
  }
  void Settle() { executor_.RunUntilIdle(); }
  // The runner's two events.
  void Started(int number) {
    const std::string id = TestAssign(number).attempt_id();
    ASSERT_TRUE(env_.CreateDirs(AttemptPaths(paths_.Attempts(), id).Folder()).ok());
    ASSERT_TRUE(env_.WriteFileAtomic(AttemptPaths(paths_.Attempts(), id).Started(),
                                     std::string(kBoot) + "\n")
                    .ok());
    ASSERT_TRUE(env_.SyncDir(paths_.Attempts()).ok());
    life_->agent->OnStarted(id);
    Settle();
  }
  void End(int number, v1::Outcome outcome = v1::OUTCOME_OK) {
    life_->agent->OnEnded(Ended(TestAssign(number).attempt_id(), outcome));
    Settle();
  }
  void Assign(int number) {
    controller_.Assign(TestAssign(number));
    Settle();
  }
  std::string Id(int number) const { return TestAssign(number).attempt_id(); }

  FakeClock clock_;
  FakeExecutor executor_{clock_};
  FaultyEnv env_;
  IdSource ids_{clock_, 1};
  const AgentPaths paths_{"/var/agent"};
  session::FakeNetwork network_{executor_, clock_, 1};
  FakeController controller_;
  std::unique_ptr<Life> life_;
};

}  // namespace pipeyard::agent
