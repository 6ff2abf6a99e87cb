#include "proto/session/fake_transport.h"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace pipeyard::session {

template <typename SentMessage, typename ReceivedMessage>
class FakeNetwork::End final : public Stream<SentMessage, ReceivedMessage> {
 public:
  using Handler = StreamHandler<ReceivedMessage>;
  static constexpr bool kIsAgentEnd = std::is_same_v<SentMessage, v1::AgentMessage>;

  End(FakeNetwork& network, std::shared_ptr<Link> link)
      : network_(network), link_(std::move(link)) {}
  ~End() override;

  void Start(Handler& handler) override { handler_ = &handler; }
  void Send(SentMessage message) override;
  size_t num_unsent() const override { return num_unsent_; }
  void Close(const Status& status) override;

  void Receive(const ReceivedMessage& message) {
    if (is_closed_ || handler_ == nullptr) return;
    ++network_.num_delivered_;
    handler_->OnMessage(message);
  }
  // The peer or the network ended the stream.
  void NoteEnd(const Status& status) {
    if (is_closed_) return;
    is_closed_ = true;
    if (handler_ != nullptr) handler_->OnClosed(status);
  }
  void MessageLeft() { --num_unsent_; }

 private:
  FakeNetwork& network_;
  const std::shared_ptr<Link> link_;
  Handler* handler_ = nullptr;
  bool is_closed_ = false;
  size_t num_unsent_ = 0;
};

struct FakeNetwork::Link {
  using AgentEnd = End<v1::AgentMessage, v1::ControllerMessage>;
  using ControllerEnd = End<v1::ControllerMessage, v1::AgentMessage>;

  // nullptr: not made yet, or destroyed.
  AgentEnd* agent = nullptr;
  ControllerEnd* controller = nullptr;
  bool is_broken = false;
  bool is_blackhole = false;
  // The newest arrival at each end: later messages arrive no earlier.
  MonotonicTime newest_at_agent{0};
  MonotonicTime newest_at_controller{0};

  template <typename E>
  E*& Slot() {
    if constexpr (E::kIsAgentEnd) {
      return agent;
    } else {
      return controller;
    }
  }
  template <typename E>
  auto*& PeerSlot() {
    if constexpr (E::kIsAgentEnd) {
      return controller;
    } else {
      return agent;
    }
  }
  template <typename E>
  MonotonicTime& NewestAtPeer() {
    return E::kIsAgentEnd ? newest_at_controller : newest_at_agent;
  }
};

template <typename SentMessage, typename ReceivedMessage>
FakeNetwork::End<SentMessage, ReceivedMessage>::~End() {
  Close(Cancelled("the stream was dropped"));
  if (link_->template Slot<End>() == this) link_->template Slot<End>() = nullptr;
}

template <typename SentMessage, typename ReceivedMessage>
void FakeNetwork::End<SentMessage, ReceivedMessage>::Send(SentMessage message) {
  if (is_closed_) return;
  if constexpr (kIsAgentEnd) {
    if (network_.on_agent_message) network_.on_agent_message(message);
  } else {
    if (network_.on_controller_message) network_.on_controller_message(message);
  }
  if (link_->is_broken) return;

  const NetworkFaults& faults = network_.faults_;
  const bool breaks_before = network_.Chance(faults.break_before_receipt);
  const bool breaks_after = !breaks_before && network_.Chance(faults.break_after_receipt);
  const bool is_doubled = !breaks_before && network_.Chance(faults.duplicate);
  const bool is_reordered = network_.Chance(faults.reorder);

  const MonotonicTime now = network_.clock_.Now();
  MonotonicTime due = now + network_.DelayUpTo(faults.min_delay, faults.max_delay);
  if (!is_reordered) {
    MonotonicTime& newest = link_->template NewestAtPeer<End>();
    due = newest = std::max(newest, due);
  }
  ++num_unsent_;
  auto deliver = [&network = network_, link = link_, message = std::move(message)](
                     bool is_first, bool is_lost, bool breaks) {
    if (is_first && link->template Slot<End>() != nullptr) {
      link->template Slot<End>()->MessageLeft();
    }
    if (link->is_broken || link->is_blackhole) return;
    auto* const peer = link->template PeerSlot<End>();
    if (!is_lost && peer != nullptr) peer->Receive(message);
    if (breaks) network.Break(link, Unavailable("the link broke"));
  };
  if (is_doubled) {
    const Nanos later = network_.DelayUpTo(faults.min_delay, faults.max_delay);
    network_.executor_.PostAfter(due - now + later, [deliver] { deliver(false, false, false); });
  }
  network_.executor_.PostAfter(due - now,
                               [deliver = std::move(deliver), breaks_before, breaks_after] {
                                 deliver(true, breaks_before, breaks_before || breaks_after);
                               });
}

