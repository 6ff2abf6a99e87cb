#include "base/signals.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "base/mutex.h"

namespace pipeyard {
namespace {

TEST(SignalWatcher, WaitReturnsTheSignalInsteadOfEndingTheProcess) {
  SignalWatcher watcher;
  EXPECT_EQ(watcher.Wait(Nanos(0)), std::nullopt);

  ::kill(::getpid(), SIGTERM);

  EXPECT_EQ(watcher.Wait(Seconds(60)), SIGTERM);
}

TEST(SignalWatcher, CallbackRunsOnce) {
  Mutex mutex;
  CondVar called;
  int signal = 0;
  SignalWatcher watcher;
  watcher.OnSignal([&](int number) {
    MutexLock lock(mutex);
    signal = number;
    called.NotifyOne();
  });

  ::kill(::getpid(), SIGINT);

  MutexLock lock(mutex);
  while (signal == 0) called.Wait(mutex);
  EXPECT_EQ(signal, SIGINT);
}

TEST(SignalWatcher, CallsAgainAfterItWasStopped) {
  Mutex mutex;
  CondVar called;
  int second = 0;
  SignalWatcher watcher;
  watcher.OnSignal([](int) { FAIL() << "stopped before the signal"; });
  watcher.StopCalling();
  watcher.OnSignal([&](int number) {
    MutexLock lock(mutex);
    second = number;
    called.NotifyOne();
  });

  ::kill(::getpid(), SIGTERM);

  MutexLock lock(mutex);
  while (second == 0) called.Wait(mutex);
  EXPECT_EQ(second, SIGTERM);
}

TEST(DefaultEndingSignals, EndTheProcessThatWaitsForInput) {
  EXPECT_EXIT(
      {
        SignalWatcher watcher;
        const DefaultEndingSignals interruptible;
        ::kill(::getpid(), SIGINT);
        ::pause();
      },
      ::testing::KilledBySignal(SIGINT), "");
}

TEST(DefaultEndingSignals, AreWatchedAgainAfterIt) {
  SignalWatcher watcher;
  { const DefaultEndingSignals interruptible; }

  ::kill(::getpid(), SIGINT);

  EXPECT_EQ(watcher.Wait(Seconds(60)), SIGINT);
}

TEST(SignalWatcher, GoesQuietlyWithoutASignal) {
  SignalWatcher watcher;
  watcher.OnSignal([](int) { FAIL() << "nobody sent one"; });
}

}  // namespace
}  // namespace pipeyard
