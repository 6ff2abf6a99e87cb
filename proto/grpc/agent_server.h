// The gRPC edge of AgentService on the controller: each Attach call becomes a
// session::ControllerStream on the controller's executor. Knows nothing of the protocol but its two
// message types.
//
// Life of a call (server side, callback API):
//
//   Attach() ──> reactor made, stream handed to the acceptor on the executor
//      │ Start(): StartRead
//      ▼
//   open ─ OnReadDone(ok): posted to the executor, handled there, then the next StartRead,
//      │                   so that a slow owner slows its agents and no queue grows
//      │ ─ OnWriteDone(ok): next message of the queue
//      │
//      ├ Close(status): queue drained, then Finish(status); given up after kDrainTimeout
//      ├ OnReadDone(not ok), OnWriteDone(not ok), OnCancel: Finish
//      ▼
//   finishing ─ OnDone: OnClosed posted; the reactor deletes itself
//
// Finish is called once, and only when no write is in flight (stream_pump.h).
//
// Thread safety: AgentServer is thread-safe; its streams are confined to the executor.
#pragma once

#include <memory>

#include "base/executor.h"
#include "proto/session/transport.h"

namespace grpc {
class Service;
}

namespace pipeyard::grpc_edge {

class AgentServer {
 public:
  // Both are borrowed; the executor outlives the gRPC server, the acceptor outlives what the
  // executor runs.
  AgentServer(Executor& executor, session::StreamAcceptor& acceptor);
  ~AgentServer();
  AgentServer(const AgentServer&) = delete;
  AgentServer& operator=(const AgentServer&) = delete;

  // For BuildServer(). Outlives the gRPC server.
  grpc::Service& service();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pipeyard::grpc_edge
