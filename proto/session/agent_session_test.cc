#include "proto/session/agent_session.h"

#include <gtest/gtest.h>

#include <string>

#include "proto/session/agent_session_fixture.h"
#include "proto/session/messages.h"
#include "proto/session/session_testing.h"

namespace pipeyard::session {
namespace {

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

}  // namespace
}  // namespace pipeyard::session
