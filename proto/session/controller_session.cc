#include "proto/session/controller_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "proto/session/messages.h"
#include "proto/session/text.h"

namespace pipeyard::session {
namespace {

// Past this many, attempts without unacknowledged frames are forgotten; a frame of theirs that is
// resent later then costs a credit until it is acknowledged again.
constexpr size_t kMaxTrackedAttempts = 4096;

}  // namespace

ControllerSession::ControllerSession(Executor& executor, const Clock& clock,
                                     const ControllerSessionOptions& options,
                                     std::unique_ptr<ControllerStream> stream, Owner& owner)
    : executor_(executor),
      clock_(clock),
      options_(options),
      owner_(owner),
      stream_(std::move(stream)) {}

ControllerSession::~ControllerSession() { Close(Cancelled("the controller dropped the session")); }

void ControllerSession::Start() {
  last_heard_ = clock_.Now();
  timer_ = executor_.PostAfter(options_.hello_timeout, [this] { CheckDeadline(); });
  stream_->Start(*this);
}

void ControllerSession::OnMessage(const v1::AgentMessage& message) {
  last_heard_ = clock_.Now();
  if (const Status valid = ValidateAgentMessage(message); !valid.ok()) {
    if (state_ == State::kExpectsHello && message.has_hello() &&
        valid.code() == StatusCode::kInvalidArgument) {
      Refuse(v1::HelloRefused::REASON_MALFORMED, valid.message());
      owner_.OnSessionClosed(*this, valid);
      return;
    }
    Fail(valid);
    return;
  }
  if (state_ == State::kExpectsHello && message.has_hello()) {
    state_ = State::kHelloReceived;
    hello_ = message.hello();
    hello_.clear_held();
    owner_.OnHello(*this, message.hello());
    return;
  }
  if (state_ != State::kAttached || message.has_hello()) {
    Fail(InvalidArgument(fmt::format("{} is not due {}", KindOf(message),
                                     state_ == State::kExpectsHello
                                         ? "before hello"
                                         : (message.has_hello() ? "twice" : "before welcome"))));
    return;
  }
  switch (message.message_case()) {
    case v1::AgentMessage::kAccepted:
      return owner_.OnAccepted(*this, message.accepted());
    case v1::AgentMessage::kRefused:
      return owner_.OnRefused(*this, message.refused());
    case v1::AgentMessage::kProgress:
      return owner_.OnProgress(*this, message.progress());
    case v1::AgentMessage::kFrame:
      return HandleFrame(message.frame());
    case v1::AgentMessage::kHeartbeat:
      return owner_.OnHeartbeat(*this, message.heartbeat());
    case v1::AgentMessage::kHello:
    case v1::AgentMessage::MESSAGE_NOT_SET:
      break;
  }
}

void ControllerSession::OnClosed(const Status& status) {
  Fail(status.ok() ? Unavailable("the agent closed the stream") : status);
}

void ControllerSession::HandleFrame(const v1::Frame& frame) {
  if (frame.store_id() != store_id_) {
    Fail(InvalidArgument(fmt::format("a frame of attempt {} is of store {}, this is store {}",
                                     frame.attempt_id(), frame.store_id(), store_id_)));
    return;
  }
  AttemptProgress& progress = attempts_[frame.attempt_id()];
  if (progress.received_through != 0 && frame.sequence() > progress.received_through + 1) {
    Fail(InvalidArgument(fmt::format("frame {} of attempt {} follows frame {}", frame.sequence(),
                                     frame.attempt_id(), progress.received_through)));
    return;
  }
  // A stream may begin at any frame: what lies before it was received on an earlier one.
  if (progress.first_received == 0) progress.first_received = frame.sequence();
  progress.received_through = std::max(progress.received_through, frame.sequence());
  if (frame.is_final()) progress.final_sequence = frame.sequence();
  if (NumUnacked() > options_.max_unacked_frames) {
    Fail(InvalidArgument(fmt::format("more than {} frames are sent and not acknowledged",
                                     options_.max_unacked_frames)));
    return;
  }
  owner_.OnFrame(*this, frame);
}

uint64_t ControllerSession::NumUnacked() const {
  uint64_t num_unacked = 0;
  for (const auto& [id, progress] : attempts_) {
    if (progress.received_through <= progress.acked_through) continue;
    num_unacked +=
        progress.received_through - std::max(progress.acked_through, progress.first_received - 1);
  }
  return num_unacked;
}

void ControllerSession::SendWelcome(v1::Welcome welcome) {
  if (state_ != State::kHelloReceived) return;
  state_ = State::kAttached;
  store_id_ = welcome.store_id();
  welcome.set_protocol_version(kProtocolVersion);
  welcome.set_heartbeat_interval_ns(options_.heartbeat_interval.count());
  welcome.set_max_unacked_frames(options_.max_unacked_frames);
  last_heard_ = clock_.Now();
  executor_.Cancel(timer_);
  timer_ = executor_.PostAfter(options_.heartbeat_interval * kMissedHeartbeats,
                               [this] { CheckDeadline(); });
  v1::ControllerMessage message;
  *message.mutable_welcome() = std::move(welcome);
  stream_->Send(std::move(message));
}

void ControllerSession::Refuse(v1::HelloRefused::Reason reason, const std::string& text) {
  if (state_ == State::kClosed) return;
  v1::ControllerMessage message;
  v1::HelloRefused* refused = message.mutable_hello_refused();
  refused->set_reason(reason);
  refused->set_text(CleanText(text, kMaxTextBytes));
  refused->set_protocol_version(kProtocolVersion);
  stream_->Send(std::move(message));
  Close(FailedPrecondition(text));
}

void ControllerSession::SendAssign(const v1::Assign& assign) {
  if (state_ != State::kAttached) return;
  v1::ControllerMessage message;
  *message.mutable_assign() = assign;
  stream_->Send(std::move(message));
}

void ControllerSession::SendAck(const std::string& attempt_id, uint64_t through) {
  if (state_ != State::kAttached) return;
  AttemptProgress& progress = attempts_[attempt_id];
  progress.acked_through = std::max(progress.acked_through, through);
  if (progress.final_sequence != 0 && progress.acked_through >= progress.final_sequence) {
    attempts_.erase(attempt_id);
  } else if (attempts_.size() > kMaxTrackedAttempts) {
    std::erase_if(attempts_, [](const auto& entry) {
      return entry.second.received_through <= entry.second.acked_through;
    });
  }
  v1::ControllerMessage message;
  message.mutable_ack()->set_attempt_id(attempt_id);
  message.mutable_ack()->set_through(through);
  stream_->Send(std::move(message));
}

void ControllerSession::SendCancel(const std::string& attempt_id, const std::string& reason) {
  if (state_ != State::kAttached) return;
  v1::ControllerMessage message;
  message.mutable_cancel()->set_attempt_id(attempt_id);
  message.mutable_cancel()->set_reason(CleanText(reason, kMaxTextBytes));
  stream_->Send(std::move(message));
}

void ControllerSession::Close(const Status& status) {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  if (timer_ != 0) executor_.Cancel(timer_);
  timer_ = 0;
  stream_->Close(status);
  stream_.reset();
  attempts_.clear();
}

void ControllerSession::Fail(const Status& status) {
  if (state_ == State::kClosed) return;
  Close(status);
  owner_.OnSessionClosed(*this, status);
}

void ControllerSession::CheckDeadline() {
  timer_ = 0;
  if (state_ == State::kExpectsHello) {
    Fail(DeadlineExceeded(
        fmt::format("no hello within {}", FormatDuration(options_.hello_timeout))));
    return;
  }
  const Nanos timeout = options_.heartbeat_interval * kMissedHeartbeats;
  const Nanos left = last_heard_ + timeout - clock_.Now();
  if (state_ == State::kAttached && left <= Nanos(0)) {
    Fail(DeadlineExceeded(fmt::format("nothing heard for {}", FormatDuration(timeout))));
    return;
  }
  // Armed anew here and not for each message: a busy stream costs one timer an interval.
  timer_ =
      executor_.PostAfter(state_ == State::kAttached ? left : timeout, [this] { CheckDeadline(); });
}

}  // namespace pipeyard::session
