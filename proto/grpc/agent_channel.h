// The gRPC edge of AgentService on the agent: each Dial() makes one Attach call.
//
// Life of a call (client side, callback API):
//
//   Dial() ──> Start(): AddHold, StartCall, StartRead
//      ▼
//   open ─ OnReadDone(ok): posted to the executor, handled there, then the next StartRead
//      │ ─ OnWriteDone(ok): next message of the queue
//      │
//      ├ Close(status) or destroyed: TryCancel, RemoveHold
//      ├ OnReadDone(not ok): RemoveHold
//      ▼
//   ending ─ OnDone(status): OnClosed posted; the reactor deletes itself
//
// The hold stands for everything that is started outside of reactions: it is removed once, when
// nothing can be started any more (stream_pump.h).
//
// All dials of one dialer share a channel. gRPC's own reconnect backoff is set so short that only
// the session's counts. The channel is released by the dialer and never in a reaction: gRPC 1.51
// then joins the thread that the reaction runs on.
//
// Thread safety: confined to the executor given.
#pragma once

#include <memory>
#include <string>

#include "base/executor.h"
#include "proto/session/transport.h"

namespace grpc {
class Channel;
}

namespace pipeyard::grpc_edge {

class AgentDialer final : public session::Dialer {
 public:
  // `controller`: HOST:PORT. The executor is borrowed and outlives this.
  AgentDialer(Executor& executor, const std::string& controller);
  // Waits for the last reaction of each call. Every stream must have been destroyed. Not to be
  // called in a reaction; the executor may be stopped already.
  ~AgentDialer() override;

  std::unique_ptr<session::AgentStream> Dial() override;

 private:
  class LiveCalls;

  Executor& executor_;
  const std::shared_ptr<grpc::Channel> channel_;
  // Shared with the calls: the last of them tells it after it is gone.
  const std::shared_ptr<LiveCalls> live_calls_;
};

}  // namespace pipeyard::grpc_edge
