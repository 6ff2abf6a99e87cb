// FakeNetwork: streams in memory, for tests and simulation, with the disturbances a real network
// has and some it has not. Driven by a FakeExecutor; one seed reproduces everything.
//
// Thread safety: confined to one thread. Ownership: the executor is borrowed and outlives this;
// this outlives its streams.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <random>

#include "base/executor.h"
#include "proto/session/transport.h"

namespace pipeyard::session {

// Probabilities are per message, 0..1. Chosen in this order; at most one acts on a message.
struct NetworkFaults {
  Nanos min_delay{0};
  Nanos max_delay{0};
  // The link breaks and the message is lost: the receiver never got it.
  double break_before_receipt = 0;
  // The message arrives, then the link breaks: whatever the receiver answers is lost.
  double break_after_receipt = 0;
  // Delivered twice, the second time later. A real stream never does this.
  double duplicate = 0;
  // Delivered out of order. A real stream never does this.
  double reorder = 0;
  // A broken link is noticed by each end on its own, up to this much later.
  Nanos max_notice_delay{0};
};

class FakeNetwork final : public Dialer {
 public:
  // `clock` is the executor's.
  FakeNetwork(FakeExecutor& executor, const Clock& clock, uint64_t seed)
      : executor_(executor), clock_(clock), random_(seed) {}
  ~FakeNetwork() override;

  // Where dialed streams arrive; nullptr (also the beginning): dials fail with kUnavailable.
  // Streams that stand are not touched.
  void Listen(StreamAcceptor* acceptor) { acceptor_ = acceptor; }
  void SetFaults(const NetworkFaults& faults) { faults_ = faults; }

  std::unique_ptr<AgentStream> Dial() override;

  // Breaks every link now; messages under way are lost.
  void BreakLinks();
  // Links stand but nothing arrives any more (a cut cable before anyone notices); later dials are
  // not affected.
  void Blackhole();

  // Links that stand.
  int num_links() const;
  uint64_t num_delivered() const { return num_delivered_; }
  // What a test wants to see of the traffic. Called for each message when it is
  // sent.
  std::function<void(const v1::AgentMessage&)> on_agent_message;
  std::function<void(const v1::ControllerMessage&)> on_controller_message;

 private:
  struct Link;
  template <typename SentMessage, typename ReceivedMessage>
  class End;

  bool Chance(double probability);
  Nanos DelayUpTo(Nanos low, Nanos high);
  void Break(const std::shared_ptr<Link>& link, const Status& status);

  FakeExecutor& executor_;
  const Clock& clock_;
  std::mt19937_64 random_;
  NetworkFaults faults_;
  StreamAcceptor* acceptor_ = nullptr;
  // Shared by both ends and by the tasks that carry messages.
  std::list<std::weak_ptr<Link>> links_;
  uint64_t num_delivered_ = 0;
};

}  // namespace pipeyard::session