template <typename SentMessage, typename ReceivedMessage>
void FakeNetwork::End<SentMessage, ReceivedMessage>::Close(const Status& status) {
  if (is_closed_) return;
  is_closed_ = true;
  network_.executor_.Post([link = link_, status] {
    End* const self = link->template Slot<End>();
    if (self != nullptr && self->handler_ != nullptr) self->handler_->OnClosed(status);
  });
  // The peer learns of it after whatever was sent before.
  const Status seen = kIsAgentEnd ? Unavailable("the agent closed the stream") : status;
  const MonotonicTime now = network_.clock_.Now();
  const MonotonicTime due = std::max(link_->template NewestAtPeer<End>(), now);
  network_.executor_.PostAfter(due - now, [link = link_, seen] {
    auto* const peer = link->template PeerSlot<End>();
    if (link->is_broken || link->is_blackhole || peer == nullptr) return;
    peer->NoteEnd(seen);
  });
}

FakeNetwork::~FakeNetwork() = default;

std::unique_ptr<AgentStream> FakeNetwork::Dial() {
  auto link = std::make_shared<Link>();
  auto agent_end = std::make_unique<Link::AgentEnd>(*this, link);
  link->agent = agent_end.get();
  std::erase_if(links_, [](const std::weak_ptr<Link>& old) { return old.expired(); });
  links_.push_back(link);

  const Nanos delay = DelayUpTo(faults_.min_delay, faults_.max_delay);
  link->newest_at_controller = link->newest_at_agent = clock_.Now() + delay;
  executor_.PostAfter(delay, [this, link] {
    if (link->is_broken || link->is_blackhole || link->agent == nullptr) return;
    if (acceptor_ == nullptr) {
      Break(link, Unavailable("nothing listens there"));
      return;
    }
    auto controller_end = std::make_unique<Link::ControllerEnd>(*this, link);
    link->controller = controller_end.get();
    acceptor_->AcceptStream(std::move(controller_end));
  });
  return agent_end;
}

void FakeNetwork::BreakLinks() {
  for (const std::weak_ptr<Link>& weak : links_) {
    if (const std::shared_ptr<Link> link = weak.lock()) Break(link, Unavailable("the link broke"));
  }
}

void FakeNetwork::Blackhole() {
  for (const std::weak_ptr<Link>& weak : links_) {
    if (const std::shared_ptr<Link> link = weak.lock()) link->is_blackhole = true;
  }
}

int FakeNetwork::num_links() const {
  return static_cast<int>(std::count_if(links_.begin(), links_.end(), [](const auto& weak) {
    const std::shared_ptr<Link> link = weak.lock();
    return link != nullptr && !link->is_broken && link->agent != nullptr &&
           link->controller != nullptr;
  }));
}

void FakeNetwork::Break(const std::shared_ptr<Link>& link, const Status& status) {
  if (link->is_broken) return;
  link->is_broken = true;
  executor_.PostAfter(DelayUpTo(Nanos(0), faults_.max_notice_delay), [link, status] {
    if (link->agent != nullptr) link->agent->NoteEnd(status);
  });
  executor_.PostAfter(DelayUpTo(Nanos(0), faults_.max_notice_delay), [link, status] {
    if (link->controller != nullptr) link->controller->NoteEnd(status);
  });
}

bool FakeNetwork::Chance(double probability) {
  if (probability <= 0) return false;
  return std::uniform_real_distribution<double>(0, 1)(random_) < probability;
}

Nanos FakeNetwork::DelayUpTo(Nanos low, Nanos high) {
  if (high <= low) return low;
  return Nanos(std::uniform_int_distribution<int64_t>(low.count(), high.count())(random_));
}

}  // namespace pipeyard::session
