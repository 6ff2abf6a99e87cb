// Stream: one end of one Attach stream, as a session sees it. Implemented over gRPC by proto/grpc
// and in memory by proto/session/fake_transport.h. It carries messages and knows nothing of their
// meaning.
//
// Thread safety: confined to one Executor, on which every handler call is made as well.
#pragma once

#include <cstddef>
#include <memory>

#include "base/status.h"
#include "pipeyard/v1/agent.pb.h"

namespace pipeyard::session {

// Told what happens on a stream. No call is made from inside a call into the stream, and none after
// the stream was destroyed.
template <typename Received>
class StreamHandler {
 public:
  virtual ~StreamHandler() = default;
  virtual void OnMessage(const Received& message) = 0;
  // The last call, exactly once: with the status given to Close(), with the status that the peer
  // closed with, or kUnavailable when the link broke or was never made. The stream may be destroyed
  // from inside either call.
  virtual void OnClosed(const Status& status) = 0;
};

template <typename SentMessage, typename ReceivedMessage>
class Stream {
 public:
  using Sent = SentMessage;
  using Received = ReceivedMessage;
  using Handler = StreamHandler<Received>;

  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  // A stream that is still open is closed with kCancelled. What was sent before Close() is still
  // delivered where the peer reads it.
  virtual ~Stream() = default;

  // Begins delivery. Once, before anything else. `handler` is borrowed and outlives this.
  virtual void Start(Handler& handler) = 0;

  // Queues `message`; messages arrive in the order of sending, or the stream breaks. Never blocks.
  // Ignored once the stream is closed.
  virtual void Send(Sent message) = 0;

  // Messages that Send() took and the transport has not handed to the network yet: the
  // backpressure. The protocol's credits bound it.
  virtual size_t num_unsent() const = 0;

  // Ends the stream. The accepting end delivers what is queued and then `status`, giving up after
  // some seconds; the dialing end cancels at once and its peer sees a broken link. No OnMessage()
  // after this call. Idempotent: the first status counts.
  virtual void Close(const Status& status) = 0;
};

using AgentStream = Stream<v1::AgentMessage, v1::ControllerMessage>;
using ControllerStream = Stream<v1::ControllerMessage, v1::AgentMessage>;

// Makes the agent's streams. A dial that fails does so through OnClosed().
class Dialer {
 public:
  virtual ~Dialer() = default;
  virtual std::unique_ptr<AgentStream> Dial() = 0;
};

// Given each stream that an agent opened, on the executor, before its Start().
class StreamAcceptor {
 public:
  virtual ~StreamAcceptor() = default;
  virtual void AcceptStream(std::unique_ptr<ControllerStream> stream) = 0;
};

}  // namespace pipeyard::session
