#include "proto/session/controller_session.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/executor.h"
#include "proto/session/messages.h"
#include "proto/session/session_testing.h"

namespace pipeyard::session {
namespace {

struct Wire {
  StreamHandler<v1::AgentMessage>* handler = nullptr;
  std::vector<v1::ControllerMessage> sent;
  std::optional<Status> closed;
};

class TestStream final : public ControllerStream {
 public:
  explicit TestStream(Wire& wire) : wire_(wire) {}
  void Start(Handler& handler) override { wire_.handler = &handler; }
  void Send(v1::ControllerMessage message) override { wire_.sent.push_back(std::move(message)); }
  size_t num_unsent() const override { return 0; }
  void Close(const Status& status) override { wire_.closed = status; }

 private:
  Wire& wire_;
};

class ControllerSessionTest : public ::testing::Test, public ControllerSession::Owner {
 protected:
  ControllerSessionTest() { session_.Start(); }

  void OnHello(ControllerSession& session, const v1::Hello& hello) override {
    events_.push_back("hello");
    num_held_ = hello.held_size();
    if (welcomes_) session.SendWelcome(TestWelcome());
  }
  void OnAccepted(ControllerSession&, const v1::Accepted&) override {
    events_.push_back("accepted");
  }
  void OnRefused(ControllerSession&, const v1::Refused&) override { events_.push_back("refused"); }
  void OnProgress(ControllerSession&, const v1::Progress&) override {
    events_.push_back("progress");
  }
  void OnFrame(ControllerSession&, const v1::Frame& frame) override {
    events_.push_back("frame " + std::to_string(frame.sequence()));
  }
  void OnHeartbeat(ControllerSession&, const v1::Heartbeat&) override {
    events_.push_back("heartbeat");
  }
  void OnSessionClosed(ControllerSession&, const Status& status) override {
    events_.push_back("closed: " + status.message());
  }

  void Receive(const v1::AgentMessage& message) { wire_.handler->OnMessage(message); }
  void Attach() {
    Receive(Wrap(TestHello()));
    events_.clear();
  }
  static v1::AgentMessage Heartbeat() {
    v1::AgentMessage message;
    message.mutable_heartbeat();
    return message;
  }
  static ControllerSessionOptions Options() {
    ControllerSessionOptions options;
    options.max_unacked_frames = 3;
    return options;
  }

