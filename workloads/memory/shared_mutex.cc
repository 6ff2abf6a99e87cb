#include "workloads/memory/shared_mutex.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>

#include "workloads/memory/futex.h"

namespace pipeyard::memory {
namespace {

// Of a lock that nobody has waited for yet.
constexpr uint32_t kFirstSpins = 100;
// A woken waiter that is killed before it asks again would leave the others asleep; so nobody
// sleeps longer than this.
constexpr Nanos kRecheckInterval = Milliseconds(100);

constexpr bool IsFree(uint32_t word) { return (word & FUTEX_TID_MASK) == 0; }

}  // namespace

// Longer than a 64 KiB copy under the lock takes (3 to 6 us), shorter than the sleep and wake-up
// that it saves (6 to 23 us across CPUs).
uint32_t SharedMutex::MaxSpins() {
  constexpr uint32_t kSpins = 400;
  static const bool has_one_cpu = ::sysconf(_SC_NPROCESSORS_ONLN) < 2;
  return has_one_cpu ? 0 : kSpins;
}

constinit thread_local ThreadRobustList t_robust_list{};

void SharedMutex::RegisterThread() {
  // The child of fork() inherits the parent's thread id and list in its copy of the thread-local:
  // register anew.
  static const int handler = ::pthread_atfork(nullptr, nullptr, [] {
    if (t_robust_list.thread_id != 0) RegisterThread();
  });
  static_cast<void>(handler);
  ThreadRobustList& thread = t_robust_list;
  thread.head.list.next = &thread.head.list;
  thread.head.futex_offset = static_cast<long>(offsetof(SharedMutex, word_)) -
                             static_cast<long>(offsetof(SharedMutex, link_));
  thread.head.list_op_pending = nullptr;
  thread.thread_id = static_cast<uint32_t>(::syscall(SYS_gettid));
  ::syscall(SYS_set_robust_list, &thread.head, sizeof(thread.head));
}

LockOutcome SharedMutex::LockSlowly(uint32_t thread_id) {
  LockOutcome outcome;
  uint32_t word = word_.load(std::memory_order_relaxed);
  // A dead owner's mark alone is no contention.
  outcome.was_contended = !IsFree(word);
  num_spinning_.fetch_add(1, std::memory_order_relaxed);
  const uint32_t learned = spin_limit_.load(std::memory_order_relaxed);
  const uint32_t limit = std::min(MaxSpins(), learned * 2 + kFirstSpins);
  uint32_t spins = 0;
  for (;;) {
    if (IsFree(word)) {
      if (word_.compare_exchange_weak(word, word | thread_id, std::memory_order_acquire,
                                      std::memory_order_relaxed)) {
        break;
      }
      continue;
    }
    if (spins == limit) break;
    ++spins;
    SpinPause();
    word = word_.load(std::memory_order_relaxed);
  }
  num_spinning_.fetch_sub(1, std::memory_order_relaxed);
  const bool is_acquired = IsFree(word);
  // A moving average over eight waits. A wait in vain counts in full: were it to shorten the next
  // one, a lock that is held for long would soon never be spun for, and each hand-over would cost a
  // sleep.
  const int32_t change = (static_cast<int32_t>(spins) - static_cast<int32_t>(learned)) / 8;
  spin_limit_.store(static_cast<uint16_t>(static_cast<int32_t>(learned) + change),
                    std::memory_order_relaxed);
  while (!is_acquired) {
    if (IsFree(word)) {
      // Others may sleep: only the one who unlocks can find out, so the mark is carried on.
      if (word_.compare_exchange_weak(word, word | thread_id | FUTEX_WAITERS,
                                      std::memory_order_acquire, std::memory_order_relaxed)) {
        break;
      }
      continue;
    }
    if ((word & FUTEX_WAITERS) != 0 ||
        word_.compare_exchange_weak(word, word | FUTEX_WAITERS, std::memory_order_relaxed)) {
      FutexWait(&word_, word | FUTEX_WAITERS, kRecheckInterval);
      word = word_.load(std::memory_order_relaxed);
    }
  }
  outcome.is_owner_dead = (word & FUTEX_OWNER_DIED) != 0;
  return outcome;
}

bool SharedMutex::TryLock(LockOutcome& outcome) {
  ThreadRobustList& thread = t_robust_list;
  if (thread.thread_id == 0) RegisterThread();
  // As Lock(), which says why.
  thread.head.list_op_pending = &link_;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  uint32_t word = word_.load(std::memory_order_relaxed);
  while (IsFree(word)) {
    if (!word_.compare_exchange_weak(word, word | thread.thread_id, std::memory_order_acquire,
                                     std::memory_order_relaxed)) {
      continue;
    }
    outcome.is_owner_dead = (word & FUTEX_OWNER_DIED) != 0;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    link_.next = thread.head.list.next;
    thread.head.list.next = &link_;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    thread.head.list_op_pending = nullptr;
    return true;
  }
  std::atomic_signal_fence(std::memory_order_seq_cst);
  thread.head.list_op_pending = nullptr;
  return false;
}

void SharedMutex::UnlockSlowly() {
  uint32_t word = word_.load(std::memory_order_relaxed);
  while (!word_.compare_exchange_weak(word, word & FUTEX_OWNER_DIED, std::memory_order_release,
                                      std::memory_order_relaxed)) {
  }
  if ((word & FUTEX_WAITERS) != 0) FutexWake(&word_, 1);
}

void SharedMutex::Unlink(ThreadRobustList& thread) {
  for (robust_list* entry = &thread.head.list; entry->next != &thread.head.list;
       entry = entry->next) {
    if (entry->next == &link_) {
      entry->next = link_.next;
      return;
    }
  }
}

}  // namespace pipeyard::memory
