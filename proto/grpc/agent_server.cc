#include "proto/grpc/agent_server.h"

#include <grpcpp/grpcpp.h>

#include <utility>

#include "pipeyard/v1/agent.grpc.pb.h"
#include "proto/grpc/endpoint.h"
#include "proto/grpc/pump_stream.h"

namespace pipeyard::grpc_edge {
namespace {

using Pump = session::StreamPump<v1::ControllerMessage, v1::AgentMessage>;

class ServerReactor final : public grpc::ServerBidiReactor<v1::AgentMessage, v1::ControllerMessage>,
                            private Pump::Call {
 public:
  ServerReactor(Executor& executor, grpc::CallbackServerContext& context)
      : context_(context),
        pump_(std::make_shared<Pump>(executor, static_cast<Pump::Call&>(*this),
                                     session::kDrainTimeout)) {}

  const std::shared_ptr<Pump>& pump() const { return pump_; }

 private:
  // Reactions.
  void OnReadDone(bool ok) noexcept override { pump_->OnReadDone(ok); }
  void OnWriteDone(bool ok) noexcept override { pump_->OnWriteDone(ok); }
  void OnCancel() noexcept override { pump_->OnCancel(); }
  void OnDone() noexcept override {
    pump_->OnDone(Unavailable("the agent ended the stream, or the link broke"));
    delete this;
  }

  // Pump::Call.
  void StartRead(v1::AgentMessage* into) override { ServerBidiReactor::StartRead(into); }
  void StartWrite(const v1::ControllerMessage* message) override {
    ServerBidiReactor::StartWrite(message);
  }
  void Cancel() override { context_.TryCancel(); }
  void End(const Status& status) override { Finish(ToGrpc(status)); }

  // Owned by gRPC; lives until OnDone().
  grpc::CallbackServerContext& context_;
  const std::shared_ptr<Pump> pump_;
};

}  // namespace

class AgentServer::Impl final : public v1::AgentService::CallbackService {
 public:
  Impl(Executor& executor, session::StreamAcceptor& acceptor)
      : executor_(executor), acceptor_(acceptor) {}

 private:
  grpc::ServerBidiReactor<v1::AgentMessage, v1::ControllerMessage>* Attach(
      grpc::CallbackServerContext* context) override {
    // Deletes itself in OnDone().
    auto* const reactor = new ServerReactor(executor_, *context);
    // shared_ptr because tasks are copyable. A task that is dropped ends the stream.
    auto stream = std::make_shared<std::unique_ptr<session::ControllerStream>>(
        std::make_unique<PumpStream<v1::ControllerMessage, v1::AgentMessage>>(reactor->pump()));
    executor_.Post([this, stream] { acceptor_.AcceptStream(std::move(*stream)); });
    return reactor;
  }

  Executor& executor_;
  session::StreamAcceptor& acceptor_;
};

AgentServer::AgentServer(Executor& executor, session::StreamAcceptor& acceptor)
    : impl_(std::make_unique<Impl>(executor, acceptor)) {}

AgentServer::~AgentServer() = default;

grpc::Service& AgentServer::service() { return *impl_; }

}  // namespace pipeyard::grpc_edge
