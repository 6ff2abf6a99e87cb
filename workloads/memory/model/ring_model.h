// RingModel: the protocol of a pipe's readers, writers and pollers (kernel-mechanisms.md A2 to A5)
// over a ring of tokens, around the wait queue's own sources; with known faults to plant.
//
// Thread safety: its methods are what threads of the exhaustive scheduler do.
#pragma once

#include <cstring>
#include <span>

#include "workloads/memory/model/scheduler.h"
#include "workloads/memory/wait_queue.h"

namespace pipeyard::memory::model {

enum class Planted {
  kNone,
  kWakesBeforePublishing,  // wakes the reader, then makes the token visible, in two critical
                           // sections
  kSleepsWithoutRecheck,   // joins the queue in another critical section than the one that looked
  kWakesOneOnClose,        // H3
  kNoChain,                // a woken reader that leaves tokens wakes nobody
  kTornRead,               // H1: looks again without the mutex, reading head and tail apart
  kForgetsFlush,           // leaves owed futex calls undone
  kPollsBeforeJoining,     // looks, then joins the queue
};

constexpr int kMaxThreads = 5;

// Where a thread stands between two critical sections. With Locals it says all about the thread.
enum class Phase : uint32_t { kBegin, kAsleep, kAwake, kFlushing, kDone };

// A thread's own variables. In the shared memory, so that they belong to the state.
struct Locals {
  Phase phase;
  uint32_t round;  // of a thread that does the same several times
  uint32_t left;   // tokens to write
  uint32_t is_read;
  uint32_t was_empty;
  uint32_t wake_next;
  uint32_t wake_other;
  PendingWakes wakes;
};

// All that the threads share.
struct SharedRing {
  std::byte header[64];  // offset 0 is nobody
  WaitNode nodes[kMaxThreads];
  Locals locals[kMaxThreads];
  WaitQueue readers;
  WaitQueue writers;
  uint32_t capacity;
  uint32_t open_writers;
  // For the torn read they are read outside the mutex, so each is a word of its own.
  AtomicWord head;
  AtomicWord tail;
  uint32_t taken;   // tokens that readers got
  uint32_t ends;    // ends of file that readers saw
  uint32_t breaks;  // interruptions that ended a wait
  uint32_t polled;  // polls that returned
};

class RingModel {
 public:
  RingModel(uint32_t capacity, uint32_t writers, Planted planted)
      : capacity_(capacity), open_writers_(writers), planted_(planted) {}

  void Reset() {
    std::memset(static_cast<void*>(&ring_), 0, sizeof(ring_));
    ring_.capacity = capacity_;
    ring_.open_writers = open_writers_;
    mutex_.Reset();
  }
  std::span<const std::byte> memory() const {
    return {reinterpret_cast<const std::byte*>(&ring_), sizeof(ring_)};
  }
  SharedRing& ring() { return ring_; }

  // Reads one token; false: end of file or interrupted.
  bool Read(int self) {
    Locals& my = Begin(self);
    mutex_.Lock();
    for (;;) {
      if (Used() != 0) {
        my.wake_other = Used() == ring_.capacity;
        SetTail(ring_.tail.Peek() + 1);
        ++ring_.taken;
        my.is_read = 1;
        break;
      }
      if (ring_.open_writers == 0) {
        ++ring_.ends;
        break;
      }
      if (TakeInterruption(Me(self).sleeper) != Interruption::kNone) {
        ++ring_.breaks;
        break;
      }
      Sleep(self, ring_.readers);
      my.wake_next = 1;
    }
    if (my.wake_other != 0) ring_.writers.WakeOne(Region(), my.wakes);
    if (my.wake_next != 0 && Used() != 0 && planted_ != Planted::kNoChain) {
      ring_.readers.WakeOne(Region(), my.wakes);
    }
    End(my);
    return my.is_read != 0;
  }

  // Writes `count` tokens, waiting where the ring is full.
  void Write(int self, uint32_t count) {
    Locals& my = Begin(self);
    my.left = count;
    mutex_.Lock();
    my.was_empty = Used() == 0;
    if (planted_ == Planted::kWakesBeforePublishing && my.was_empty != 0) {
      ring_.readers.WakeOne(Region(), my.wakes);
      mutex_.Unlock();
      my.wakes.Flush();
      mutex_.Lock();
      my.was_empty = 0;
    }
    for (;;) {
      if (my.left == 0) break;
      if (Used() < ring_.capacity) {
        SetHead(ring_.head.Peek() + 1);
        --my.left;
        continue;
      }
      if (my.was_empty != 0) ring_.readers.WakeOne(Region(), my.wakes);
      Sleep(self, ring_.writers);
      my.was_empty = Used() == 0;
      my.wake_next = 1;
    }
    if (my.was_empty != 0) ring_.readers.WakeOne(Region(), my.wakes);
    if (my.wake_next != 0 && Used() < ring_.capacity) ring_.writers.WakeOne(Region(), my.wakes);
    End(my);
  }

