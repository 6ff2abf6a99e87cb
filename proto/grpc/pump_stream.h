// PumpStream: the Stream whose work a StreamPump does. Internal to this room.
//
// Thread safety: confined to the pump's executor.
#pragma once

#include <memory>
#include <utility>

#include "proto/session/stream_pump.h"
#include "proto/session/transport.h"

namespace pipeyard::grpc_edge {

template <typename SentMessage, typename ReceivedMessage>
class PumpStream final : public session::Stream<SentMessage, ReceivedMessage> {
 public:
  using Pump = session::StreamPump<SentMessage, ReceivedMessage>;

  explicit PumpStream(std::shared_ptr<Pump> pump) : pump_(std::move(pump)) {}
  ~PumpStream() override { pump_->Abandon(); }

  void Start(session::StreamHandler<ReceivedMessage>& handler) override { pump_->Start(handler); }
  void Send(SentMessage message) override { pump_->Send(std::move(message)); }
  size_t num_unsent() const override { return pump_->num_unsent(); }
  void Close(const Status& status) override { pump_->Close(status); }

 private:
  // Shared with the reactor, which may outlive this (stream_pump.h).
  const std::shared_ptr<Pump> pump_;
};

}  // namespace pipeyard::grpc_edge
