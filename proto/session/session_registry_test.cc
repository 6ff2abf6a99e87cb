#include "proto/session/session_registry.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/executor.h"
#include "proto/session/fake_transport.h"
#include "proto/session/messages.h"
#include "proto/session/session_testing.h"

namespace pipeyard::session {
namespace {

// An agent that only says Hello and remembers what it got.
class Peer final : public StreamHandler<v1::ControllerMessage> {
 public:
  Peer(FakeNetwork& network, const v1::Hello& hello) : stream_(network.Dial()) {
    stream_->Start(*this);
    stream_->Send(Wrap(hello));
  }
  void OnMessage(const v1::ControllerMessage& message) override { received.push_back(message); }
  void OnClosed(const Status& status) override { closed = status; }
  void Send(const v1::AgentMessage& message) { stream_->Send(message); }

  bool is_welcome() const { return !received.empty() && received[0].has_welcome(); }
  v1::HelloRefused refusal() const {
    return received.empty() ? v1::HelloRefused() : received[0].hello_refused();
  }

  std::vector<v1::ControllerMessage> received;
  std::optional<Status> closed;

 private:
  std::unique_ptr<AgentStream> stream_;
};

class SessionRegistryTest : public ::testing::Test, public RegistryEvents, public HostDirectory {
 protected:
  SessionRegistryTest() { network_.Listen(&*registry_); }

  std::optional<std::string> HostIdOfName(const std::string& name) const override {
    const auto it = stored_names_.find(name);
    if (it == stored_names_.end()) return std::nullopt;
    return it->second;
  }
  bool IsRetired(const std::string& id) const override { return retired_.contains(id); }
  void OnAgentAttached(const std::string& id, const v1::Hello& hello) override {
    events_.push_back("attached " + hello.name());
    stored_names_[hello.name()] = id;
  }
  void OnAgentDetached(const std::string&, const Status& why) override {
    events_.push_back("detached: " + why.message());
  }
  void OnAccepted(const std::string&, const v1::Accepted&) override {}
  void OnRefused(const std::string&, const v1::Refused&) override {}
  void OnFrame(const std::string& id, const v1::Frame& frame) override {
    events_.push_back("frame");
    if (closes_on_frame_) {
      registry_->CloseAgent(id, InvalidArgument("a gap"));
      EXPECT_FALSE(registry_->SendAck(id, frame.attempt_id(), frame.sequence()));
    }
  }
  void OnHeartbeat(const std::string&, const v1::Heartbeat&) override {}

  static RegistryOptions Options() {
    RegistryOptions options;
    options.store_id = kTestStore;
    options.epoch = 7;
    options.lease = Seconds(600);
    options.controller_version = "1.0";
    return options;
  }