  void CloseWriter() {
    ForgetHistory();
    mutex_.Lock();
    if (--ring_.open_writers == 0) {
      if (planted_ == Planted::kWakesOneOnClose) {
        PendingWakes wakes;
        ring_.readers.WakeOne(Region(), wakes);
        wakes.Flush();
      } else {
        ring_.readers.WakeAll(Region());
        ring_.writers.WakeAll(Region());
      }
    }
    mutex_.Unlock();
  }

  // Waits until a token is there or no writer is; or, with a deadline that is past, sleeps no more
  // than once.
  void PollReadable(int self, bool is_timed = false) {
    WaitNode& me = Me(self);
    Locals& my = Begin(self);
    mutex_.Lock();
    while (!IsReadable()) {
      if (planted_ == Planted::kPollsBeforeJoining) {
        mutex_.Unlock();
        mutex_.Lock();
      }
      me.sleeper.Prepare();
      ring_.readers.Join(Region(), me.sleeper, me.entry, WaitKind::kShared);
      Leave(my, Phase::kAsleep);
      if (is_timed) {
        SleepUntilWokenOr(me.sleeper, /*deadline_ns=*/0);
      } else {
        SleepUntilWoken(me.sleeper);
      }
      Enter(my, Phase::kAwake);
      ring_.readers.Leave(Region(), me.entry);
      if (is_timed) break;
    }
    ++ring_.polled;
    End(my);
  }

  void InterruptThread(int other) { Interrupt(Me(other).sleeper, Interruption::kOnce); }

 private:
  std::byte* Region() { return reinterpret_cast<std::byte*>(&ring_); }
  WaitNode& Me(int self) { return ring_.nodes[self]; }
  uint32_t Used() const { return ring_.head.Peek() - ring_.tail.Peek(); }
  bool IsReadable() const { return Used() != 0 || ring_.open_writers == 0; }
  // Only with the torn read does anybody look at them outside the mutex.
  void SetHead(uint32_t value) { Set(ring_.head, value); }
  void SetTail(uint32_t value) { Set(ring_.tail, value); }
  void Set(AtomicWord& word, uint32_t value) {
    if (planted_ == Planted::kTornRead) {
      word.store(value);
    } else {
      std::memcpy(static_cast<void*>(&word), &value, sizeof(value));
    }
  }

  Locals& Begin(int self) {
    Locals& my = ring_.locals[self];
    const uint32_t round = my.round + 1;
    my = Locals();
    my.round = round;
    ForgetHistory();
    return my;
  }
  void Leave(Locals& my, Phase phase) {
    my.phase = phase;
    mutex_.Unlock();
    ForgetHistory();
  }
  void Enter(Locals& my, Phase phase) {
    my.phase = phase;
    ForgetHistory();
    mutex_.Lock();
  }
  void End(Locals& my) {
    Leave(my, Phase::kFlushing);
    if (planted_ != Planted::kForgetsFlush) my.wakes.Flush();
    my.phase = Phase::kDone;
    ForgetHistory();
  }

  void Sleep(int self, WaitQueue& queue) {
    WaitNode& me = Me(self);
    Locals& my = ring_.locals[self];
    if (planted_ == Planted::kSleepsWithoutRecheck) {
      mutex_.Unlock();
      mutex_.Lock();
    }
    me.sleeper.Prepare();
    queue.Join(Region(), me.sleeper, me.entry, WaitKind::kExclusive);
    Leave(my, Phase::kAsleep);
    my.wakes.Flush();
    for (;;) {
      SleepUntilWoken(me.sleeper);
      if (planted_ != Planted::kTornRead || &queue != &ring_.writers) break;
      // Goes back to sleep where the two halves, each of another moment, say that it is full.
      const uint32_t tail = ring_.tail.load();
      const uint32_t head = ring_.head.load();
      if (head - tail < ring_.capacity) break;
      mutex_.Lock();
      queue.Leave(Region(), me.entry);
      me.sleeper.Prepare();
      queue.Join(Region(), me.sleeper, me.entry, WaitKind::kExclusive);
      mutex_.Unlock();
    }
    Enter(my, Phase::kAwake);
    queue.Leave(Region(), me.entry);
  }

  const uint32_t capacity_;
  const uint32_t open_writers_;
  const Planted planted_;
  SharedRing ring_;
  ModelMutex mutex_;
};

}  // namespace pipeyard::memory::model
