#include "workloads/memory/wait_queue.h"

#include "workloads/memory/futex.h"

namespace pipeyard::memory {
namespace {

WaitNode& NodeAt(std::byte* region, WaitNodeRef ref) {
  return *reinterpret_cast<WaitNode*>(region + static_cast<uint64_t>(ref) * kCacheLine);
}

WaitNodeRef RefOf(const std::byte* region, const WaitNode& node) {
  return static_cast<WaitNodeRef>((reinterpret_cast<const std::byte*>(&node) - region) /
                                  kCacheLine);
}

// Returns true when the waiter sleeps in the kernel already, so that a system call is owed to it.
bool MarkWoken(WaitNode& node) {
  // Release: the waiter sees what was done under the mutex. Acquire: pairs with the step to
  // kSleeping.
  return node.state.exchange(WaitNode::kWoken, std::memory_order_acq_rel) == WaitNode::kSleeping;
}

}  // namespace

int PendingWakes::Flush() {
  const int flushed = count_;
  for (int i = 0; i < flushed; ++i) FutexWake(words_[i], 1);
  count_ = 0;
  return flushed;
}

void WaitQueue::Join(std::byte* region, WaitNode& node, bool is_exclusive) {
  const WaitNodeRef ref = RefOf(region, node);
  node.is_queued = 1;
  node.is_exclusive = is_exclusive ? 1 : 0;
  node.next = 0;
  node.previous = 0;
  if (first_ == 0) {
    first_ = ref;
    last_ = ref;
  } else if (is_exclusive) {
    node.previous = last_;
    NodeAt(region, last_).next = ref;
    last_ = ref;
  } else {
    node.next = first_;
    NodeAt(region, first_).previous = ref;
    first_ = ref;
  }
  // Sequentially consistent with the load in SleepUntilWoken() against the two steps of
  // Interrupt(): one of them sees the other.
  node.state.store(WaitNode::kQueued, std::memory_order_seq_cst);
}

void WaitQueue::Leave(std::byte* region, WaitNode& node) {
  if (node.is_queued == 0) return;
  node.is_queued = 0;
  if (node.previous != 0) {
    NodeAt(region, node.previous).next = node.next;
  } else {
    first_ = node.next;
  }
  if (node.next != 0) {
    NodeAt(region, node.next).previous = node.previous;
  } else {
    last_ = node.previous;
  }
}

int WaitQueue::WakeFirst(std::byte* region, PendingWakes& wakes) {
  int woken = 0;
  while (first_ != 0) {
    WaitNode& node = NodeAt(region, first_);
    const bool is_exclusive = node.is_exclusive != 0;
    Leave(region, node);
    ++woken;
    if (MarkWoken(node)) {
      if (wakes.IsFull()) wakes.Flush();
      wakes.Add(&node.state);
    }
    if (is_exclusive) break;
  }
  return woken;
}

int WaitQueue::WakeAll(std::byte* region) {
  int woken = 0;
  while (first_ != 0) {
    WaitNode& node = NodeAt(region, first_);
    Leave(region, node);
    ++woken;
    if (MarkWoken(node)) FutexWake(&node.state, 1);
  }
  return woken;
}

int WaitQueue::CountWaiters(std::byte* region) const {
  int count = 0;
  for (WaitNodeRef ref = first_; ref != 0; ref = NodeAt(region, ref).next) ++count;
  return count;
}

bool SleepUntilWoken(WaitNode& node) {
  uint32_t state = WaitNode::kQueued;
  if (node.interruption.load(std::memory_order_seq_cst) != 0 ||
      !node.state.compare_exchange_strong(state, WaitNode::kSleeping, std::memory_order_acq_rel)) {
    return false;
  }
  do {
    FutexWait(&node.state, WaitNode::kSleeping, Nanos(-1));
  } while (node.state.load(std::memory_order_acquire) == WaitNode::kSleeping);
  return true;
}

bool TakeInterruption(WaitNode& node) {
  uint32_t once = static_cast<uint32_t>(Interruption::kOnce);
  return node.interruption.compare_exchange_strong(once, 0, std::memory_order_acq_rel) || once != 0;
}

bool IsInterrupted(const WaitNode& node) {
  return node.interruption.load(std::memory_order_relaxed) != 0;
}

void Interrupt(WaitNode& node, Interruption how) {
  uint32_t none = 0;
  if (how == Interruption::kOnce) {
    // An interruption for good stays.
    node.interruption.compare_exchange_strong(none, static_cast<uint32_t>(how));
  } else {
    node.interruption.store(static_cast<uint32_t>(how), std::memory_order_seq_cst);
  }
  if (node.state.exchange(WaitNode::kWoken, std::memory_order_seq_cst) == WaitNode::kSleeping) {
    FutexWake(&node.state, 1);
  }
}

}  // namespace pipeyard::memory
