// Bytes that no honest peer sends: serialized messages with random changes are parsed as gRPC would
// and given to both sessions. Whatever they hold, a session either takes them as a valid message or
// ends its stream; a valid one does what the protocol says, or nothing. PIPEYARD_SEED runs one
// seed.
#include <fmt/format.h>
#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/executor.h"
#include "base/log.h"
#include "proto/session/agent_session.h"
#include "proto/session/fake_transport.h"
#include "proto/session/messages.h"
#include "proto/session/session_registry.h"
#include "proto/session/session_testing.h"

namespace pipeyard::session {
namespace {

constexpr uint64_t kNumSeeds = 4000;

std::string Mutate(std::string bytes, std::mt19937_64& random) {
  const auto below = [&random](size_t n) {
    return std::uniform_int_distribution<size_t>(0, n - 1)(random);
  };
  const size_t num_changes = 1 + below(4);
  for (size_t i = 0; i < num_changes && !bytes.empty(); ++i) {
    const size_t at = below(bytes.size());
    switch (below(5)) {
      case 0:
        bytes[at] = static_cast<char>(below(256));
        break;
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 2:
        bytes.erase(at, 1 + below(8));
        break;
      case 3:
        bytes.insert(at, std::string(1 + below(8), static_cast<char>(below(256))));
        break;
      case 4:
        bytes += bytes.substr(at, 1 + below(64));
        break;
    }
  }
  return bytes;
}

// Every agent message that the other side was given, checked against what may pass.
class Owner final : public RegistryEvents, public HostDirectory {
 public:
  std::optional<std::string> HostIdOfName(const std::string&) const override {
    return std::nullopt;
  }
  bool IsRetired(const std::string&) const override { return false; }
  void OnAgentAttached(const std::string& id, const v1::Hello& hello) override {
    EXPECT_EQ(ValidateAgentMessage(Wrap(hello)), Status::Ok());
    EXPECT_EQ(id, hello.agent_id());
  }
  void OnAgentDetached(const std::string&, const Status&) override {}
  void OnAccepted(const std::string&, const v1::Accepted&) override {}
  void OnRefused(const std::string&, const v1::Refused& refused) override {
    EXPECT_NE(refused.reason(), v1::Refused::REASON_UNSPECIFIED);
  }
  void OnFrame(const std::string&, const v1::Frame& frame) override {
    EXPECT_EQ(ValidateFrame(frame), Status::Ok());
    EXPECT_EQ(frame.store_id(), kTestStore);
  }
  void OnHeartbeat(const std::string&, const v1::Heartbeat&) override {}
};

class Agent final : public AttemptSource, public AgentEvents {
 public:
  std::vector<Held> HeldAttempts() override {
    Held held;
    held.attempt = TestHeld(1);
    held.attempt.set_spooled_through(4);
    return {held};
  }
  Result<v1::Frame> ReadFrame(const std::string&, uint64_t sequence) override {
    return TestFrame(1, sequence, false);
  }
  void OnAttached(const v1::Welcome& welcome) override {
    EXPECT_EQ(ValidateControllerMessage(Wrap(welcome)), Status::Ok());
  }
  void OnDetached(const Status&, Nanos) override {}
  void OnRefused(const v1::HelloRefused&, bool) override {}
  void OnAssign(const v1::Assign& assign) override {
    EXPECT_EQ(ValidateControllerMessage(Wrap(assign)), Status::Ok());
  }
  void OnCancel(const v1::Cancel&) override {}
  void OnAcked(const std::string&, uint64_t through) override { EXPECT_LE(through, 4u); }
  void OnUnsendableFrame(const std::string&, uint64_t, const Status&) override {}
};

// The peer of the session under test.
template <typename Received>
class Sink final : public StreamHandler<Received> {
 public:
  void OnMessage(const Received&) override {}
  void OnClosed(const Status&) override {}
};

class HandAcceptor final : public StreamAcceptor {
 public:
  void AcceptStream(std::unique_ptr<ControllerStream> accepted) override {
    stream = std::move(accepted);
    stream->Start(sink);
  }
  Sink<v1::AgentMessage> sink;
  std::unique_ptr<ControllerStream> stream;
};

std::vector<std::string> AgentSeeds() {
  v1::AgentMessage accepted;
  accepted.mutable_accepted()->set_attempt_id(TestId(1));
  v1::AgentMessage refused;
  refused.mutable_refused()->set_attempt_id(TestId(1));
  refused.mutable_refused()->set_reason(v1::Refused::REASON_BUSY);
  v1::AgentMessage heartbeat;
  *heartbeat.mutable_heartbeat()->add_held() = TestHeld(1);
  std::vector<std::string> seeds;
  for (const v1::AgentMessage& message :
       {Wrap(TestHello()), Wrap(TestFrame(1, 1, true)), accepted, refused, heartbeat}) {
    seeds.push_back(message.SerializeAsString());
  }
  return seeds;
}

std::vector<std::string> ControllerSeeds() {
  v1::ControllerMessage refused;
  refused.mutable_hello_refused()->set_reason(v1::HelloRefused::REASON_CLONED_ID);
  v1::ControllerMessage ack;
  ack.mutable_ack()->set_attempt_id(TestId(1));
  ack.mutable_ack()->set_through(2);
  v1::ControllerMessage cancel;
  cancel.mutable_cancel()->set_attempt_id(TestId(1));
  std::vector<std::string> seeds;
  for (const v1::ControllerMessage& message :
       {Wrap(TestWelcome()), Wrap(TestAssign(1)), refused, ack, cancel}) {
    seeds.push_back(message.SerializeAsString());
  }
  return seeds;
}

void GiveToController(uint64_t seed) {
  std::mt19937_64 random(seed);
  FakeClock clock;
  FakeExecutor executor(clock);
  FakeNetwork network(executor, clock, seed);
  Owner owner;
  RegistryOptions options;
  options.store_id = kTestStore;
  SessionRegistry registry(executor, clock, owner, owner, options);
  network.Listen(&registry);
  Sink<v1::ControllerMessage> sink;
  const std::unique_ptr<AgentStream> stream = network.Dial();
  stream->Start(sink);
  if (seed % 4 != 0) stream->Send(Wrap(TestHello()));

  const std::vector<std::string> seeds = AgentSeeds();
  for (int i = 0; i < 5; ++i) {
    v1::AgentMessage message;
    if (!message.ParseFromString(Mutate(seeds[random() % seeds.size()], random))) break;
    stream->Send(std::move(message));
    executor.RunUntilIdle();
  }
  executor.Advance(Seconds(31));
  EXPECT_EQ(registry.num_streams(), 0u) << "a silent stream was kept";
}

void GiveToAgent(uint64_t seed) {
  std::mt19937_64 random(seed);
  FakeClock clock;
  FakeExecutor executor(clock);
  FakeNetwork network(executor, clock, seed);
  HandAcceptor acceptor;
  network.Listen(&acceptor);
  Agent agent;
  AgentSession session(executor, clock, network, agent, agent, TestHello(), {});
  session.Start();
  executor.RunUntilIdle();
  if (seed % 4 != 0) acceptor.stream->Send(Wrap(TestWelcome()));

  const std::vector<std::string> seeds = ControllerSeeds();
  for (int i = 0; i < 5; ++i) {
    v1::ControllerMessage message;
    if (!message.ParseFromString(Mutate(seeds[random() % seeds.size()], random))) break;
    acceptor.stream->Send(std::move(message));
    executor.RunUntilIdle();
  }
  executor.Advance(Seconds(31));
  EXPECT_NE(session.state(), AgentSession::State::kStopped);
}

void RunSeeds(void (*give)(uint64_t seed)) {
  SetLogLevel(LogLevel::kError);
  // The parser complains of every mutant that it refuses.
  const google::protobuf::LogSilencer silencer;
  uint64_t first = 1;
  uint64_t last = kNumSeeds;
  if (const char* const text = std::getenv("PIPEYARD_SEED")) {
    first = last = std::strtoull(text, nullptr, 10);
  }
  for (uint64_t seed = first; seed <= last && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("PIPEYARD_SEED={}", seed));
    give(seed);
  }
  SetLogLevel(LogLevel::kInfo);
}

TEST(Mutation, NoBytesFromAnAgentHarmTheController) { RunSeeds(GiveToController); }

TEST(Mutation, NoBytesFromAControllerHarmAnAgent) { RunSeeds(GiveToAgent); }

}  // namespace
}  // namespace pipeyard::session
