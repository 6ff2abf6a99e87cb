// The gRPC edge of AgentService on the agent: each Dial() makes a channel and one Attach call on
// it.
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
// nothing can be started any more (stream_pump.h). Each dial has a channel of its own, so that
// gRPC's reconnect backoff never adds to the session's.
//
// Thread safety: confined to the executor given.
#pragma once

#include <memory>
#include <string>

#include "base/executor.h"
#include "proto/session/transport.h"

namespace pipeyard::grpc_edge {

class AgentDialer final : public session::Dialer {
 public:
  // `controller`: HOST:PORT. The executor is borrowed and outlives this and its streams.
  AgentDialer(Executor& executor, std::string controller)
      : executor_(executor), controller_(std::move(controller)) {}
  std::unique_ptr<session::AgentStream> Dial() override;

 private:
  Executor& executor_;
  const std::string controller_;
};

}  // namespace pipeyard::grpc_edge