  FakeClock clock_;
  FakeExecutor executor_{clock_};
  Wire wire_;
  std::vector<std::string> events_;
  int num_held_ = 0;
  bool welcomes_ = true;
  ControllerSession session_{executor_, clock_, Options(), std::make_unique<TestStream>(wire_),
                             *this};
};

using Strings = std::vector<std::string>;

TEST_F(ControllerSessionTest, AnswersHelloWithItsIntervalAndCredits) {
  v1::Hello hello = TestHello();
  *hello.add_held() = TestHeld(1);

  Receive(Wrap(hello));

  ASSERT_EQ(wire_.sent.size(), 1u);
  EXPECT_EQ(ValidateControllerMessage(wire_.sent[0]), Status::Ok());
  EXPECT_EQ(wire_.sent[0].welcome().heartbeat_interval_ns(), Seconds(10).count());
  EXPECT_EQ(wire_.sent[0].welcome().max_unacked_frames(), 3u);
  EXPECT_EQ(num_held_, 1);
  EXPECT_EQ(session_.hello().name(), "host-1");
}

TEST_F(ControllerSessionTest, EveryOtherFirstMessageIsAProtocolError) {
  Receive(Heartbeat());

  EXPECT_EQ(wire_.closed->code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(events_, Strings({"closed: heartbeat is not due before hello"}));
}

TEST_F(ControllerSessionTest, ASecondHelloIsAProtocolError) {
  Attach();
  Receive(Wrap(TestHello()));

  EXPECT_EQ(wire_.closed->code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(events_, Strings({"closed: hello is not due twice"}));
}

TEST_F(ControllerSessionTest, NothingMayComeBeforeWelcome) {
  welcomes_ = false;
  Attach();
  Receive(Wrap(TestFrame(1, 1, false)));

  EXPECT_EQ(events_, Strings({"closed: frame is not due before welcome"}));
}

TEST_F(ControllerSessionTest, AMalformedHelloIsRefusedWithItsReason) {
  v1::Hello hello = TestHello();
  hello.set_name("a/b");

  Receive(Wrap(hello));

  ASSERT_EQ(wire_.sent.size(), 1u);
  EXPECT_EQ(wire_.sent[0].hello_refused().reason(), v1::HelloRefused::REASON_MALFORMED);
  EXPECT_TRUE(wire_.sent[0].hello_refused().text().starts_with("hello.name: "));
  EXPECT_TRUE(wire_.closed.has_value());
  EXPECT_EQ(events_.size(), 1u);
}

TEST_F(ControllerSessionTest, AMalformedMessageEndsTheStream) {
  Attach();
  Receive(v1::AgentMessage());

  EXPECT_EQ(wire_.closed->code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(events_.size(), 1u);
}

TEST_F(ControllerSessionTest, AMessageThatIsTooLargeEndsTheStreamWithItsOwnCode) {
  Attach();
  v1::Frame frame = TestFrame(1, 1, false);
  frame.mutable_outputs(0)->set_data(std::string(kMaxMessageBytes, 'x'));
  Receive(Wrap(frame));

  EXPECT_EQ(wire_.closed->code(), StatusCode::kResourceExhausted);
}

TEST_F(ControllerSessionTest, AFrameOfAnotherStoreIsAProtocolError) {
  Attach();
  v1::Frame frame = TestFrame(1, 1, false);
  frame.set_store_id(TestId(901));
  Receive(Wrap(frame));

  EXPECT_EQ(wire_.closed->code(), StatusCode::kInvalidArgument);
}

TEST_F(ControllerSessionTest, AGapBetweenFramesIsAProtocolErrorAndARepeatIsNot) {
  Attach();
  Receive(Wrap(TestFrame(1, 4, false)));  // 1..3 came on an earlier stream
  Receive(Wrap(TestFrame(1, 5, false)));
  Receive(Wrap(TestFrame(1, 5, false)));
  Receive(Wrap(TestFrame(1, 7, false)));

  EXPECT_EQ(events_, Strings({"frame 4", "frame 5", "frame 5",
                              "closed: frame 7 of attempt " + TestId(1) + " follows frame 5"}));
}

TEST_F(ControllerSessionTest, MoreFramesThanTheCreditsAreAProtocolError) {
  Attach();
  Receive(Wrap(TestFrame(1, 1, false)));
  Receive(Wrap(TestFrame(2, 11, false)));
  Receive(Wrap(TestFrame(2, 12, false)));
  EXPECT_FALSE(wire_.closed.has_value());

  Receive(Wrap(TestFrame(1, 2, false)));

  EXPECT_EQ(events_.back(), "closed: more than 3 frames are sent and not acknowledged");
}

TEST_F(ControllerSessionTest, AnAcknowledgementGivesItsCreditsBack) {
  Attach();
  for (uint64_t sequence = 1; sequence <= 30; ++sequence) {
    Receive(Wrap(TestFrame(1, sequence, sequence == 30)));
    if (sequence % 3 == 0) session_.SendAck(TestId(1), sequence);
  }

  EXPECT_EQ(events_.size(), 30u);
  EXPECT_FALSE(wire_.closed.has_value());
}

TEST_F(ControllerSessionTest, AnAcknowledgementThatCrossesAResendCostsNoCredit) {
  Attach();
  session_.SendAck(TestId(1), 3);  // committed from an earlier stream

  for (uint64_t sequence = 1; sequence <= 6; ++sequence) {
    Receive(Wrap(TestFrame(1, sequence, false)));
  }

  EXPECT_FALSE(wire_.closed.has_value());
}

TEST_F(ControllerSessionTest, SilenceForThreeIntervalsEndsTheSession) {
  Attach();
  executor_.Advance(Seconds(29));
  EXPECT_TRUE(events_.empty());

  executor_.Advance(Seconds(1));

  EXPECT_EQ(events_, Strings({"closed: nothing heard for 30s"}));
  EXPECT_EQ(wire_.closed->code(), StatusCode::kDeadlineExceeded);
}

TEST_F(ControllerSessionTest, AnyMessageIsALifeSign) {
  Attach();
  for (int i = 0; i < 20; ++i) {
    executor_.Advance(Seconds(25));
    Receive(i % 2 == 0 ? Heartbeat() : Wrap(TestFrame(1, 1, false)));
  }
  EXPECT_FALSE(wire_.closed.has_value());

  executor_.Advance(Seconds(30));

  EXPECT_EQ(events_.back(), "closed: nothing heard for 30s");
}

TEST_F(ControllerSessionTest, AHelloThatDoesNotComeEndsTheStream) {
  executor_.Advance(Seconds(10));

  EXPECT_EQ(events_, Strings({"closed: no hello within 10s"}));
}

TEST_F(ControllerSessionTest, NoEventComesAfterClose) {
  Attach();
  session_.Close(Unavailable("stopping"));
  executor_.Advance(Minutes(5));

  EXPECT_TRUE(events_.empty());
  EXPECT_EQ(wire_.closed, Unavailable("stopping"));
}

TEST_F(ControllerSessionTest, NothingIsSentUnlessAttached) {
  session_.SendAssign(TestAssign(1));
  session_.SendAck(TestId(1), 1);
  session_.SendCancel(TestId(1), "x");
  session_.SendWelcome(TestWelcome());

  EXPECT_TRUE(wire_.sent.empty());
}

TEST_F(ControllerSessionTest, AStreamThatThePeerEndedIsToldOnce) {
  Attach();
  wire_.handler->OnClosed(Status::Ok());
  executor_.Advance(Minutes(5));

  EXPECT_EQ(events_, Strings({"closed: the agent closed the stream"}));
}

}  // namespace
}  // namespace pipeyard::session
