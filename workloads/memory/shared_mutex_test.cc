#include "workloads/memory/shared_mutex.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <new>
#include <thread>
#include <vector>

#include "workloads/memory/testing.h"

namespace pipeyard::memory {
namespace {

// Takes the lock and leaves it to the end of the thread or process.
void TakeForGood(SharedMutex& mutex) NO_THREAD_SAFETY_ANALYSIS { static_cast<void>(mutex.Lock()); }

// SHARED
struct Guarded {
  SharedMutex mutex;
  SharedMutex other;
  std::atomic<uint32_t> step;
  uint64_t value;  // plain: the mutex must order it
};

class SharedMutexTest : public ::testing::Test {
 protected:
  SharedMutexTest() {
    void* memory =
        ::mmap(nullptr, sizeof(Guarded), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    guarded_ = new (memory) Guarded{};
  }
  ~SharedMutexTest() override { ::munmap(guarded_, sizeof(Guarded)); }

  // Runs `body` in a forked child and returns the child's exit code.
  template <typename Body>
  static int InChild(const Body& body) {
    const pid_t child = ::fork();
    if (child == 0) {
      body();
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return status;
  }

  Guarded* guarded_;
};

TEST_F(SharedMutexTest, ZeroBytesAreAnUnlockedMutex) {
  const LockOutcome outcome = guarded_->mutex.Lock();

  EXPECT_FALSE(outcome.is_owner_dead);
  EXPECT_FALSE(outcome.was_contended);
  EXPECT_TRUE(guarded_->mutex.IsLocked());
  guarded_->mutex.Unlock();
  EXPECT_FALSE(guarded_->mutex.IsLocked());
}

TEST_F(SharedMutexTest, ThreadsExcludeOneAnother) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 5000;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([this] {
      for (int round = 0; round < kRounds; ++round) {
        static_cast<void>(guarded_->mutex.Lock());
        ++guarded_->value;
        guarded_->mutex.Unlock();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(guarded_->value, uint64_t{kThreads} * kRounds);
}

TEST_F(SharedMutexTest, ProcessesExcludeOneAnother) {
  constexpr int kProcesses = 3;
  constexpr int kRounds = 5000;
  for (int i = 0; i < kProcesses; ++i) {
    if (::fork() == 0) {
      for (int round = 0; round < kRounds; ++round) {
        static_cast<void>(guarded_->mutex.Lock());
        ++guarded_->value;
        guarded_->mutex.Unlock();
      }
      ::_exit(0);
    }
  }
  for (int i = 0; i < kProcesses; ++i) ::wait(nullptr);

  EXPECT_EQ(guarded_->value, uint64_t{kProcesses} * kRounds);
}

TEST_F(SharedMutexTest, IsWantedByWhoeverHoldsItAndByNobodyAfterContention) {
  EXPECT_FALSE(guarded_->mutex.IsWanted());
  static_cast<void>(guarded_->mutex.Lock());
  EXPECT_TRUE(guarded_->mutex.IsWanted());
  guarded_->mutex.Unlock();

  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this] {
      for (int n = 0; n < 20'000; ++n) {
        static_cast<void>(guarded_->mutex.Lock());
        ++guarded_->value;
        guarded_->mutex.Unlock();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(guarded_->value, 80'000u);
  EXPECT_FALSE(guarded_->mutex.IsWanted());
}

TEST_F(SharedMutexTest, TryLockTakesAFreeLockAndLeavesATakenOne) {
  LockOutcome outcome;
  ASSERT_TRUE(guarded_->mutex.TryLock(outcome));
  EXPECT_FALSE(outcome.is_owner_dead);
  EXPECT_NE(InChild([&]() NO_THREAD_SAFETY_ANALYSIS {
              LockOutcome other;
              if (guarded_->mutex.TryLock(other)) ::_exit(0);
              ::_exit(1);
            }),
            0);
  guarded_->mutex.Unlock();
  EXPECT_FALSE(guarded_->mutex.IsLocked());
}

TEST_F(SharedMutexTest, TryLockReportsADeathAndItsOwnIsReported) {
  EXPECT_EQ(InChild([&]() NO_THREAD_SAFETY_ANALYSIS {
              LockOutcome outcome;
              static_cast<void>(guarded_->mutex.TryLock(outcome));
            }),
            0);
  LockOutcome outcome;
  ASSERT_TRUE(guarded_->mutex.TryLock(outcome));
  EXPECT_TRUE(outcome.is_owner_dead);
  guarded_->mutex.Unlock();
}

TEST_F(SharedMutexTest, AWaiterGetsTheLockWhenItIsFree) {
  static_cast<void>(guarded_->mutex.Lock());
  LockOutcome outcome;
  std::thread waiter([&] {
    guarded_->step.store(1);
    outcome = guarded_->mutex.Lock();
    guarded_->mutex.Unlock();
  });
  const bool has_begun = Eventually([&] { return guarded_->step.load() == 1; });
  guarded_->mutex.Unlock();
  waiter.join();

  EXPECT_TRUE(has_begun);
  EXPECT_FALSE(outcome.is_owner_dead);
  EXPECT_FALSE(guarded_->mutex.IsLocked());
}

TEST_F(SharedMutexTest, DeathOfAProcessThatHoldsItIsReportedForEver) {
  ASSERT_EQ(InChild([&] { TakeForGood(guarded_->mutex); }), 0);

  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(guarded_->mutex.Lock().is_owner_dead);
    guarded_->mutex.Unlock();
  }
}

TEST_F(SharedMutexTest, DeathOfAThreadThatHoldsItIsReported) {
  std::thread([this] { TakeForGood(guarded_->mutex); }).join();
  // The kernel marks the lock when the thread really ends, which may be after join() returned.
  ASSERT_TRUE(Eventually([&] { return !guarded_->mutex.IsLocked(); }));

  EXPECT_TRUE(guarded_->mutex.Lock().is_owner_dead);
  guarded_->mutex.Unlock();
}

TEST_F(SharedMutexTest, DeathWakesWhoeverWaits) {
  const pid_t child = ::fork();
  if (child == 0) {
    TakeForGood(guarded_->mutex);
    guarded_->step.store(1);
    while (guarded_->step.load() != 2) ::sched_yield();
    ::_exit(0);
  }
  ASSERT_TRUE(Eventually([&] { return guarded_->step.load() == 1; }));
  LockOutcome outcomes[2];
  std::vector<std::thread> waiters;
  for (LockOutcome& outcome : outcomes) {
    waiters.emplace_back([&outcome, this] {
      outcome = guarded_->mutex.Lock();
      guarded_->mutex.Unlock();
    });
  }
  guarded_->step.store(2);
  for (std::thread& waiter : waiters) waiter.join();
  ::waitpid(child, nullptr, 0);

  EXPECT_TRUE(outcomes[0].is_owner_dead);
  EXPECT_TRUE(outcomes[1].is_owner_dead);
}

TEST_F(SharedMutexTest, AnOrderlyEndLeavesNoMark) {
  ASSERT_EQ(InChild([&] {
              static_cast<void>(guarded_->mutex.Lock());
              static_cast<void>(guarded_->other.Lock());
              // Not in the order of a stack.
              guarded_->mutex.Unlock();
              guarded_->other.Unlock();
            }),
            0);

  EXPECT_FALSE(guarded_->mutex.Lock().is_owner_dead);
  guarded_->mutex.Unlock();
  EXPECT_FALSE(guarded_->other.Lock().is_owner_dead);
  guarded_->other.Unlock();
}

TEST_F(SharedMutexTest, DeathWithTwoLocksMarksBoth) {
  ASSERT_EQ(InChild([&] {
              TakeForGood(guarded_->mutex);
              TakeForGood(guarded_->other);
            }),
            0);

  EXPECT_TRUE(guarded_->mutex.Lock().is_owner_dead);
  EXPECT_TRUE(guarded_->other.Lock().is_owner_dead);
  guarded_->other.Unlock();
  guarded_->mutex.Unlock();
}

TEST_F(SharedMutexTest, AForkedChildLocksUnderItsOwnName) {
  // The parent has registered; its child must not write the parent's id into the word.
  static_cast<void>(guarded_->mutex.Lock());
  guarded_->mutex.Unlock();
  ASSERT_EQ(InChild([&] { TakeForGood(guarded_->mutex); }), 0);

  EXPECT_TRUE(guarded_->mutex.Lock().is_owner_dead);
  guarded_->mutex.Unlock();
}

}  // namespace
}  // namespace pipeyard::memory
