#include "workloads/memory/wait_queue.h"

#include "workloads/memory/futex.h"
#include "workloads/memory/monotonic.h"

namespace pipeyard::memory {
namespace {

template <typename T>
T& At(std::byte* region, WaitRef ref) {
  return *reinterpret_cast<T*>(region + static_cast<uint64_t>(ref) * kWaitRefUnit);
}

template <typename T>
WaitRef RefOf(const std::byte* region, const T& object) {
  return static_cast<WaitRef>((reinterpret_cast<const std::byte*>(&object) - region) /
                              static_cast<int64_t>(kWaitRefUnit));
}

// Returns true when the waiter sleeps in the kernel already, so that a system call is owed to it.
bool MarkWoken(Sleeper& sleeper) {
  // Release: the waiter sees what was done under the mutex. Acquire: pairs with the step to
  // kSleeping.
  return sleeper.state.exchange(Sleeper::kWoken, std::memory_order_acq_rel) == Sleeper::kSleeping;
}

bool BeginSleep(Sleeper& sleeper) {
  uint32_t state = Sleeper::kQueued;
  return sleeper.interruption.load(std::memory_order_seq_cst) == 0 &&
         sleeper.state.compare_exchange_strong(state, Sleeper::kSleeping,
                                               std::memory_order_acq_rel);
}

}  // namespace

int PendingWakes::Flush() {
  const int flushed = count_;
  for (int i = 0; i < flushed; ++i) FutexWake(words_[i], 1);
  count_ = 0;
  return flushed;
}

void WaitQueue::Join(std::byte* region, Sleeper& sleeper, WaitEntry& entry, WaitKind kind) {
  const WaitRef ref = RefOf(region, entry);
  entry.is_queued = 1;
  entry.kind = kind;
  entry.sleeper = RefOf(region, sleeper);
  entry.next = 0;
  entry.previous = 0;
  if (first_ == 0) {
    first_ = ref;
    last_ = ref;
  } else if (kind == WaitKind::kExclusive) {
    entry.previous = last_;
    At<WaitEntry>(region, last_).next = ref;
    last_ = ref;
  } else {
    entry.next = first_;
    At<WaitEntry>(region, first_).previous = ref;
    first_ = ref;
  }
}

void WaitQueue::Leave(std::byte* region, WaitEntry& entry) {
  if (entry.is_queued == 0) return;
  entry.is_queued = 0;
  if (entry.previous != 0) {
    At<WaitEntry>(region, entry.previous).next = entry.next;
  } else {
    first_ = entry.next;
  }
  if (entry.next != 0) {
    At<WaitEntry>(region, entry.next).previous = entry.previous;
  } else {
    last_ = entry.previous;
  }
}

int WaitQueue::WakeFirst(std::byte* region, PendingWakes& wakes) {
  int woken = 0;
  for (WaitRef ref = first_; ref != 0;) {
    auto& entry = At<WaitEntry>(region, ref);
    auto& sleeper = At<Sleeper>(region, entry.sleeper);
    const WaitKind kind = entry.kind;
    ref = entry.next;
    if (kind == WaitKind::kWatch) {
      entry.is_ready.store(1, std::memory_order_release);
    } else {
      Leave(region, entry);
    }
    ++woken;
    if (MarkWoken(sleeper)) {
      if (wakes.IsFull()) wakes.Flush();
      wakes.Add(&sleeper.state);
    }
    if (kind == WaitKind::kExclusive) break;
  }
  return woken;
}

int WaitQueue::WakeAll(std::byte* region) {
  int woken = 0;
  for (WaitRef ref = first_; ref != 0;) {
    auto& entry = At<WaitEntry>(region, ref);
    auto& sleeper = At<Sleeper>(region, entry.sleeper);
    ref = entry.next;
    if (entry.kind == WaitKind::kWatch) {
      entry.is_ready.store(1, std::memory_order_release);
    } else {
      Leave(region, entry);
    }
    ++woken;
    if (MarkWoken(sleeper)) FutexWake(&sleeper.state, 1);
  }
  return woken;
}

void WaitQueue::DismissAll(std::byte* region) {
  while (first_ != 0) Leave(region, At<WaitEntry>(region, first_));
}

int WaitQueue::CountWaiters(std::byte* region) const {
  int count = 0;
  for (WaitRef ref = first_; ref != 0; ref = At<WaitEntry>(region, ref).next) ++count;
  return count;
}

bool SleepUntilWoken(Sleeper& sleeper) {
  if (!BeginSleep(sleeper)) return false;
  do {
    FutexWait(&sleeper.state, Sleeper::kSleeping, Nanos(-1));
  } while (sleeper.state.load(std::memory_order_acquire) == Sleeper::kSleeping);
  return true;
}

bool SleepUntilWokenOr(Sleeper& sleeper, int64_t deadline_ns) {
  if (!BeginSleep(sleeper)) return false;
  do {
    const int64_t left_ns = deadline_ns - MonotonicNanos();
    if (left_ns <= 0) break;
    FutexWait(&sleeper.state, Sleeper::kSleeping, Nanos(left_ns));
  } while (sleeper.state.load(std::memory_order_acquire) == Sleeper::kSleeping);
  return true;
}

Interruption TakeInterruption(Sleeper& sleeper) {
  uint32_t how = static_cast<uint32_t>(Interruption::kOnce);
  if (sleeper.interruption.compare_exchange_strong(how, 0, std::memory_order_acq_rel)) {
    return Interruption::kOnce;
  }
  return static_cast<Interruption>(how);
}

bool IsInterrupted(const Sleeper& sleeper) {
  return sleeper.interruption.load(std::memory_order_relaxed) != 0;
}

void Interrupt(Sleeper& sleeper, Interruption how) {
  uint32_t present = sleeper.interruption.load(std::memory_order_relaxed);
  while (present < static_cast<uint32_t>(how) &&
         !sleeper.interruption.compare_exchange_weak(present, static_cast<uint32_t>(how),
                                                     std::memory_order_seq_cst)) {
  }
  if (sleeper.state.exchange(Sleeper::kWoken, std::memory_order_seq_cst) == Sleeper::kSleeping) {
    FutexWake(&sleeper.state, 1);
  }
}

}  // namespace pipeyard::memory
