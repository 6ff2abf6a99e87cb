// WaitQueue: who sleeps for what, in order of arrival, with the kernel's two kinds of waiters
// (kernel-mechanisms.md A4): a wake-up reaches every non-exclusive waiter and exactly one exclusive
// one, the first.
//
// Every waiter sleeps on a word of its own (WaitNode), so a wake-up reaches the one it is meant for
// and none else. The queue itself is guarded by the mutex of the object that is waited for: a
// waiter joins under it, releases it, then sleeps; a waker takes the waiter off under it and makes
// the system call after releasing it (PendingWakes). The condition being judged under that mutex,
// no wake-up can be lost.
//
// It is not a condition variable: it knows no predicate, and being woken means only "look again".
// Thread safety: WaitQueue: guarded by its object's mutex. WaitNode: used by one worker;
// Interrupt() may be called by anyone. Ownership: both live in the region; all zero bytes is an
// empty queue and an idle node.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/units.h"
#include "workloads/memory/shared.h"

namespace pipeyard::memory {

// Where a node lies: offset from the region's start in cache lines; 0 is nobody (the region's
// header lies there).
using WaitNodeRef = uint32_t;

// How a sleeping worker can be ended from outside, as a signal ends a system call.
enum class Interruption : uint32_t {
  kNone = 0,
  kOnce = 1,    // the next sleep, or the present one, ends early; then it is used up
  kForGood = 2  // every sleep ends early
};

// SHARED
struct alignas(kCacheLine) WaitNode {
  enum State : uint32_t { kIdle = 0, kQueued = 1, kSleeping = 2, kWoken = 3 };

  std::atomic<uint32_t> state;  // State; the futex word
  std::atomic<uint32_t> interruption;
  // Guarded by the mutex of the queue it is in.
  WaitNodeRef next;
  WaitNodeRef previous;
  uint32_t is_queued;
  uint32_t is_exclusive;
};
PIPEYARD_CHECK_SHARED(WaitNode);
static_assert(sizeof(WaitNode) == kCacheLine, "nodes of two workers must not share a line");

// Futex calls that are owed once the mutex has been released. A worker's stack holds it.
class PendingWakes {
 public:
  // At most one waiter of each of two queues.
  static constexpr int kCapacity = 2;

  bool IsFull() const { return count_ == kCapacity; }
  void Add(std::atomic<uint32_t>* word) { words_[count_++] = word; }
  // Makes the calls. Returns how many there were.
  int Flush();

 private:
  std::atomic<uint32_t>* words_[kCapacity];
  int count_ = 0;
};

// SHARED
class WaitQueue {
 public:
  // `region` is the address of the region's first byte, here and below. Exclusive waiters join at
  // the end, others at the front.
  void Join(std::byte* region, WaitNode& node, bool is_exclusive);
  // No effect where the node has been woken or never joined.
  void Leave(std::byte* region, WaitNode& node);
  // Returns how many waiters were taken off: all non-exclusive ones up to the first exclusive one,
  // and that one.
  int WakeOne(std::byte* region, PendingWakes& wakes) {
    return first_ == 0 ? 0 : WakeFirst(region, wakes);
  }
  // Everybody, exclusive or not; makes the system calls itself. For closing.
  int WakeAll(std::byte* region);

  bool IsEmpty() const { return first_ == 0; }
  int CountWaiters(std::byte* region) const;

 private:
  int WakeFirst(std::byte* region, PendingWakes& wakes);

  WaitNodeRef first_;
  WaitNodeRef last_;
};
PIPEYARD_CHECK_SHARED(WaitQueue);

// Sleeps until `node` is woken or interrupted. The caller joined a queue and has released its mutex
// since; afterwards it takes the mutex again and calls Leave(). Returns true when it really slept
// (a wake-up may come before).
bool SleepUntilWoken(WaitNode& node);

// Whether this worker's sleeps are to end early; uses up kOnce.
bool TakeInterruption(WaitNode& node);
bool IsInterrupted(const WaitNode& node);
// Ends the present or next sleep of the worker that owns `node`.
void Interrupt(WaitNode& node, Interruption how);

}  // namespace pipeyard::memory
