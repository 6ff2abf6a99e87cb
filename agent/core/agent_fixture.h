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
#include "agent/core/state_folder.h"
#include "agent/runner/testing_assign.h"
#include "base/faulty_env.h"
#include "proto/session/fake_transport.h"

namespace pipeyard::agent {

using runner::StopReason;
using runner::TestAssign;

inline constexpr char kBoot[] = "01931c2e-0000-4000-8000-00000000b007";
inline constexpr char kNextBoot[] = "01931c2e-0000-4000-8000-00000000b008";

// A controller that says Welcome, assigns what it is told to, and keeps what it gets.
class FakeController final : public session::StreamAcceptor,
                             public session::StreamHandler<v1::AgentMessage> {
 public:
  void AcceptStream(std::unique_ptr<session::ControllerStream> stream) override {
    stream_ = std::move(stream);
    stream_->Start(*this);
  }
  void OnClosed(const Status&) override { stream_.reset(); }
  void OnMessage(const v1::AgentMessage& message) override {
    v1::ControllerMessage answer;
    switch (message.message_case()) {
      case v1::AgentMessage::kHello:
        hello = message.hello();
        if (refusal) {
          *answer.mutable_hello_refused() = *refusal;
          Send(answer);
          stream_->Close(FailedPrecondition("refused"));
          return;
        }
        answer.mutable_welcome()->set_protocol_version(1);
        answer.mutable_welcome()->set_store_id(runner::kTestStore);
        answer.mutable_welcome()->set_epoch(1);
        answer.mutable_welcome()->set_heartbeat_interval_ns(Seconds(10).count());
        answer.mutable_welcome()->set_lease_ns(Seconds(60).count());
        answer.mutable_welcome()->set_max_unacked_frames(8);
        Send(answer);
        return;
      case v1::AgentMessage::kAccepted:
        accepted.insert(message.accepted().attempt_id());
        return;
      case v1::AgentMessage::kRefused:
        refused[message.refused().attempt_id()] = message.refused();
        return;
      case v1::AgentMessage::kFrame: {
        const v1::Frame& frame = message.frame();
        if (frame.is_final()) finals[frame.attempt_id()].push_back(frame.end());
        if (!is_acking) return;
        answer.mutable_ack()->set_attempt_id(frame.attempt_id());
        answer.mutable_ack()->set_through(frame.sequence());
        Send(answer);
        return;
      }
      case v1::AgentMessage::kHeartbeat:
        heartbeat = message.heartbeat();
        return;
      default:
        return;
    }
  }
  void Assign(const v1::Assign& assign) {
    v1::ControllerMessage message;
    *message.mutable_assign() = assign;
    Send(message);
  }
  void Cancel(const std::string& attempt_id) {
    v1::ControllerMessage message;
    message.mutable_cancel()->set_attempt_id(attempt_id);
    message.mutable_cancel()->set_reason("run_canceled");
    Send(message);
  }
  bool has_stream() const { return stream_ != nullptr; }

  bool is_acking = true;
  std::optional<v1::HelloRefused> refusal;
  v1::Hello hello;
  v1::Heartbeat heartbeat;
  std::set<std::string> accepted;
  std::map<std::string, v1::Refused> refused;
  // Final frames as they came, repeated ones too.
  std::map<std::string, std::vector<v1::AttemptEnd>> finals;

 private:
  void Send(const v1::ControllerMessage& message) {
    if (stream_ != nullptr) stream_->Send(message);
  }
  std::unique_ptr<session::ControllerStream> stream_;
};

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
  void SetUp() override { network_.Listen(&controller_); }
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
