#include "proto/session/messages.h"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "base/ids.h"
#include "base/utf8.h"
#include "proto/session/text.h"

namespace pipeyard::session {
namespace {

// Longer words are no names of metrics, settings or streams.
constexpr size_t kMaxWordBytes = 128;
// Room for the tag and length that wrap a Frame into an AgentMessage.
constexpr size_t kEnvelopeBytes = 16;

bool IsLowerAlnum(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool IsAlnum(char c) { return IsLowerAlnum(c) || (c >= 'A' && c <= 'Z'); }

Status RequireUuid(std::string_view field, std::string_view value) {
  if (IsUuid(value)) return Status::Ok();
  return InvalidArgument(fmt::format("{}: not a UUID in lower-case text", field));
}

// A short word for people and keys: present, no control characters.
Status RequireWord(std::string_view field, std::string_view value) {
  if (value.empty()) return InvalidArgument(fmt::format("{}: missing", field));
  if (value.size() > kMaxWordBytes) {
    return InvalidArgument(fmt::format("{}: longer than {} bytes", field, kMaxWordBytes));
  }
  if (HoldsControl(value)) {
    return InvalidArgument(fmt::format("{}: holds a control character", field));
  }
  return Status::Ok();
}

Status RequireAtMost(std::string_view field, size_t size, size_t most) {
  if (size <= most) return Status::Ok();
  return InvalidArgument(fmt::format("{}: {} is more than {}", field, size, most));
}

Status RequireNotNegative(std::string_view field, int64_t value) {
  if (value >= 0) return Status::Ok();
  return InvalidArgument(fmt::format("{}: negative", field));
}

// `is_known`: the generated X_IsValid(). 0 is never sent.
Status RequireEnum(std::string_view field, int value, bool (*is_known)(int)) {
  if (value != 0 && is_known(value)) return Status::Ok();
  return InvalidArgument(fmt::format("{}: unknown value {}", field, value));
}

Status RequireSequence(std::string_view field, uint64_t value) {
  if (value >= 1 && value <= kMaxFrameSequence) return Status::Ok();
  return InvalidArgument(fmt::format("{}: {} is not in 1..{}", field, value, kMaxFrameSequence));
}

Status ValidateHeld(const google::protobuf::RepeatedPtrField<v1::HeldAttempt>& held) {
  PIPEYARD_RETURN_IF_ERROR(RequireAtMost("held", held.size(), kMaxHeldAttempts));
  for (const v1::HeldAttempt& attempt : held) {
    PIPEYARD_RETURN_IF_ERROR(RequireUuid("held.attempt_id", attempt.attempt_id()));
    PIPEYARD_RETURN_IF_ERROR(RequireUuid("held.store_id", attempt.store_id()));
    PIPEYARD_RETURN_IF_ERROR(RequireEnum("held.phase", attempt.phase(), v1::AttemptPhase_IsValid));
    PIPEYARD_RETURN_IF_ERROR(RequireNotNegative("held.running_ns", attempt.running_ns()));
    PIPEYARD_RETURN_IF_ERROR(
        RequireAtMost("held.spooled_through", attempt.spooled_through(), kMaxFrameSequence));
  }
  return Status::Ok();
}

Status ValidateFacts(const v1::HostFacts& facts) {
  PIPEYARD_RETURN_IF_ERROR(RequireAtMost("facts.nodes", facts.nodes_size(), kMaxNodes));
  const auto num_nodes = static_cast<int64_t>(facts.nodes_size());
  if (facts.distances_size() != 0 && facts.distances_size() != num_nodes * num_nodes) {
    return InvalidArgument("facts.distances: neither empty nor nodes x nodes");
  }
  for (const v1::NumaNode& node : facts.nodes()) {
    PIPEYARD_RETURN_IF_ERROR(RequireNotNegative("facts.nodes.id", node.id()));
    PIPEYARD_RETURN_IF_ERROR(
        RequireAtMost("facts.nodes.cpus (bytes)", node.cpus().size(), kMaxTextBytes));
  }
  for (const std::string* text :
       {&facts.kernel_release(), &facts.machine(), &facts.cpu_model(), &facts.hypervisor()}) {
    PIPEYARD_RETURN_IF_ERROR(RequireAtMost("facts (bytes)", text->size(), kMaxTextBytes));
  }
  PIPEYARD_RETURN_IF_ERROR(RequireAtMost("facts.more", facts.more().size(), kMaxFactEntries));
  for (const auto& [name, value] : facts.more()) {
    PIPEYARD_RETURN_IF_ERROR(RequireWord("facts.more: a name", name));
    PIPEYARD_RETURN_IF_ERROR(RequireAtMost("facts.more (bytes)", value.size(), kMaxTextBytes));
  }
  return Status::Ok();
}

Status ValidateHello(const v1::Hello& hello) {
  if (hello.protocol_version() == 0) return InvalidArgument("hello.protocol_version: missing");
  if (hello.protocol_version() != kProtocolVersion) return Status::Ok();
  PIPEYARD_RETURN_IF_ERROR(RequireUuid("hello.agent_id", hello.agent_id()));
  PIPEYARD_RETURN_IF_ERROR(RequireUuid("hello.boot_id", hello.boot_id()));
  PIPEYARD_RETURN_IF_ERROR(RequireUuid("hello.instance_id", hello.instance_id()));
  if (!IsHostName(hello.name())) {
    return InvalidArgument(
        "hello.name: not 1 to 253 of A-Z a-z 0-9 . _ - with a letter or a digit at both ends");
  }
  PIPEYARD_RETURN_IF_ERROR(RequireWord("hello.agent_version", hello.agent_version()));
  PIPEYARD_RETURN_IF_ERROR(ValidateFacts(hello.facts()));
  PIPEYARD_RETURN_IF_ERROR(
      RequireAtMost("hello.capabilities", hello.capabilities_size(), kMaxCapabilities));
  for (const std::string& capability : hello.capabilities()) {
    PIPEYARD_RETURN_IF_ERROR(RequireWord("hello.capabilities", capability));
  }
  return ValidateHeld(hello.held());
}

Status ValidateRefused(const v1::Refused& refused) {
  PIPEYARD_RETURN_IF_ERROR(RequireUuid("refused.attempt_id", refused.attempt_id()));
  PIPEYARD_RETURN_IF_ERROR(
      RequireEnum("refused.reason", refused.reason(), v1::Refused::Reason_IsValid));
  return RequireAtMost("refused.text (bytes)", refused.text().size(), kMaxTextBytes);
}

Status ValidateMetric(const v1::Metric& metric) {
  PIPEYARD_RETURN_IF_ERROR(RequireWord("frame.metrics.name", metric.name()));
  PIPEYARD_RETURN_IF_ERROR(RequireWord("frame.metrics.unit", metric.unit()));
  PIPEYARD_RETURN_IF_ERROR(RequireWord("frame.metrics.reducer", metric.reducer()));
  PIPEYARD_RETURN_IF_ERROR(
      RequireEnum("frame.metrics.better", metric.better(), v1::Direction_IsValid));
  if (metric.has_value() && !std::isfinite(metric.value())) {
    return InvalidArgument(
        fmt::format("frame.metrics: the value of {} is not finite", metric.name()));
  }
  if (!metric.has_value()) {
    return RequireWord("frame.metrics.absent_reason", metric.absent_reason());
  }
  return Status::Ok();
}

Status ValidateHistogram(const v1::Histogram& histogram) {
  PIPEYARD_RETURN_IF_ERROR(RequireWord("frame.histograms.name", histogram.name()));
  PIPEYARD_RETURN_IF_ERROR(RequireWord("frame.histograms.unit", histogram.unit()));
  if (histogram.index_size() != histogram.count_size()) {
    return InvalidArgument("frame.histograms: index and count differ in length");
  }
  for (int i = 1; i < histogram.index_size(); ++i) {
    if (histogram.index(i) <= histogram.index(i - 1)) {
      return InvalidArgument("frame.histograms.index: not strictly ascending");
    }
  }
  return Status::Ok();
}

Status ValidateEnd(const v1::AttemptEnd& end) {
  PIPEYARD_RETURN_IF_ERROR(RequireEnum("frame.end.outcome", end.outcome(), v1::Outcome_IsValid));
  if (end.outcome() == v1::OUTCOME_LOST) {
    return InvalidArgument("frame.end.outcome: lost is the controller's to say");
  }
  if (end.outcome() == v1::OUTCOME_OK) {
    if (!end.reason_code().empty()) {
      return InvalidArgument("frame.end.reason_code: an ok attempt has none");
    }
  } else if (!IsReasonCode(end.reason_code())) {
    return InvalidArgument("frame.end.reason_code: missing, or not 1 to 64 of a-z 0-9 _ -");
  }
  PIPEYARD_RETURN_IF_ERROR(RequireAtMost("frame.end.reason_text (bytes)", end.reason_text().size(),
                                         kMaxReasonTextBytes));
  PIPEYARD_RETURN_IF_ERROR(RequireNotNegative("frame.end.elapsed_ns", end.elapsed_ns()));
  return RequireUuid("frame.end.boot_id", end.boot_id());
}

Status ValidateVariant(const v1::VariantSettings& variant) {
  PIPEYARD_RETURN_IF_ERROR(RequireWord("assign.variant.workload", variant.workload()));
  PIPEYARD_RETURN_IF_ERROR(RequireWord("assign.variant.target", variant.target()));
  PIPEYARD_RETURN_IF_ERROR(RequireWord("assign.variant.variant_id", variant.variant_id()));
  PIPEYARD_RETURN_IF_ERROR(
      RequireAtMost("assign.variant.settings", variant.settings_size(), kMaxSettings));
  for (int i = 0; i < variant.settings_size(); ++i) {
    const v1::Setting& setting = variant.settings(i);
    PIPEYARD_RETURN_IF_ERROR(RequireWord("assign.variant.settings.name", setting.name()));
    if (i > 0 && setting.name() <= variant.settings(i - 1).name()) {
      return InvalidArgument(
          fmt::format("assign.variant.settings: {} is out of order", setting.name()));
    }
    if (setting.value().kind_case() == v1::Value::KIND_NOT_SET) {
      return InvalidArgument(
          fmt::format("assign.variant.settings: {} has no value", setting.name()));
    }
  }
  return Status::Ok();
}

Status ValidateWelcome(const v1::Welcome& welcome) {
  if (welcome.protocol_version() == 0) return InvalidArgument("welcome.protocol_version: missing");
  if (welcome.protocol_version() != kProtocolVersion) return Status::Ok();
  PIPEYARD_RETURN_IF_ERROR(RequireUuid("welcome.store_id", welcome.store_id()));
  const Nanos interval(welcome.heartbeat_interval_ns());
  if (interval < kMinHeartbeatInterval || interval > kMaxHeartbeatInterval) {
    return InvalidArgument(fmt::format("welcome.heartbeat_interval_ns: not in {} to {}",
                                       FormatDuration(kMinHeartbeatInterval),
                                       FormatDuration(kMaxHeartbeatInterval)));
  }
  if (welcome.max_unacked_frames() < 1 || welcome.max_unacked_frames() > kMaxUnackedFrames) {
    return InvalidArgument(
        fmt::format("welcome.max_unacked_frames: not in 1..{}", kMaxUnackedFrames));
  }
  return RequireNotNegative("welcome.lease_ns", welcome.lease_ns());
}

Status ValidateAssign(const v1::Assign& assign) {
  PIPEYARD_RETURN_IF_ERROR(RequireUuid("assign.attempt_id", assign.attempt_id()));
  PIPEYARD_RETURN_IF_ERROR(RequireUuid("assign.store_id", assign.store_id()));
  PIPEYARD_RETURN_IF_ERROR(RequireUuid("assign.run_id", assign.run_id()));
  PIPEYARD_RETURN_IF_ERROR(
      RequireAtMost("assign.trial_name (bytes)", assign.trial_name().size(), kMaxTextBytes));
  if (assign.trial_timeout_ns() <= 0) {
    return InvalidArgument("assign.trial_timeout_ns: not positive");
  }
  return ValidateVariant(assign.variant());
}

template <typename Message>
Status RequireSize(const Message& message) {
  const size_t size = message.ByteSizeLong();
  if (size <= kMaxMessageBytes) return Status::Ok();
  return ResourceExhausted(
      fmt::format("a message of {} bytes is larger than {}", size, kMaxMessageBytes));
}

}  // namespace

Status ValidateAgentMessage(const v1::AgentMessage& message) {
  PIPEYARD_RETURN_IF_ERROR(RequireSize(message));
  switch (message.message_case()) {
    case v1::AgentMessage::kHello:
      return ValidateHello(message.hello());
    case v1::AgentMessage::kAccepted:
      return RequireUuid("accepted.attempt_id", message.accepted().attempt_id());
    case v1::AgentMessage::kRefused:
      return ValidateRefused(message.refused());
    case v1::AgentMessage::kProgress:
      return RequireAtMost("progress.text (bytes)", message.progress().text().size(),
                           kMaxTextBytes);
    case v1::AgentMessage::kFrame:
      return ValidateFrame(message.frame());
    case v1::AgentMessage::kHeartbeat:
      return ValidateHeld(message.heartbeat().held());
    case v1::AgentMessage::MESSAGE_NOT_SET:
      break;
  }
  return InvalidArgument("a message of no kind that this version knows");
}

Status ValidateControllerMessage(const v1::ControllerMessage& message) {
  PIPEYARD_RETURN_IF_ERROR(RequireSize(message));
  switch (message.message_case()) {
    case v1::ControllerMessage::kWelcome:
      return ValidateWelcome(message.welcome());
    case v1::ControllerMessage::kHelloRefused:
      PIPEYARD_RETURN_IF_ERROR(RequireEnum("hello_refused.reason", message.hello_refused().reason(),
                                           v1::HelloRefused::Reason_IsValid));
      return RequireAtMost("hello_refused.text (bytes)", message.hello_refused().text().size(),
                           kMaxTextBytes);
    case v1::ControllerMessage::kAssign:
      return ValidateAssign(message.assign());
    case v1::ControllerMessage::kAck:
      PIPEYARD_RETURN_IF_ERROR(RequireUuid("ack.attempt_id", message.ack().attempt_id()));
      return RequireSequence("ack.through", message.ack().through());
    case v1::ControllerMessage::kCancel:
      PIPEYARD_RETURN_IF_ERROR(RequireUuid("cancel.attempt_id", message.cancel().attempt_id()));
      return RequireAtMost("cancel.reason (bytes)", message.cancel().reason().size(),
                           kMaxTextBytes);
    case v1::ControllerMessage::MESSAGE_NOT_SET:
      break;
  }
  return InvalidArgument("a message of no kind that this version knows");
}

Status ValidateFrame(const v1::Frame& frame) {
  PIPEYARD_RETURN_IF_ERROR(RequireUuid("frame.store_id", frame.store_id()));
  PIPEYARD_RETURN_IF_ERROR(RequireUuid("frame.attempt_id", frame.attempt_id()));
  PIPEYARD_RETURN_IF_ERROR(RequireSequence("frame.sequence", frame.sequence()));
  if (frame.ByteSizeLong() > kMaxMessageBytes - kEnvelopeBytes) {
    return ResourceExhausted(fmt::format("a frame of {} bytes does not fit into a message of {}",
                                         frame.ByteSizeLong(), kMaxMessageBytes));
  }
  if (const std::string field = FindFieldThatIsNotUtf8(frame); !field.empty()) {
    return InvalidArgument(fmt::format("{}: not UTF-8", field));
  }
  if (frame.is_final() != frame.has_end()) {
    return InvalidArgument("frame.end: is in the final frame, and only there");
  }
  for (const v1::Metric& metric : frame.metrics()) {
    PIPEYARD_RETURN_IF_ERROR(ValidateMetric(metric));
  }
  for (const v1::Counter& counter : frame.counters()) {
    PIPEYARD_RETURN_IF_ERROR(RequireWord("frame.counters.name", counter.name()));
    PIPEYARD_RETURN_IF_ERROR(RequireWord("frame.counters.unit", counter.unit()));
  }
  for (const v1::Histogram& histogram : frame.histograms()) {
    PIPEYARD_RETURN_IF_ERROR(ValidateHistogram(histogram));
  }
  for (const v1::Placement& placement : frame.placements()) {
    PIPEYARD_RETURN_IF_ERROR(RequireWord("frame.placements.memory", placement.memory()));
    PIPEYARD_RETURN_IF_ERROR(RequireWord("frame.placements.evidence", placement.evidence()));
    for (const auto& [node, pages] : placement.pages_per_node()) {
      PIPEYARD_RETURN_IF_ERROR(RequireNotNegative("frame.placements: a node", node));
      PIPEYARD_RETURN_IF_ERROR(RequireNotNegative("frame.placements: pages", pages));
    }
  }
  for (const v1::SelfCheck& check : frame.self_checks()) {
    PIPEYARD_RETURN_IF_ERROR(RequireWord("frame.self_checks.name", check.name()));
  }
  for (const v1::ResolvedValue& resolved : frame.resolved()) {
    PIPEYARD_RETURN_IF_ERROR(RequireWord("frame.resolved.name", resolved.name()));
  }
  for (const v1::Output& output : frame.outputs()) {
    PIPEYARD_RETURN_IF_ERROR(RequireWord("frame.outputs.stream", output.stream()));
  }
  for (const std::string& name : frame.inert_switches()) {
    PIPEYARD_RETURN_IF_ERROR(RequireWord("frame.inert_switches", name));
  }
  return frame.has_end() ? ValidateEnd(frame.end()) : Status::Ok();
}

bool IsHostName(std::string_view name) {
  if (name.empty() || name.size() > kMaxHostNameBytes) return false;
  if (!IsAlnum(name.front()) || !IsAlnum(name.back())) return false;
  for (const char c : name) {
    if (!IsAlnum(c) && c != '.' && c != '_' && c != '-') return false;
  }
  return true;
}

bool IsReasonCode(std::string_view code) {
  if (code.empty() || code.size() > 64 || code.front() < 'a' || code.front() > 'z') return false;
  for (const char c : code) {
    if (!IsLowerAlnum(c) && c != '_' && c != '-') return false;
  }
  return true;
}

std::string_view KindOf(const v1::AgentMessage& message) {
  switch (message.message_case()) {
    case v1::AgentMessage::kHello:
      return "hello";
    case v1::AgentMessage::kAccepted:
      return "accepted";
    case v1::AgentMessage::kRefused:
      return "refused";
    case v1::AgentMessage::kProgress:
      return "progress";
    case v1::AgentMessage::kFrame:
      return "frame";
    case v1::AgentMessage::kHeartbeat:
      return "heartbeat";
    case v1::AgentMessage::MESSAGE_NOT_SET:
      break;
  }
  return "nothing";
}

std::string_view KindOf(const v1::ControllerMessage& message) {
  switch (message.message_case()) {
    case v1::ControllerMessage::kWelcome:
      return "welcome";
    case v1::ControllerMessage::kHelloRefused:
      return "hello_refused";
    case v1::ControllerMessage::kAssign:
      return "assign";
    case v1::ControllerMessage::kAck:
      return "ack";
    case v1::ControllerMessage::kCancel:
      return "cancel";
    case v1::ControllerMessage::MESSAGE_NOT_SET:
      break;
  }
  return "nothing";
}

}  // namespace pipeyard::session
