// The death of a worker inside the engine: every later call says so, everybody is woken, nobody
// hangs.

#include <errno.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "workloads/pipe/testing.h"
#include "workloads/pipe/watch.h"

namespace pipeyard::pipe {
namespace {

constexpr Nanos kForever{-1};

// Runs `act` in a child that ends in it or after it.
template <typename Act>
void InChildThatDies(const Act& act) {
  const pid_t child = ::fork();
  if (child == 0) {
    act();
    ::_exit(0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
}

TestEngine::Options TwoPipes(int workers) {
  TestEngine::Options options;
  options.workers = workers;
  options.change = [](EngineSetup& setup) { setup.pipes.resize(2); };
  return options;
}

TEST(OwnerDeath, EveryCallOnThatPipeSaysSo) {
  TestEngine engine(TwoPipes(2));
  Worker& worker = engine.worker();
  Pipe& pipe = engine.pipe();
  WatchSet watches(worker);
  ASSERT_EQ(watches.Add(pipe, PipeEnd::kWrite, kPollOut, WatchTrigger::kLevel, 0), 0);
  engine.Write(10);
  InChildThatDies([&] { static_cast<void>(pipe.info().mutex.Lock()); });
  char byte = 0;
  PollEntry entry{pipe, PipeEnd::kRead, kPollIn};
  WatchSet::Event event;

  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(pipe.Write(worker, "x", 1).error, EOWNERDEAD);
    EXPECT_EQ(pipe.Read(worker, &byte, 1).error, EOWNERDEAD);
    EXPECT_EQ(pipe.Resize(worker, kPage), -EOWNERDEAD);
    EXPECT_EQ(pipe.QueuedBytes(worker), -EOWNERDEAD);
    EXPECT_EQ(Poll(worker, {&entry, 1}, kForever), -EOWNERDEAD);
    EXPECT_EQ(pipe.OpenReader(worker), EOWNERDEAD);
    EXPECT_EQ(pipe.OpenWriter(worker), EOWNERDEAD);
    EXPECT_EQ(pipe.CloseReader(worker), EOWNERDEAD);
    EXPECT_EQ(pipe.CloseWriter(worker), EOWNERDEAD);
    EXPECT_EQ(watches.Add(pipe, PipeEnd::kRead, kPollIn, WatchTrigger::kEdge, 0), EOWNERDEAD);
    EXPECT_EQ(pipe.CountWaitingReaders(), -EOWNERDEAD);
    EXPECT_EQ(pipe.CountWaitingWriters(), -EOWNERDEAD);
  }
  EXPECT_EQ(watches.Wait({&event, 1}, kForever), -EOWNERDEAD);
  EXPECT_EQ(watches.Remove(pipe, PipeEnd::kWrite), EOWNERDEAD);
}

TEST(OwnerDeath, EverybodyWhoWaitsAnywhereIsWoken) {
  TestEngine engine(TwoPipes(5));
  Pipe& broken = engine.engine().pipe(0);
  Pipe& sound = engine.engine().pipe(1);
  std::vector<std::thread> waiters;
  std::atomic<int> num_told{0};
  std::atomic<int> num_watching{0};
  waiters.emplace_back([&] {
    char byte = 0;
    if (broken.Read(engine.worker(1), &byte, 1).error == EOWNERDEAD) ++num_told;
  });
  waiters.emplace_back([&] {
    char byte = 0;
    if (sound.Read(engine.worker(2), &byte, 1).error == EOWNERDEAD) ++num_told;
  });
  waiters.emplace_back([&] {
    PollEntry entry{sound, PipeEnd::kRead, kPollIn};
    if (Poll(engine.worker(3), {&entry, 1}, kForever) == -EOWNERDEAD) ++num_told;
  });
  waiters.emplace_back([&] {
    WatchSet watches(engine.worker(4));
    watches.Add(sound, PipeEnd::kRead, kPollIn, WatchTrigger::kEdge, 0);
    ++num_watching;
    WatchSet::Event event;
    if (watches.Wait({&event, 1}, kForever) == -EOWNERDEAD) ++num_told;
  });
  ASSERT_TRUE(memory::Eventually([&] {
    return broken.CountWaitingReaders() == 1 && sound.CountWaitingReaders() == 3 &&
           engine.Count(Counter::kWatchSleeps) == 1;
  }));
  InChildThatDies([&] { static_cast<void>(broken.info().mutex.Lock()); });
  // Whoever comes next finds out and tells the others.
  EXPECT_EQ(broken.Write(engine.worker(0), "x", 1).error, EOWNERDEAD);
  for (std::thread& waiter : waiters) waiter.join();

  EXPECT_EQ(num_told.load(), 4);
}

TEST(OwnerDeath, InsideAListOfPipesEndsCreation) {
  TestEngine engine(TwoPipes(2));
  PipeList& list = engine.engine().environment().lists[0];
  InChildThatDies([&] { static_cast<void>(list.mutex.Lock()); });

  EXPECT_EQ(engine.engine().CreatePipe(engine.worker()).error, EOWNERDEAD);
}

// The census fails afterwards, so not with a TestEngine.
TEST(OwnerDeath, InsideTheFreePagesOfANodeIsNoWantOfMemory) {
  EngineSetup setup;
  setup.worker_cpus = {0, 1, 0};
  setup.pipes.resize(2);
  setup.page_bytes = kPage;
  Result<std::unique_ptr<Engine>> made = Engine::Create(setup, OneNodeHost());
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  Engine& engine = **made;
  Pipe& waited_for = engine.pipe(1);
  std::thread waiter([&] {
    char byte = 0;
    EXPECT_EQ(waited_for.Read(engine.worker(2), &byte, 1).error, EOWNERDEAD);
  });
  EXPECT_TRUE(memory::Eventually([&] { return waited_for.CountWaitingReaders() == 1; }));
  InChildThatDies([&] { static_cast<void>(engine.pages().node(0).lock_for_test().Lock()); });

  // A worker that has no pages at hand.
  EXPECT_EQ(engine.pipe(0).Write(engine.worker(1), "x", 1).error, EOWNERDEAD);
  waiter.join();
  EXPECT_EQ(engine.pipe(0).Resize(engine.worker(1), 64 * kPage), -EOWNERDEAD);
  EXPECT_EQ(engine.CheckConservation().message(),
            "page census: a worker died holding the lock of a node");
}

}  // namespace
}  // namespace pipeyard::pipe