  FakeClock clock_;
  FakeExecutor executor_{clock_};
  std::map<std::string, std::string> stored_names_;
  std::set<std::string> retired_;
  std::vector<std::string> events_;
  bool closes_on_frame_ = false;
  FakeNetwork network_{executor_, clock_, 1};
  std::optional<SessionRegistry> registry_{std::in_place, executor_, clock_,
                                           *this,         *this,     Options()};
};

using Strings = std::vector<std::string>;

TEST_F(SessionRegistryTest, WelcomesAnAgentAndTellsItsOwner) {
  Peer peer(network_, TestHello());
  executor_.RunUntilIdle();

  ASSERT_TRUE(peer.is_welcome());
  const v1::Welcome& welcome = peer.received[0].welcome();
  EXPECT_EQ(welcome.store_id(), kTestStore);
  EXPECT_EQ(welcome.epoch(), 7u);
  EXPECT_EQ(welcome.lease_ns(), Seconds(600).count());
  EXPECT_EQ(events_, Strings({"attached host-1"}));
  EXPECT_TRUE(registry_->IsAttached(TestId(1)));
  EXPECT_EQ(registry_->AttachedAgents(), Strings({TestId(1)}));
}

TEST_F(SessionRegistryTest, AnotherProtocolVersionIsRefusedNamingBoth) {
  v1::Hello hello;
  hello.set_protocol_version(9);
  Peer peer(network_, hello);
  executor_.RunUntilIdle();

  EXPECT_EQ(peer.refusal().reason(), v1::HelloRefused::REASON_PROTOCOL_VERSION);
  EXPECT_EQ(peer.refusal().protocol_version(), kProtocolVersion);
  EXPECT_EQ(peer.refusal().text(),
            "the agent speaks protocol version 9, this controller version 1: install the same "
            "release on both");
  ASSERT_TRUE(peer.closed.has_value());
  EXPECT_EQ(registry_->num_streams(), 0u);
  EXPECT_TRUE(events_.empty());
}

TEST_F(SessionRegistryTest, TheSameIdFromAnotherBootIsRefusedWhileTheFirstLives) {
  Peer original(network_, TestHello());
  executor_.RunUntilIdle();
  v1::Hello clone = TestHello(1, "host-2");
  clone.set_boot_id(TestId(850));

  Peer copy(network_, clone);
  executor_.RunUntilIdle();

  EXPECT_EQ(copy.refusal().reason(), v1::HelloRefused::REASON_CLONED_ID);
  EXPECT_FALSE(original.closed.has_value());
  EXPECT_TRUE(registry_->IsAttached(TestId(1)));
}

TEST_F(SessionRegistryTest, AHostThatRebootedIsWelcomeOnceItsOldSessionFellSilent) {
  Peer before(network_, TestHello());
  executor_.RunUntilIdle();
  network_.Blackhole();
  v1::Hello rebooted = TestHello();
  rebooted.set_boot_id(TestId(850));

  executor_.Advance(Seconds(30));
  Peer after(network_, rebooted);
  executor_.RunUntilIdle();

  EXPECT_TRUE(after.is_welcome());
  EXPECT_EQ(events_,
            Strings({"attached host-1", "detached: nothing heard for 30s", "attached host-1"}));
}

TEST_F(SessionRegistryTest, TheSameIdFromTheSameBootReplacesTheOldSession) {
  Peer old_stream(network_, TestHello());
  executor_.RunUntilIdle();

  Peer new_stream(network_, TestHello());
  executor_.RunUntilIdle();

  EXPECT_TRUE(new_stream.is_welcome());
  EXPECT_EQ(old_stream.closed->code(), StatusCode::kAborted);
  EXPECT_EQ(events_,
            Strings({"attached host-1", "detached: replaced by a newer stream of the same agent",
                     "attached host-1"}));
  EXPECT_EQ(registry_->num_streams(), 1u);
}

TEST_F(SessionRegistryTest, ANameOfALiveAgentIsRefused) {
  Peer first(network_, TestHello(1, "host-1"));
  executor_.RunUntilIdle();
  stored_names_.clear();

  Peer second(network_, TestHello(2, "host-1"));
  executor_.RunUntilIdle();

  EXPECT_EQ(second.refusal().reason(), v1::HelloRefused::REASON_NAME_IN_USE);
}

TEST_F(SessionRegistryTest, ANameOfAStoredHostIsRefused) {
  stored_names_["host-1"] = TestId(5);

  Peer peer(network_, TestHello(1, "host-1"));
  executor_.RunUntilIdle();

  EXPECT_EQ(peer.refusal().reason(), v1::HelloRefused::REASON_NAME_IN_USE);
  EXPECT_EQ(peer.refusal().text(), "the name host-1 belongs to agent id " + TestId(5) +
                                       ": start this agent with another --name");
}

TEST_F(SessionRegistryTest, AnAgentMayTakeAnotherName) {
  Peer before(network_, TestHello(1, "host-1"));
  executor_.RunUntilIdle();

  Peer after(network_, TestHello(1, "renamed"));
  executor_.RunUntilIdle();

  EXPECT_TRUE(after.is_welcome());
}

TEST_F(SessionRegistryTest, ARetiredHostIsRefused) {
  retired_.insert(TestId(1));

  Peer peer(network_, TestHello());
  executor_.RunUntilIdle();

  EXPECT_EQ(peer.refusal().reason(), v1::HelloRefused::REASON_RETIRED);
}

TEST_F(SessionRegistryTest, FillsInStoreAndEpochOfAnAssign) {
  Peer peer(network_, TestHello());
  executor_.RunUntilIdle();
  v1::Assign assign = TestAssign(1);
  assign.clear_store_id();
  assign.set_epoch(3);

  EXPECT_TRUE(registry_->SendAssign(TestId(1), assign));
  EXPECT_FALSE(registry_->SendAssign(TestId(2), assign));
  executor_.RunUntilIdle();

  ASSERT_EQ(peer.received.size(), 2u);
  EXPECT_EQ(peer.received[1].assign().store_id(), kTestStore);
  EXPECT_EQ(peer.received[1].assign().epoch(), 7u);
}

TEST_F(SessionRegistryTest, AnOwnerMayCloseTheSessionInsideItsEvent) {
  closes_on_frame_ = true;
  Peer peer(network_, TestHello());
  executor_.RunUntilIdle();

  peer.Send(Wrap(TestFrame(1, 1, false)));
  peer.Send(Wrap(TestFrame(1, 2, false)));
  executor_.RunUntilIdle();

  EXPECT_EQ(events_, Strings({"attached host-1", "frame", "detached: a gap"}));
  EXPECT_EQ(peer.closed, InvalidArgument("a gap"));
}

TEST_F(SessionRegistryTest, ShutdownTellsEveryAgentAndTakesNoMore) {
  Peer attached(network_, TestHello());
  executor_.RunUntilIdle();
  events_.clear();

  registry_->Shutdown(Unavailable("stopping"));
  Peer late(network_, TestHello(2, "host-2"));
  executor_.RunUntilIdle();

  EXPECT_EQ(attached.closed, Unavailable("stopping"));
  EXPECT_EQ(late.closed, Unavailable("stopping"));
  EXPECT_TRUE(events_.empty());
}

TEST_F(SessionRegistryTest, MayBeDestroyedWithSessionsOpen) {
  Peer peer(network_, TestHello());
  executor_.RunUntilIdle();

  network_.Listen(nullptr);
  registry_.reset();
  executor_.Advance(Minutes(5));

  EXPECT_EQ(peer.closed->code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace pipeyard::session
