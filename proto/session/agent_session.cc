#include "proto/session/agent_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "proto/session/messages.h"
#include "proto/session/text.h"

namespace pipeyard::session {
namespace {

// Messages besides frames that may wait in the transport before heartbeats are left out.
constexpr size_t kMaxQueuedBesidesFrames = 4;

// Facts come from files of the host, which may hold anything.
void CleanFacts(v1::HostFacts* facts) {
  for (std::string* const text : {facts->mutable_kernel_release(), facts->mutable_machine(),
                                  facts->mutable_cpu_model(), facts->mutable_hypervisor()}) {
    *text = CleanText(*text, kMaxTextBytes);
  }
  for (v1::NumaNode& node : *facts->mutable_nodes()) {
    *node.mutable_cpus() = CleanText(node.cpus(), kMaxTextBytes);
  }
  google::protobuf::Map<std::string, std::string> more;
  for (const auto& [name, value] : facts->more()) {
    more[CleanText(name, kMaxTextBytes)] = CleanText(value, kMaxTextBytes);
  }
  facts->mutable_more()->swap(more);
}

bool IsFinalRefusal(v1::HelloRefused::Reason reason) {
  return reason != v1::HelloRefused::REASON_CLONED_ID;
}

}  // namespace

AgentSession::AgentSession(Executor& executor, const Clock& clock, Dialer& dialer,
                           AttemptSource& source, AgentEvents& events, v1::Hello hello,
                           AgentSessionOptions options)
    : executor_(executor),
      clock_(clock),
      dialer_(dialer),
      source_(source),
      events_(events),
      options_(options),
      hello_(std::move(hello)),
      random_(options.seed) {
  hello_.set_protocol_version(kProtocolVersion);
  CleanFacts(hello_.mutable_facts());
}

AgentSession::~AgentSession() { Stop(); }

void AgentSession::Start() {
  if (state_ != State::kStopped && state_ != State::kRefused) return;
  num_failures_ = 0;
  Dial();
}

void AgentSession::Stop() {
  state_ = State::kStopped;
  CancelTimer();
  if (stream_ != nullptr) {
    stream_->Close(Cancelled("the agent stops"));
    stream_.reset();
  }
}

void AgentSession::SetFacts(v1::HostFacts facts) {
  CleanFacts(&facts);
  hello_.mutable_facts()->Swap(&facts);
}

void AgentSession::Dial() {
  state_ = State::kDialing;
  sent_through_.clear();
  unsendable_.clear();
  stream_ = dialer_.Dial();
  stream_->Start(*this);

  v1::AgentMessage message;
  *message.mutable_hello() = hello_;
  AppendHeld(message.mutable_hello()->mutable_held());
  stream_->Send(std::move(message));
  ArmTimer(options_.welcome_timeout, &AgentSession::WelcomeIsLate);
}

void AgentSession::OnMessage(const v1::ControllerMessage& message) {
  if (const Status valid = ValidateControllerMessage(message); !valid.ok()) {
    Detach(valid.WithContext("the controller broke the protocol"));
    return;
  }
  if (state_ == State::kDialing) {
    if (message.has_welcome()) return HandleWelcome(message.welcome());
    if (message.has_hello_refused()) return HandleRefusal(message.hello_refused());
  } else if (state_ == State::kAttached) {
    if (message.has_assign()) return HandleAssign(message.assign());
    if (message.has_ack()) return HandleAck(message.ack());
    if (message.has_cancel()) return events_.OnCancel(message.cancel());
  }
  Detach(InvalidArgument(
      fmt::format("the controller broke the protocol: {} is not due {}", KindOf(message),
                  state_ == State::kDialing ? "before welcome" : "after welcome")));
}

void AgentSession::OnClosed(const Status& status) {
  stream_.reset();
  Detach(status.ok() ? Unavailable("the controller closed the stream") : status);
}

void AgentSession::HandleWelcome(const v1::Welcome& welcome) {
  if (welcome.protocol_version() != kProtocolVersion) {
    v1::HelloRefused refused;
    refused.set_reason(v1::HelloRefused::REASON_PROTOCOL_VERSION);
    refused.set_protocol_version(welcome.protocol_version());
    refused.set_text(fmt::format(
        "the controller speaks protocol version {}, this agent version {}: install the same "
        "release on both",
        welcome.protocol_version(), kProtocolVersion));
    HandleRefusal(refused);
    return;
  }
  state_ = State::kAttached;
  welcome_ = welcome;
  attached_at_ = clock_.Now();
  ArmTimer(Nanos(welcome.heartbeat_interval_ns()), &AgentSession::HeartbeatIsDue);
  events_.OnAttached(welcome);
  SendFrames();
}

void AgentSession::HandleRefusal(const v1::HelloRefused& refused) {
  const Status why = FailedPrecondition(fmt::format(
      "refused by the controller: {}",
      refused.text().empty() ? v1::HelloRefused::Reason_Name(refused.reason()) : refused.text()));
  if (!IsFinalRefusal(refused.reason())) {
    events_.OnRefused(refused, false);
    // The other session needs whole heartbeat intervals to die: no use in short waits.
    num_failures_ = std::max(num_failures_, 16);
    if (state_ == State::kDialing) Detach(why);
    return;
  }
  Stop();
  state_ = State::kRefused;
  events_.OnRefused(refused, true);
}

void AgentSession::HandleAssign(const v1::Assign& assign) {
  if (assign.store_id() != welcome_.store_id() || assign.epoch() != welcome_.epoch()) {
    Log(LogLevel::kWarning, "session",
        "ignored a stale assign attempt={} store={} epoch={}, attached to store={} epoch={}",
        assign.attempt_id(), assign.store_id(), assign.epoch(), welcome_.store_id(),
        welcome_.epoch());
    return;
  }
  events_.OnAssign(assign);
}

void AgentSession::HandleAck(const v1::Ack& ack) {
  for (const AttemptSource::Held& held : source_.HeldAttempts()) {
    if (held.attempt.attempt_id() != ack.attempt_id()) continue;
    if (held.attempt.store_id() != welcome_.store_id()) break;
    uint64_t through = ack.through();
    if (through > held.attempt.spooled_through()) {
      Log(LogLevel::kWarning, "session",
          "attempt={} was acknowledged through {}, but only {} frames are spooled",
          ack.attempt_id(), through, held.attempt.spooled_through());
      through = held.attempt.spooled_through();
    }
    if (through > held.acked_through) events_.OnAcked(ack.attempt_id(), through);
    break;
  }
  SendFrames();
}

void AgentSession::FramesSpooled() { SendFrames(); }

void AgentSession::SendFrames() {
  if (state_ != State::kAttached) return;
  std::vector<AttemptSource::Held> all = source_.HeldAttempts();
  std::erase_if(all, [this](const AttemptSource::Held& held) {
    return held.attempt.store_id() != welcome_.store_id();
  });

  std::map<std::string, uint64_t> still_sent;
  uint64_t num_in_flight = 0;
  for (const AttemptSource::Held& held : all) {
    const auto sent = sent_through_.find(held.attempt.attempt_id());
    if (sent == sent_through_.end()) continue;
    still_sent.insert(*sent);
    if (sent->second > held.acked_through) num_in_flight += sent->second - held.acked_through;
  }
  sent_through_ = std::move(still_sent);

  for (const AttemptSource::Held& held : all) {
    const std::string& attempt_id = held.attempt.attempt_id();
    if (unsendable_.contains(attempt_id)) continue;
    const auto sent = sent_through_.find(attempt_id);
    uint64_t next = held.acked_through + 1;
    if (sent != sent_through_.end()) next = std::max(next, sent->second + 1);
    for (; next <= held.attempt.spooled_through(); ++next) {
      if (num_in_flight >= welcome_.max_unacked_frames()) return;
      if (!SendFrame(held.attempt, next)) break;
      ++num_in_flight;
    }
    if (state_ != State::kAttached) return;
  }
}

bool AgentSession::SendFrame(const v1::HeldAttempt& attempt, uint64_t sequence) {
  Result<v1::Frame> frame = source_.ReadFrame(attempt.attempt_id(), sequence);
  Status status = frame.ok() ? ValidateFrame(*frame) : frame.status();
  if (status.ok() && (frame->attempt_id() != attempt.attempt_id() ||
                      frame->store_id() != attempt.store_id() || frame->sequence() != sequence)) {
    status = DataLoss("the spool gave another frame than it was asked for");
  }
  if (!status.ok()) {
    unsendable_.insert(attempt.attempt_id());
    Log(LogLevel::kError, "session", "attempt={} frame={} cannot be sent: {}", attempt.attempt_id(),
        sequence, status.ToString());
    events_.OnUnsendableFrame(attempt.attempt_id(), sequence, status);
    return false;
  }
  v1::AgentMessage message;
  *message.mutable_frame() = std::move(*frame);
  stream_->Send(std::move(message));
  sent_through_[attempt.attempt_id()] = sequence;
  return true;
}

void AgentSession::HeldChanged() {
  if (state_ == State::kAttached) SendHeartbeat();
}

void AgentSession::SendHeartbeat() {
  if (stream_->num_unsent() > welcome_.max_unacked_frames() + kMaxQueuedBesidesFrames) return;
  v1::AgentMessage message;
  AppendHeld(message.mutable_heartbeat()->mutable_held());
  stream_->Send(std::move(message));
}

void AgentSession::AppendHeld(google::protobuf::RepeatedPtrField<v1::HeldAttempt>* list) {
  for (AttemptSource::Held& held : source_.HeldAttempts()) {
    if (list->size() >= kMaxHeldAttempts) return;
    *list->Add() = std::move(held.attempt);
  }
}

void AgentSession::Accept(const std::string& attempt_id) {
  if (state_ != State::kAttached) return;
  v1::AgentMessage message;
  message.mutable_accepted()->set_attempt_id(attempt_id);
  message.mutable_accepted()->set_epoch(welcome_.epoch());
  stream_->Send(std::move(message));
}

void AgentSession::Refuse(const std::string& attempt_id, v1::Refused::Reason reason,
                          const std::string& text) {
  if (state_ != State::kAttached) return;
  v1::AgentMessage message;
  v1::Refused* refused = message.mutable_refused();
  refused->set_attempt_id(attempt_id);
  refused->set_epoch(welcome_.epoch());
  refused->set_reason(reason);
  refused->set_text(CleanText(text, kMaxTextBytes));
  stream_->Send(std::move(message));
}

void AgentSession::SendProgress(const std::string& text) {
  if (state_ != State::kAttached || stream_->num_unsent() > 0) return;
  v1::AgentMessage message;
  message.mutable_progress()->set_text(CleanText(text, kMaxTextBytes));
  stream_->Send(std::move(message));
}

void AgentSession::Detach(const Status& why) {
  if (state_ == State::kAttached && clock_.Now() - attached_at_ >= options_.stable_after) {
    num_failures_ = 0;
  }
  state_ = State::kBackoff;
  if (stream_ != nullptr) {
    stream_->Close(why);
    stream_.reset();
  }
  const Nanos retry_in = NextBackoff();
  ArmTimer(retry_in, &AgentSession::Dial);
  events_.OnDetached(why, retry_in);
}

Nanos AgentSession::NextBackoff() {
  Nanos most = options_.backoff_min;
  for (int i = 0; i < num_failures_ && most < options_.backoff_max; ++i) most *= 2;
  most = std::min(most, options_.backoff_max);
  ++num_failures_;
  std::uniform_int_distribution<int64_t> jitter(most.count() / 2, most.count());
  return Nanos(jitter(random_));
}

void AgentSession::ArmTimer(Nanos delay, void (AgentSession::*expired)()) {
  CancelTimer();
  timer_ = executor_.PostAfter(delay, [this, expired] {
    timer_ = 0;
    (this->*expired)();
  });
}

void AgentSession::CancelTimer() {
  if (timer_ != 0) executor_.Cancel(timer_);
  timer_ = 0;
}

void AgentSession::WelcomeIsLate() {
  Detach(DeadlineExceeded(
      fmt::format("no welcome within {}", FormatDuration(options_.welcome_timeout))));
}

void AgentSession::HeartbeatIsDue() {
  ArmTimer(Nanos(welcome_.heartbeat_interval_ns()), &AgentSession::HeartbeatIsDue);
  SendHeartbeat();
}

}  // namespace pipeyard::session
