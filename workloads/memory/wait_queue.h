// WaitQueue: who waits for what, in order of arrival, with the kernel's kinds of waiters
// (kernel-mechanisms.md A4): a wake-up reaches every non-exclusive waiter and exactly one exclusive
// one, the first. A watch is a non-exclusive waiter that stays in the queue and remembers that it
// was reached, as an epoll item does.
//
// Every worker sleeps on a word of its own (Sleeper), so a wake-up reaches the one it is meant for
// and none else; for each queue that it waits in it has an entry (WaitEntry). The queue itself is
// guarded by the mutex of the object that is waited for: a waiter joins under it, releases it, then
// sleeps; a waker takes the waiter off under it and makes the system call after releasing it
// (PendingWakes). The condition being judged under that mutex, no wake-up can be lost.
//
// It is not a condition variable: it knows no predicate, and being woken means only "look again".
// Thread safety: WaitQueue and WaitEntry: guarded by the queue's object's mutex, but
// WaitEntry::is_ready. Sleeper: used by one worker; Interrupt() may be called by anyone. Ownership:
// all live in the region; all zero bytes is an empty queue, an entry in no queue, an idle sleeper.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/units.h"
#include "workloads/memory/atomic_word.h"
#include "workloads/memory/shared.h"

namespace pipeyard::memory {

// Where an entry or sleeper lies: offset from the region's start in units of 8 bytes; 0 is nobody
// (the region's header lies there). They are among the region's first 32 GiB.
using WaitRef = uint32_t;
inline constexpr uint64_t kWaitRefUnit = 8;

// How a sleeping worker can be ended from outside, as a signal ends a system call.
enum class Interruption : uint32_t {
  kNone = 0,
  kOnce = 1,       // the next sleep, or the present one, ends early; then it is used up
  kForGood = 2,    // every sleep ends early
  kOwnerDied = 3,  // the same, because a worker died inside a lock
};

// SHARED. Where a worker sleeps, whatever number of queues it is in.
struct Sleeper {
  enum State : uint32_t { kIdle = 0, kQueued = 1, kSleeping = 2, kWoken = 3 };

  AtomicWord state;  // State; the futex word
  AtomicWord interruption;

  // Forgets earlier wake-ups. Before the first Join() of a wait.
  void Prepare() {
    // An exchange, so that whoever set the state before is seen with what it did before that (a
    // watch's is_ready). Sequentially consistent with the load in SleepUntilWoken() against the two
    // steps of Interrupt(): one of them sees the other.
    state.exchange(kQueued, std::memory_order_seq_cst);
  }
};
PIPEYARD_CHECK_SHARED(Sleeper);

enum class WaitKind : uint32_t {
  kShared,     // woken with everybody, then out of the queue: poll
  kExclusive,  // woken one at a time, then out of the queue: read and write
  kWatch,      // woken with everybody and stays: epoll
};

// SHARED. A place in one queue.
struct WaitEntry {
  WaitRef next;
  WaitRef previous;
  WaitRef sleeper;
  WaitKind kind;
  uint32_t is_queued;
  // Of a watch: reached since its owner last took it. Set by wakers, cleared by the owner.
  AtomicWord is_ready;
};
PIPEYARD_CHECK_SHARED(WaitEntry);

// SHARED. A worker's sleeper and the entry of the one queue that most waits need, on one line.
struct alignas(kCacheLine) WaitNode {
  Sleeper sleeper;
  WaitEntry entry;
};
PIPEYARD_CHECK_SHARED(WaitNode);
static_assert(sizeof(WaitNode) == kCacheLine, "nodes of two workers must not share a line");

// Futex calls that are owed once the mutex has been released. A worker's stack holds it.
class PendingWakes {
 public:
  // At most one exclusive waiter of each of two queues; with more it makes calls early.
  static constexpr int kCapacity = 2;

  bool IsFull() const { return count_ == kCapacity; }
  void Add(AtomicWord* word) { words_[count_++] = word; }
  // Makes the calls. Returns how many there were.
  int Flush();

 private:
  AtomicWord* words_[kCapacity];
  int count_ = 0;
};

// SHARED
class WaitQueue {
 public:
  // `region` is the address of the region's first byte, here and below. Exclusive waiters join at
  // the end, others at the front. Precondition: the entry is in no queue.
  void Join(std::byte* region, Sleeper& sleeper, WaitEntry& entry, WaitKind kind);
  // No effect where the entry has been woken or never joined.
  void Leave(std::byte* region, WaitEntry& entry);
  // Returns how many waiters were reached: all non-exclusive ones up to the first exclusive one,
  // and that one.
  int WakeOne(std::byte* region, PendingWakes& wakes) {
    return first_ == 0 ? 0 : WakeFirst(region, wakes);
  }
  // Everybody, exclusive or not; makes the system calls itself. For closing.
  int WakeAll(std::byte* region);
  // Empties the queue without waking anybody, for an object that ends: watches may still be here.
  void DismissAll(std::byte* region);

  bool IsEmpty() const { return first_ == 0; }
  int CountWaiters(std::byte* region) const;

 private:
  int WakeFirst(std::byte* region, PendingWakes& wakes);

  WaitRef first_;
  WaitRef last_;
};
PIPEYARD_CHECK_SHARED(WaitQueue);

// Sleeps until `sleeper` is woken or interrupted. The caller prepared it, joined queues and has
// released their mutexes since; afterwards it takes them again and calls Leave(). Returns true when
// it really slept (a wake-up may come before).
bool SleepUntilWoken(Sleeper& sleeper);
// The same, at most until `deadline_ns` of MonotonicNanos().
bool SleepUntilWokenOr(Sleeper& sleeper, int64_t deadline_ns);

// Whether this worker's sleeps are to end early, and how; uses up kOnce.
Interruption TakeInterruption(Sleeper& sleeper);
bool IsInterrupted(const Sleeper& sleeper);
// Ends the present or next sleep of the worker that owns `sleeper`. What is for good stays, and
// kOwnerDied replaces kForGood.
void Interrupt(Sleeper& sleeper, Interruption how);

}  // namespace pipeyard::memory
