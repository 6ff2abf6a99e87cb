// A controller for tests: says Welcome, assigns what it is told to, keeps what it gets.
//
// Thread safety: confined to the executor of its streams.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/runner/testing_assign.h"
#include "base/units.h"
#include "proto/session/transport.h"

namespace pipeyard::agent {

class FakeController final : public session::StreamAcceptor,
                             public session::StreamHandler<v1::AgentMessage> {
 public:
  void AcceptStream(std::unique_ptr<session::ControllerStream> stream) override {
    stream_ = std::move(stream);
    stream_->Start(*this);
  }
  void OnClosed(const Status&) override {
    stream_.reset();
    if (on_change) on_change();
  }
  void OnMessage(const v1::AgentMessage& message) override {
    Handle(message);
    if (on_change) on_change();
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

  // Called after each message and each end of a stream.
  std::function<void()> on_change;
  bool is_acking = true;
  std::optional<v1::HelloRefused> refusal;
  v1::Hello hello;
  v1::Heartbeat heartbeat;
  std::set<std::string> accepted;
  std::map<std::string, v1::Refused> refused;
  // Final frames as they came, repeated ones too.
  std::map<std::string, std::vector<v1::AttemptEnd>> finals;

 private:
  void Handle(const v1::AgentMessage& message) {
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
  void Send(const v1::ControllerMessage& message) {
    if (stream_ != nullptr) stream_->Send(message);
  }
  std::unique_ptr<session::ControllerStream> stream_;
};

}  // namespace pipeyard::agent
