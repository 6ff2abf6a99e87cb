#include "proto/grpc/agent_channel.h"

#include <grpcpp/grpcpp.h>

#include <utility>

#include "pipeyard/v1/agent.grpc.pb.h"
#include "proto/grpc/endpoint.h"
#include "proto/grpc/pump_stream.h"

namespace pipeyard::grpc_edge {
namespace {

using Pump = session::StreamPump<v1::AgentMessage, v1::ControllerMessage>;

class ClientReactor final : public grpc::ClientBidiReactor<v1::AgentMessage, v1::ControllerMessage>,
                            private Pump::Call {
 public:
  ClientReactor(Executor& executor, std::shared_ptr<grpc::Channel> channel)
      : stub_(v1::AgentService::NewStub(std::move(channel))),
        pump_(std::make_shared<Pump>(executor, static_cast<Pump::Call&>(*this), Nanos(0))) {
    stub_->async()->Attach(&context_, this);
    AddHold();
  }

  const std::shared_ptr<Pump>& pump() const { return pump_; }
  // Reactions begin; the reactor deletes itself after the last one.
  void Begin() { StartCall(); }

 private:
  // Reactions.
  void OnReadDone(bool ok) noexcept override { pump_->OnReadDone(ok); }
  void OnWriteDone(bool ok) noexcept override { pump_->OnWriteDone(ok); }
  void OnDone(const grpc::Status& status) noexcept override {
    pump_->OnDone(FromGrpc(status));
    delete this;
  }

  // Pump::Call.
  void StartRead(v1::ControllerMessage* into) override { ClientBidiReactor::StartRead(into); }
  void StartWrite(const v1::AgentMessage* message) override {
    ClientBidiReactor::StartWrite(message);
  }
  void Cancel() override { context_.TryCancel(); }
  void End(const Status&) override { RemoveHold(); }

  // The call's; both outlive it. The stub keeps the channel.
  grpc::ClientContext context_;
  const std::unique_ptr<v1::AgentService::Stub> stub_;
  const std::shared_ptr<Pump> pump_;
};

}  // namespace

std::unique_ptr<session::AgentStream> AgentDialer::Dial() {
  // Deletes itself in OnDone().
  auto* const reactor = new ClientReactor(executor_, MakeChannel(controller_));
  auto stream =
      std::make_unique<PumpStream<v1::AgentMessage, v1::ControllerMessage>>(reactor->pump());
  reactor->Begin();
  return stream;
}

}  // namespace pipeyard::grpc_edge
