// The protocol's limits, and the validation of every message that arrives: what passes here may be
// used without further checks of form. Whether a message is allowed at this point of the stream is
// the sessions' business.
//
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "base/units.h"
#include "pipeyard/v1/agent.pb.h"

namespace pipeyard::session {

// Version of agent.proto. Sides of different versions refuse each other.
inline constexpr uint32_t kProtocolVersion = 1;

// Serialized. Below gRPC's receive limit of 4 MiB, so that a peer that errs is told by us.
inline constexpr size_t kMaxMessageBytes = 1 << 20;
// DNS's limit for a host name.
inline constexpr size_t kMaxHostNameBytes = 253;
// An agent runs one attempt at a time; more are held only while stores are away. A longer list is
// cut off by the sender: what it leaves out is assigned again, which is harmless.
inline constexpr int kMaxHeldAttempts = 1024;
// 1,000,000 frames of 1 MiB are more than any attempt's output limit; bounds the arithmetic on
// sequences.
inline constexpr uint64_t kMaxFrameSequence = 1'000'000;
inline constexpr size_t kMaxReasonTextBytes = 4096;
inline constexpr size_t kMaxTextBytes = 4096;
inline constexpr int kMaxNodes = 1024;
inline constexpr int kMaxCapabilities = 1024;
inline constexpr int kMaxFactEntries = 4096;
inline constexpr int kMaxSettings = 4096;
// Both ends refuse intervals outside of these: below, heartbeats are a load; above, a dead host
// goes unnoticed for too long.
inline constexpr Nanos kMinHeartbeatInterval = Milliseconds(10);
inline constexpr Nanos kMaxHeartbeatInterval = Minutes(10);
inline constexpr uint32_t kMaxUnackedFrames = 1024;

// 1..253 of [A-Za-z0-9._-], the first and last one a letter or a digit. A host name stands in
// HOST/VARIANT/INDEX and RUN/HOST.
bool IsHostName(std::string_view name);
// 1..64 of [a-z0-9_-], the first one a letter: "agent_restarted".
bool IsReasonCode(std::string_view code);

// Errors: kResourceExhausted (larger than kMaxMessageBytes); kInvalidArgument, naming the field,
// else. A Hello of another protocol version passes with nothing but its version checked: it is
// answered with HelloRefused.
Status ValidateAgentMessage(const v1::AgentMessage& message);
Status ValidateControllerMessage(const v1::ControllerMessage& message);

// The check that the controller makes on each Frame, and what its parser demands (UTF-8: text.h).
// Agents make it before a frame enters their spool: one that fails it is never stored, and would be
// resent for ever.
Status ValidateFrame(const v1::Frame& frame);

// "hello", "frame", ...; "nothing" for an empty oneof.
std::string_view KindOf(const v1::AgentMessage& message);
std::string_view KindOf(const v1::ControllerMessage& message);

}  // namespace pipeyard::session
