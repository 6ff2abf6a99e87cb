// The fake must keep what Stream promises, else the tests that stand on it prove nothing.
#include "proto/session/fake_transport.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/executor.h"
#include "proto/session/session_testing.h"

namespace pipeyard::session {
namespace {

class FakeTransportTest : public ::testing::Test,
                          public StreamAcceptor,
                          public StreamHandler<v1::AgentMessage> {
 protected:
  class AgentSide final : public StreamHandler<v1::ControllerMessage> {
   public:
    void OnMessage(const v1::ControllerMessage& message) override {
      received.push_back(message.ack().through());
    }
    void OnClosed(const Status& status) override { closed = status; }
    std::vector<uint64_t> received;
    std::optional<Status> closed;
  };

  FakeTransportTest() { network_.Listen(this); }

  void AcceptStream(std::unique_ptr<ControllerStream> stream) override {
    controller_ = std::move(stream);
    controller_->Start(*this);
  }
  void OnMessage(const v1::AgentMessage& message) override {
    received_.push_back(message.frame().sequence());
  }
  void OnClosed(const Status& status) override { closed_ = status; }

  void Connect() {
    agent_ = network_.Dial();
    agent_->Start(agent_side_);
    executor_.Advance(Seconds(1));
  }
  void SendFrames(int count) {
    for (int i = 1; i <= count; ++i) agent_->Send(Wrap(TestFrame(1, i, false)));
  }
  void SendAck(uint64_t through) {
    v1::ControllerMessage message;
    message.mutable_ack()->set_through(through);
    controller_->Send(message);
  }

  FakeClock clock_;
  FakeExecutor executor_{clock_};
  FakeNetwork network_{executor_, clock_, 1};
  AgentSide agent_side_;
  std::unique_ptr<AgentStream> agent_;
  std::unique_ptr<ControllerStream> controller_;
  std::vector<uint64_t> received_;
  std::optional<Status> closed_;
};

TEST_F(FakeTransportTest, DeliversInOrderWhateverTheDelays) {
  NetworkFaults faults;
  faults.max_delay = Milliseconds(500);
  network_.SetFaults(faults);
  Connect();
  SendFrames(50);
  EXPECT_EQ(agent_->num_unsent(), 50u);
  executor_.Advance(Seconds(2));

  EXPECT_EQ(received_.size(), 50u);
  EXPECT_TRUE(std::is_sorted(received_.begin(), received_.end()));
  EXPECT_EQ(agent_->num_unsent(), 0u);
}

TEST_F(FakeTransportTest, ADialFailsWhereNothingListens) {
  network_.Listen(nullptr);
  Connect();

  EXPECT_EQ(agent_side_.closed->code(), StatusCode::kUnavailable);
}

TEST_F(FakeTransportTest, TheAcceptingEndDeliversThenCloses) {
  Connect();
  SendAck(1);
  controller_->Close(Aborted("replaced"));
  SendAck(2);
  executor_.RunUntilIdle();

  EXPECT_EQ(agent_side_.received, std::vector<uint64_t>({1}));
  EXPECT_EQ(agent_side_.closed, Aborted("replaced"));
  EXPECT_EQ(closed_, Aborted("replaced"));
}

TEST_F(FakeTransportTest, ADroppedStreamIsSilentAndItsPeerSeesABrokenLink) {
  Connect();
  SendAck(1);
  agent_.reset();
  executor_.RunUntilIdle();

  EXPECT_TRUE(agent_side_.received.empty());
  EXPECT_FALSE(agent_side_.closed.has_value());
  EXPECT_EQ(closed_->code(), StatusCode::kUnavailable);
}

TEST_F(FakeTransportTest, ALinkThatBreaksBeforeReceiptLosesTheMessage) {
  Connect();
  NetworkFaults faults;
  faults.break_before_receipt = 1;
  network_.SetFaults(faults);
  SendFrames(1);
  executor_.RunUntilIdle();

  EXPECT_TRUE(received_.empty());
  EXPECT_TRUE(closed_.has_value());
  EXPECT_TRUE(agent_side_.closed.has_value());
  EXPECT_EQ(network_.num_links(), 0);
}

TEST_F(FakeTransportTest, ALinkThatBreaksAfterReceiptLosesTheAnswer) {
  Connect();
  NetworkFaults faults;
  faults.break_after_receipt = 1;
  network_.SetFaults(faults);
  SendFrames(1);
  executor_.RunUntilIdle();
  SendAck(1);
  executor_.RunUntilIdle();

  EXPECT_EQ(received_.size(), 1u);
  EXPECT_TRUE(agent_side_.received.empty());
  EXPECT_TRUE(agent_side_.closed.has_value());
}

TEST_F(FakeTransportTest, DoublesAndReordersWhereItIsToldTo) {
  Connect();
  NetworkFaults faults;
  faults.max_delay = Milliseconds(500);
  faults.duplicate = 0.5;
  faults.reorder = 0.5;
  network_.SetFaults(faults);
  SendFrames(50);
  executor_.Advance(Seconds(5));

  EXPECT_GT(received_.size(), 50u);
  EXPECT_FALSE(std::is_sorted(received_.begin(), received_.end()));
}

TEST_F(FakeTransportTest, ABlackholeSwallowsEverythingAndTellsNobody) {
  Connect();
  network_.Blackhole();
  SendFrames(3);
  SendAck(1);
  executor_.Advance(Minutes(60));

  EXPECT_TRUE(received_.empty());
  EXPECT_TRUE(agent_side_.received.empty());
  EXPECT_FALSE(closed_.has_value());
  EXPECT_FALSE(agent_side_.closed.has_value());
}

}  // namespace
}  // namespace pipeyard::session
