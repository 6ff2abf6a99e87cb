#include "proto/grpc/agent_channel.h"

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "pipeyard/v1/agent.grpc.pb.h"
#include "proto/grpc/endpoint.h"
#include "proto/grpc/pump_stream.h"

namespace pipeyard::grpc_edge {

// Counts the calls whose last reaction is still to come. Thread-safe.
class AgentDialer::LiveCalls {
 public:
  void Begin() EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    ++num_live_;
  }
  void End() EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    --num_live_;
    changed_.NotifyAll();
  }
  void WaitForNone() EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (num_live_ > 0) changed_.Wait(mutex_);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int num_live_ GUARDED_BY(mutex_) = 0;
};

namespace {

using Pump = session::StreamPump<v1::AgentMessage, v1::ControllerMessage>;

class ClientReactor final : public grpc::ClientBidiReactor<v1::AgentMessage, v1::ControllerMessage>,
                            private Pump::Call {
 public:
  // `on_gone` is called once the call and all that it holds of the channel are gone.
  ClientReactor(Executor& executor, std::shared_ptr<grpc::Channel> channel,
                std::function<void()> on_gone)
      : on_gone_(std::move(on_gone)),
        stub_(v1::AgentService::NewStub(std::move(channel))),
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
    const std::function<void()> on_gone = std::move(on_gone_);
    delete this;
    on_gone();
  }

  // Pump::Call.
  void StartRead(v1::ControllerMessage* into) override { ClientBidiReactor::StartRead(into); }
  void StartWrite(const v1::AgentMessage* message) override {
    ClientBidiReactor::StartWrite(message);
  }
  void Cancel() override { context_.TryCancel(); }
  void End(const Status&) override { RemoveHold(); }

  std::function<void()> on_gone_;
  // The call's; both outlive it. The stub keeps the channel.
  grpc::ClientContext context_;
  const std::unique_ptr<v1::AgentService::Stub> stub_;
  const std::shared_ptr<Pump> pump_;
};

}  // namespace

AgentDialer::AgentDialer(Executor& executor, const std::string& controller)
    : executor_(executor),
      channel_(MakeChannel(controller)),
      live_calls_(std::make_shared<LiveCalls>()) {}

AgentDialer::~AgentDialer() { live_calls_->WaitForNone(); }

std::unique_ptr<session::AgentStream> AgentDialer::Dial() {
  live_calls_->Begin();
  // Deletes itself in OnDone().
  auto* const reactor =
      new ClientReactor(executor_, channel_, [live_calls = live_calls_] { live_calls->End(); });
  auto stream =
      std::make_unique<PumpStream<v1::AgentMessage, v1::ControllerMessage>>(reactor->pump());
  reactor->Begin();
  return stream;
}

}  // namespace pipeyard::grpc_edge
