// SharedMutex: a lock in the shared region that survives the death of its owner.
//
// The word holds the owner's thread id and two bits that the kernel knows (robust futexes,
// get_robust_list(2)): when a thread or process dies while it holds the lock, the kernel marks the
// word and wakes a waiter. Death is final: from then on every Lock() succeeds but reports
// kOwnerDied, because what the lock guards may be half written; mutual exclusion still holds, so
// the holder may mark it as broken. As the kernel's mutex spins while the owner runs, a waiter
// spins for a bounded time before it sleeps.
//
// It is not recursive, not fair, and no priority is inherited (PI futexes are 60 times slower
// contended). Thread safety: thread-safe. Ownership: lives in the region; all zero bytes is an
// unlocked mutex. Locks are released by the thread that took them. Each thread that locks replaces
// its glibc robust list, so pthread robust mutexes must not be mixed in. Cost: two atomic
// read-modify-writes a pair without contention; no system call unless somebody sleeps.
#pragma once

#include <linux/futex.h>

#include <atomic>
#include <cstdint>

#include "base/thread_annotations.h"
#include "workloads/memory/shared.h"

namespace pipeyard::memory {

struct LockOutcome {
  bool is_owner_dead = false;  // an earlier owner died holding it
  bool was_contended = false;  // it was not free at first sight
};

// What the kernel walks when this thread ends. A thread's own; registered at its first Lock().
struct ThreadRobustList {
  robust_list_head head;
  uint32_t thread_id;  // 0: not registered yet
};
extern constinit thread_local ThreadRobustList t_robust_list;

// SHARED
class CAPABILITY("mutex") SharedMutex {
 public:
  [[nodiscard]] LockOutcome Lock() ACQUIRE() {
    ThreadRobustList& thread = t_robust_list;
    if (thread.thread_id == 0) [[unlikely]]
      RegisterThread();
    // Between these two stores the kernel learns of the lock from list_op_pending, after them from
    // the list. Only the compiler must keep the order: the kernel reads on behalf of this very
    // thread.
    thread.head.list_op_pending = &link_;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    LockOutcome outcome;
    uint32_t word = 0;
    if (!word_.compare_exchange_strong(word, thread.thread_id, std::memory_order_acquire,
                                       std::memory_order_relaxed)) [[unlikely]] {
      outcome = LockSlowly(thread.thread_id);
    }
    std::atomic_signal_fence(std::memory_order_seq_cst);
    link_.next = thread.head.list.next;
    thread.head.list.next = &link_;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    thread.head.list_op_pending = nullptr;
    return outcome;
  }

  // False where somebody holds it; `outcome` is then left alone. Does not wait.
  [[nodiscard]] bool TryLock(LockOutcome& outcome) TRY_ACQUIRE(true);

  void Unlock() RELEASE() {
    ThreadRobustList& thread = t_robust_list;
    thread.head.list_op_pending = &link_;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (thread.head.list.next == &link_) [[likely]] {
      thread.head.list.next = link_.next;
    } else {
      Unlink(thread);
    }
    std::atomic_signal_fence(std::memory_order_seq_cst);
    // Release pairs with the acquire in Lock().
    uint32_t word = thread.thread_id;
    if (!word_.compare_exchange_strong(word, 0, std::memory_order_release,
                                       std::memory_order_relaxed)) [[unlikely]] {
      UnlockSlowly();
    }
    std::atomic_signal_fence(std::memory_order_seq_cst);
    thread.head.list_op_pending = nullptr;
  }

  // Whether anybody holds it at this moment; for tests and displays.
  bool IsLocked() const { return (word_.load(std::memory_order_relaxed) & FUTEX_TID_MASK) != 0; }

  // Whether somebody holds it or spins for it: whoever it is may soon do what the caller is about
  // to wait for. A spinner that was killed counts for ever; a hint.
  bool IsWanted() const { return IsLocked() || num_spinning_.load(std::memory_order_relaxed) != 0; }

  // Spins while somebody wants it and `is_over()` is false, at most as long as a waiter for the
  // mutex spins; not at all on one CPU, where whoever wants it cannot run meanwhile.
  template <typename IsOver>
  void SpinWhileWanted(const IsOver& is_over) const {
    const uint32_t limit = MaxSpins();
    for (uint32_t i = 0; i < limit && IsWanted() && !is_over(); ++i) SpinPause();
  }

  // Whether an owner died holding it, ever.
  bool HasDeadOwner() const {
    return (word_.load(std::memory_order_relaxed) & FUTEX_OWNER_DIED) != 0;
  }

 private:
  static void RegisterThread();
  // Upper bound of a spin, in pauses of 15 to 45 ns; 0 on one CPU.
  static uint32_t MaxSpins();
  LockOutcome LockSlowly(uint32_t thread_id);
  void UnlockSlowly();
  void Unlink(ThreadRobustList& thread);

  std::atomic<uint32_t> word_;
  // Pauses that a waiter spends before it sleeps, learned from how long the lock was waited for; a
  // hint, so races do no harm.
  std::atomic<uint16_t> spin_limit_;
  std::atomic<uint16_t> num_spinning_;
  // Of the owner's robust list: addresses of the owning process, read by nobody else.
  robust_list link_;
};
PIPEYARD_CHECK_SHARED(SharedMutex);

}  // namespace pipeyard::memory
