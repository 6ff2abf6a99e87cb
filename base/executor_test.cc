#include "base/executor.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace pipeyard {
namespace {

TEST(SerialExecutor, RunsInOrderOfPosting) {
  std::vector<int> order;
  {
    SerialExecutor executor("test");
    for (int i = 0; i < 1'000; ++i) executor.Post([&order, i] { order.push_back(i); });
  }

  ASSERT_EQ(order.size(), 1'000u);
  for (int i = 0; i < 1'000; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

TEST(SerialExecutor, RunsOneAtATimeHoweverManyPost) {
  int count = 0;  // guarded by the executor alone: a second thread in it would be a race
  {
    SerialExecutor executor("test");
    std::vector<std::thread> posters;
    for (int t = 0; t < 4; ++t) {
      posters.emplace_back([&] {
        for (int i = 0; i < 1'000; ++i) executor.Post([&count] { ++count; });
      });
    }
    for (std::thread& poster : posters) poster.join();
  }

  EXPECT_EQ(count, 4'000);
}

TEST(SerialExecutor, TimerRunsAfterItsDelayAndPostsGoAhead) {
  Mutex mutex;
  CondVar ran;
  std::vector<int> order;
  SerialExecutor executor("test");
  const MonotonicTime start = SystemClock().Now();
  executor.PostAfter(Milliseconds(20), [&] {
    MutexLock lock(mutex);
    order.push_back(2);
    ran.NotifyOne();
  });
  executor.Post([&] {
    MutexLock lock(mutex);
    order.push_back(1);
  });

  MutexLock lock(mutex);
  while (order.size() < 2) ran.Wait(mutex);

  EXPECT_EQ(order, (std::vector<int>{1, 2}));
  EXPECT_GE(SystemClock().Now() - start, Milliseconds(20));
}

TEST(SerialExecutor, PostsThatGoOnDoNotKeepADueTimerWaiting) {
  Mutex mutex;
  CondVar ended;
  bool has_timer_run = false;
  bool has_ended = false;
  SerialExecutor executor("test");
  executor.PostAfter(Milliseconds(1), [&] { has_timer_run = true; });
  // Never without a post that waits, until the timer has run.
  const MonotonicTime give_up = SystemClock().Now() + Seconds(30);
  std::function<void()> again = [&] {
    if (!has_timer_run && SystemClock().Now() < give_up) return executor.Post(again);
    MutexLock lock(mutex);
    has_ended = true;
    ended.NotifyOne();
  };
  executor.Post(again);

  {
    MutexLock lock(mutex);
    while (!has_ended) ended.Wait(mutex);
  }
  executor.Stop();

  EXPECT_TRUE(has_timer_run);
}

TEST(SerialExecutor, ATaskThatIsDroppedMayPostWhenItGoes) {
  struct PostsWhenItGoes {
    explicit PostsWhenItGoes(Executor& given) : executor(given) {}
    ~PostsWhenItGoes() {
      executor.Post([] {});
    }
    Executor& executor;
  };
  SerialExecutor executor("test");
  const TimerId id =
      executor.PostAfter(Seconds(3600), [held = std::make_shared<PostsWhenItGoes>(executor)] {});
  executor.PostAfter(Seconds(3600), [held = std::make_shared<PostsWhenItGoes>(executor)] {});

  EXPECT_TRUE(executor.Cancel(id));
  executor.Stop();
}

TEST(SerialExecutor, CanceledTimerNeverRuns) {
  bool has_run = false;
  SerialExecutor executor("test");
  const TimerId id = executor.PostAfter(Seconds(3600), [&] { has_run = true; });

  EXPECT_TRUE(executor.Cancel(id));
  EXPECT_FALSE(executor.Cancel(id));
  executor.Stop();

  EXPECT_FALSE(has_run);
}

TEST(SerialExecutor, WhatIsPostedAfterStopIsDropped) {
  SerialExecutor executor("test");
  executor.Stop();
  executor.Post([] { FAIL() << "ran after Stop()"; });
  executor.Stop();
}

TEST(FakeExecutor, AdvanceRunsEachTimerAtItsTime) {
  FakeClock clock;
  FakeExecutor executor(clock);
  std::vector<Nanos> times;
  executor.PostAfter(Seconds(2), [&] { times.push_back(clock.Now()); });
  executor.PostAfter(Seconds(1), [&] {
    times.push_back(clock.Now());
    executor.PostAfter(Seconds(3), [&] { times.push_back(clock.Now()); });
  });

  executor.Advance(Seconds(5));

  EXPECT_EQ(times, (std::vector<Nanos>{Seconds(1), Seconds(2), Seconds(4)}));
  EXPECT_EQ(clock.Now(), Seconds(5));
}

}  // namespace
}  // namespace pipeyard
