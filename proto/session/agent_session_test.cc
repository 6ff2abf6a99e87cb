#include "proto/session/agent_session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/executor.h"
#include "proto/session/messages.h"
#include "proto/session/session_testing.h"

namespace pipeyard::session {
namespace {

// The transport's end that a test plays.
class TestStream final : public AgentStream {
 public:
  struct Wire {
    Handler* handler = nullptr;  // nullptr: the session dropped the stream
    std::vector<v1::AgentMessage> sent;
    std::optional<Status> closed;
    size_t num_unsent = 0;
  };
  explicit TestStream(std::shared_ptr<Wire> wire) : wire_(std::move(wire)) {}
  ~TestStream() override { wire_->handler = nullptr; }
  void Start(Handler& handler) override { wire_->handler = &handler; }
  void Send(v1::AgentMessage message) override { wire_->sent.push_back(std::move(message)); }
  size_t num_unsent() const override { return wire_->num_unsent; }
  void Close(const Status& status) override { wire_->closed = status; }

 private:
  std::shared_ptr<Wire> wire_;
};

class AgentSessionTest : public ::testing::Test,
                         public Dialer,
                         public AttemptSource,
                         public AgentEvents {
 protected:
  AgentSessionTest() { session_.Start(); }
  ~AgentSessionTest() override { session_.Stop(); }

  // Dialer, AttemptSource, AgentEvents.
  std::unique_ptr<AgentStream> Dial() override {
    dialed_.push_back(std::make_shared<TestStream::Wire>());
    return std::make_unique<TestStream>(dialed_.back());
  }
  std::vector<Held> HeldAttempts() override { return held_; }
  Result<v1::Frame> ReadFrame(const std::string& attempt_id, uint64_t sequence) override {
    if (unreadable_ == sequence) return DataLoss("checksum");
    v1::Frame frame = TestFrame(0, sequence, false);
    frame.set_attempt_id(attempt_id);
    return frame;
  }
  void OnAttached(const v1::Welcome&) override { events_.push_back("attached"); }
  void OnDetached(const Status& why, Nanos retry_in) override {
    events_.push_back("detached: " + why.message());
    waits_.push_back(retry_in);
  }
  void OnRefused(const v1::HelloRefused& refused, bool is_final) override {
    events_.push_back((is_final ? "refused for good: " : "refused: ") + refused.text());
  }
  void OnAssign(const v1::Assign& assign) override {
    events_.push_back("assign " + assign.attempt_id());
    session_.Accept(assign.attempt_id());
  }
  void OnCancel(const v1::Cancel& cancel) override {
    events_.push_back("cancel " + cancel.attempt_id());
  }
  void OnAcked(const std::string& attempt_id, uint64_t through) override {
    events_.push_back("acked " + std::to_string(through));
    for (Held& held : held_) {
      if (held.attempt.attempt_id() == attempt_id) held.acked_through = through;
    }
  }
  void OnUnsendableFrame(const std::string&, uint64_t sequence, const Status&) override {
    events_.push_back("unsendable " + std::to_string(sequence));
  }

  TestStream::Wire& wire() { return *dialed_.back(); }
  void Receive(const v1::ControllerMessage& message) {
    ASSERT_NE(wire().handler, nullptr);
    wire().handler->OnMessage(message);
  }
  void ReceiveAck(int attempt, uint64_t through) {
    v1::ControllerMessage message;
    message.mutable_ack()->set_attempt_id(TestId(attempt));
    message.mutable_ack()->set_through(through);
    Receive(message);
  }
  void ReceiveRefusal(v1::HelloRefused::Reason reason) {
    v1::ControllerMessage message;
    message.mutable_hello_refused()->set_reason(reason);
    message.mutable_hello_refused()->set_text("why");
    Receive(message);
  }
  // `spooled` frames, none acknowledged.
  void Hold(int attempt, uint64_t spooled, const std::string& store = kTestStore) {
    Held held;
    held.attempt = TestHeld(attempt);
    held.attempt.set_store_id(store);
    held.attempt.set_spooled_through(spooled);
    held_.push_back(held);
  }
  // "1:2": frame 2 of attempt 1.
  std::vector<std::string> SentFrames() {
    std::vector<std::string> frames;
    for (const v1::AgentMessage& message : wire().sent) {
      if (!message.has_frame()) continue;
      const std::string& id = message.frame().attempt_id();
      frames.push_back(std::to_string(std::stoi(id.substr(id.size() - 3))) + ":" +
                       std::to_string(message.frame().sequence()));
    }
    return frames;
  }
  int CountSent(v1::AgentMessage::MessageCase kind) {
    return static_cast<int>(
        std::count_if(wire().sent.begin(), wire().sent.end(),
                      [kind](const auto& message) { return message.message_case() == kind; }));
  }

  FakeClock clock_;
  FakeExecutor executor_{clock_};
  std::deque<std::shared_ptr<TestStream::Wire>> dialed_;
  std::vector<Held> held_;
  uint64_t unreadable_ = 0;
  std::vector<std::string> events_;
  std::vector<Nanos> waits_;
  AgentSession session_{executor_, clock_, *this, *this, *this, TestHello(), {}};
};

using Strings = std::vector<std::string>;

TEST_F(AgentSessionTest, SaysHelloFirstWithEverythingItHolds) {
  session_.Stop();
  Hold(1, 4);
  Hold(2, 0, TestId(901));
  session_.Start();

  ASSERT_EQ(wire().sent.size(), 1u);
  const v1::Hello& hello = wire().sent[0].hello();
  EXPECT_EQ(ValidateAgentMessage(wire().sent[0]), Status::Ok());
  EXPECT_EQ(hello.protocol_version(), kProtocolVersion);
  ASSERT_EQ(hello.held_size(), 2);
  EXPECT_EQ(hello.held(0).spooled_through(), 4u);
  EXPECT_EQ(hello.held(1).store_id(), TestId(901));
}

TEST_F(AgentSessionTest, FactsThatAreNotUtf8DoNotKeepTheAgentOut) {
  session_.Stop();
  v1::HostFacts facts;
  facts.set_cpu_model("\xff CPU");
  (*facts.mutable_more())["cmdline"] = std::string(5000, '\xfe');
  session_.SetFacts(facts);
  session_.Start();

  v1::AgentMessage parsed;
  ASSERT_TRUE(parsed.ParseFromString(wire().sent[0].SerializeAsString()));
  EXPECT_EQ(ValidateAgentMessage(parsed), Status::Ok());
  EXPECT_EQ(parsed.hello().facts().cpu_model(), "? CPU");
}

TEST_F(AgentSessionTest, SendsNothingElseBeforeWelcome) {
  Hold(1, 4);
  session_.FramesSpooled();
  session_.HeldChanged();
  session_.Accept(TestId(1));
  session_.Refuse(TestId(1), v1::Refused::REASON_BUSY, "");
  session_.SendProgress("x");

  EXPECT_EQ(wire().sent.size(), 1u);
}

TEST_F(AgentSessionTest, SendsAsManyFramesAsTheCreditsAllow) {
  Hold(1, 2);
  Hold(2, 9);
  Receive(Wrap(TestWelcome()));  // 3 credits
  EXPECT_EQ(SentFrames(), Strings({"1:1", "1:2", "2:1"}));

  ReceiveAck(1, 2);

  EXPECT_EQ(SentFrames(), Strings({"1:1", "1:2", "2:1", "2:2", "2:3"}));
}

TEST_F(AgentSessionTest, SendsAFrameOnceOnAStream) {
  Hold(1, 2);
  Receive(Wrap(TestWelcome()));

  session_.FramesSpooled();
  executor_.Advance(Minutes(5));

  EXPECT_EQ(SentFrames(), Strings({"1:1", "1:2"}));
}

TEST_F(AgentSessionTest, ResendsFromTheFirstUnacknowledgedOnANewStream) {
  Hold(1, 3);
  Receive(Wrap(TestWelcome()));
  ReceiveAck(1, 1);

  wire().handler->OnClosed(Unavailable("link"));
  executor_.Advance(Seconds(1));
  Receive(Wrap(TestWelcome()));

  EXPECT_EQ(dialed_.size(), 2u);
  EXPECT_EQ(SentFrames(), Strings({"1:2", "1:3"}));
}

TEST_F(AgentSessionTest, KeepsFramesOfOtherStores) {
  Hold(1, 2, TestId(901));
  Hold(2, 1);
  Receive(Wrap(TestWelcome()));

  EXPECT_EQ(SentFrames(), Strings({"2:1"}));
}

TEST_F(AgentSessionTest, AnAcknowledgementOfAnotherStoresAttemptIsIgnored) {
  Hold(1, 2, TestId(901));
  Receive(Wrap(TestWelcome()));

  ReceiveAck(1, 2);

  EXPECT_EQ(events_, Strings({"attached"}));
}

TEST_F(AgentSessionTest, AnAcknowledgementOfFramesFromAnEarlierStreamCounts) {
  Hold(1, 9);
  Receive(Wrap(TestWelcome()));  // 3 are sent

  ReceiveAck(1, 5);

  EXPECT_EQ(events_.back(), "acked 5");
  EXPECT_EQ(SentFrames(), Strings({"1:1", "1:2", "1:3", "1:6", "1:7", "1:8"}));
}

TEST_F(AgentSessionTest, AnAcknowledgementNeverReachesPastTheSpool) {
  Hold(1, 2);
  Receive(Wrap(TestWelcome()));

  ReceiveAck(1, 7);
  ReceiveAck(5, 1);  // unknown

  EXPECT_EQ(events_, Strings({"attached", "acked 2"}));
}

TEST_F(AgentSessionTest, AFrameThatCannotBeReadStopsItsAttemptOnly) {
  Hold(1, 3);
  Hold(2, 2);
  unreadable_ = 2;
  Receive(Wrap(TestWelcome()));

  EXPECT_EQ(SentFrames(), Strings({"1:1", "2:1"}));
  EXPECT_EQ(events_, Strings({"attached", "unsendable 2", "unsendable 2"}));
}

TEST_F(AgentSessionTest, HeartbeatsComeAtTheIntervalOfTheWelcomeWithPhasesAndTimes) {
  Receive(Wrap(TestWelcome()));
  Hold(1, 0);
  held_[0].attempt.set_phase(v1::ATTEMPT_PHASE_RUNNING);
  held_[0].attempt.set_running_ns(77);

  executor_.Advance(Seconds(35));

  EXPECT_EQ(CountSent(v1::AgentMessage::kHeartbeat), 3);
  const v1::HeldAttempt& held = wire().sent.back().heartbeat().held(0);
  EXPECT_EQ(held.phase(), v1::ATTEMPT_PHASE_RUNNING);
  EXPECT_EQ(held.running_ns(), 77);
}

TEST_F(AgentSessionTest, HeartbeatsDoNotPileUpBehindAControllerThatDoesNotRead) {
  Receive(Wrap(TestWelcome()));
  wire().num_unsent = 100;

  executor_.Advance(Minutes(10));

  EXPECT_EQ(CountSent(v1::AgentMessage::kHeartbeat), 0);
}

TEST_F(AgentSessionTest, AnswersEachAssignAlsoARepeatedOne) {
  Receive(Wrap(TestWelcome()));

  Receive(Wrap(TestAssign(4)));
  Receive(Wrap(TestAssign(4)));

  EXPECT_EQ(CountSent(v1::AgentMessage::kAccepted), 2);
  EXPECT_EQ(wire().sent.back().accepted().epoch(), 7u);
}

TEST_F(AgentSessionTest, IgnoresStaleAssigns) {
  Receive(Wrap(TestWelcome()));
  v1::Assign old_epoch = TestAssign(1);
  old_epoch.set_epoch(6);
  v1::Assign other_store = TestAssign(1);
  other_store.set_store_id(TestId(901));

  Receive(Wrap(old_epoch));
  Receive(Wrap(other_store));

  EXPECT_EQ(events_, Strings({"attached"}));
  EXPECT_FALSE(wire().closed.has_value());
}

TEST_F(AgentSessionTest, ClosesTheStreamWhenTheControllerBreaksTheProtocol) {
  v1::ControllerMessage welcome_twice = Wrap(TestWelcome());
  v1::ControllerMessage nothing;
  v1::Assign malformed = TestAssign(1);
  malformed.clear_variant();
  for (const v1::ControllerMessage& bad : {welcome_twice, nothing, Wrap(malformed)}) {
    Receive(Wrap(TestWelcome()));

    Receive(bad);

    EXPECT_EQ(dialed_.back()->closed->code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(session_.state(), AgentSession::State::kBackoff);
    executor_.Advance(Seconds(11));
  }
}

TEST_F(AgentSessionTest, AnAssignBeforeWelcomeIsAProtocolError) {
  Receive(Wrap(TestAssign(1)));

  EXPECT_EQ(events_, Strings({"detached: the controller broke the protocol: assign is not due "
                              "before welcome"}));
}

TEST_F(AgentSessionTest, DialsAgainWhenWelcomeIsLate) {
  executor_.Advance(Seconds(15));

  EXPECT_EQ(events_, Strings({"detached: no welcome within 15s"}));
  executor_.Advance(Seconds(1));
  EXPECT_EQ(dialed_.size(), 2u);
}

TEST_F(AgentSessionTest, WaitsGrowWithJitterUpToTheMostAndBeginAnewAfterAStableAttachment) {
  for (int i = 0; i < 12; ++i) {
    wire().handler->OnClosed(Unavailable("refused"));
    executor_.Advance(Seconds(10));
  }
  for (size_t i = 0; i < waits_.size(); ++i) {
    const Nanos most = std::min(Seconds(10), Milliseconds(200) * (1 << i));
    EXPECT_GE(waits_[i], most / 2) << i;
    EXPECT_LE(waits_[i], most) << i;
  }

  Receive(Wrap(TestWelcome()));
  executor_.Advance(Seconds(5));
  wire().handler->OnClosed(Unavailable("restart"));

  EXPECT_LE(waits_.back(), Milliseconds(200));
}

TEST_F(AgentSessionTest, AnAttachmentThatFailsAtOnceDoesNotBeginTheWaitsAnew) {
  for (int i = 0; i < 12; ++i) {
    Receive(Wrap(TestWelcome()));
    wire().handler->OnClosed(Unavailable("crash loop"));
    executor_.Advance(Seconds(10));
  }

  EXPECT_GE(waits_.back(), Seconds(5));
}

TEST_F(AgentSessionTest, TwoAgentsDoNotWaitAlike) {
  AgentSessionOptions other_seed;
  other_seed.seed = 2;
  AgentSession other(executor_, clock_, *this, *this, *this, TestHello(), other_seed);
  wire().handler->OnClosed(Unavailable("x"));
  other.Start();

  wire().handler->OnClosed(Unavailable("x"));

  EXPECT_NE(waits_[0], waits_[1]);
}

TEST_F(AgentSessionTest, AFinalRefusalEndsTheDialing) {
  for (const v1::HelloRefused::Reason reason :
       {v1::HelloRefused::REASON_PROTOCOL_VERSION, v1::HelloRefused::REASON_NAME_IN_USE,
        v1::HelloRefused::REASON_MALFORMED, v1::HelloRefused::REASON_RETIRED}) {
    events_.clear();
    const size_t num_dialed = dialed_.size();

    ReceiveRefusal(reason);
    executor_.Advance(Minutes(60));

    EXPECT_EQ(events_, Strings({"refused for good: why"}));
    EXPECT_EQ(session_.state(), AgentSession::State::kRefused);
    EXPECT_EQ(dialed_.size(), num_dialed);
    session_.Start();
  }
}

TEST_F(AgentSessionTest, AClonedIdIsTriedAgainAfterALongWait) {
  ReceiveRefusal(v1::HelloRefused::REASON_CLONED_ID);

  EXPECT_EQ(events_, Strings({"refused: why", "detached: refused by the controller: why"}));
  EXPECT_GE(waits_.back(), Seconds(5));
  executor_.Advance(Seconds(10));
  EXPECT_EQ(dialed_.size(), 2u);
}

TEST_F(AgentSessionTest, AWelcomeOfAnotherVersionIsAFinalRefusalThatNamesBoth) {
  v1::Welcome welcome;
  welcome.set_protocol_version(2);

  Receive(Wrap(welcome));

  EXPECT_EQ(events_, Strings({"refused for good: the controller speaks protocol version 2, this "
                              "agent version 1: install the same release on both"}));
}

TEST_F(AgentSessionTest, NothingHappensAfterStop) {
  Hold(1, 3);
  Receive(Wrap(TestWelcome()));
  events_.clear();
  const size_t num_sent = wire().sent.size();

  session_.Stop();
  session_.FramesSpooled();
  session_.HeldChanged();
  executor_.Advance(Minutes(60));

  EXPECT_EQ(wire().closed->code(), StatusCode::kCancelled);
  EXPECT_EQ(wire().sent.size(), num_sent);
  EXPECT_TRUE(events_.empty());
  EXPECT_EQ(dialed_.size(), 1u);
}

TEST_F(AgentSessionTest, ProgressIsDroppedWhileAnythingWaits) {
  Receive(Wrap(TestWelcome()));
  wire().num_unsent = 1;
  session_.SendProgress("a");
  wire().num_unsent = 0;
  session_.SendProgress("b");

  EXPECT_EQ(CountSent(v1::AgentMessage::kProgress), 1);
}

}  // namespace
}  // namespace pipeyard::session
