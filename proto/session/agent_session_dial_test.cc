// When AgentSession dials, waits, gives up and stops.
#include <gtest/gtest.h>

#include <string>

#include "proto/session/agent_session.h"
#include "proto/session/agent_session_fixture.h"
#include "proto/session/messages.h"
#include "proto/session/session_testing.h"

namespace pipeyard::session {
namespace {

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
