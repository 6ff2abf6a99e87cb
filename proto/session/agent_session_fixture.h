// What the tests of AgentSession share: a transport, a spool and an agent that the test plays.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/executor.h"
#include "proto/session/agent_session.h"
#include "proto/session/session_testing.h"

namespace pipeyard::session {

using Strings = std::vector<std::string>;

// The transport's end that a test plays.
class TestAgentStream final : public AgentStream {
 public:
  struct Wire {
    Handler* handler = nullptr;  // nullptr: the session dropped the stream
    std::vector<v1::AgentMessage> sent;
    std::optional<Status> closed;
    size_t num_unsent = 0;
  };
  explicit TestAgentStream(std::shared_ptr<Wire> wire) : wire_(std::move(wire)) {}
  ~TestAgentStream() override { wire_->handler = nullptr; }
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
    dialed_.push_back(std::make_shared<TestAgentStream::Wire>());
    return std::make_unique<TestAgentStream>(dialed_.back());
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

  TestAgentStream::Wire& wire() { return *dialed_.back(); }
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
  std::deque<std::shared_ptr<TestAgentStream::Wire>> dialed_;
  std::vector<Held> held_;
  uint64_t unreadable_ = 0;
  std::vector<std::string> events_;
  std::vector<Nanos> waits_;
  AgentSession session_{executor_, clock_, *this, *this, *this, TestHello(), {}};
};

}  // namespace pipeyard::session
