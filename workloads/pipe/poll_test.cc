// poll (kernel-mechanisms.md A5) and its wake-ups (A4), as facts.

#include "workloads/pipe/poll.h"

#include <errno.h>
#include <gtest/gtest.h>

#include <atomic>

#include "workloads/pipe/testing.h"
#include "workloads/pipe/watch.h"

namespace pipeyard::pipe {
namespace {

constexpr Nanos kForever{-1};

uint16_t Look(TestEngine& engine, PipeEnd end, uint16_t events = kPollIn | kPollOut) {
  PollEntry entry{engine.pipe(), end, events};
  const int ready = Poll(engine.worker(), {&entry, 1}, Nanos(0));
  EXPECT_EQ(ready, entry.revents != 0 ? 1 : 0);
  return entry.revents;
}

TEST(Poll, ReportsWhatTheKernelReports) {
  TestEngine engine;
  EXPECT_EQ(Look(engine, PipeEnd::kRead), 0);
  EXPECT_EQ(Look(engine, PipeEnd::kWrite), kPollOut);
  engine.Write(10);
  EXPECT_EQ(Look(engine, PipeEnd::kRead), kPollIn);
  EXPECT_EQ(Look(engine, PipeEnd::kRead, 0), 0) << "not asked for";
  engine.pipe().CloseWriter(engine.worker());
  EXPECT_EQ(Look(engine, PipeEnd::kRead), 0x11) << "data left, no writer";
  engine.Read(10);
  EXPECT_EQ(Look(engine, PipeEnd::kRead), 0x10) << "drained";
  EXPECT_EQ(Look(engine, PipeEnd::kRead, 0), 0x10) << "hang-up comes unasked";
  engine.pipe().OpenWriter(engine.worker());
  engine.pipe().CloseReader(engine.worker());
  EXPECT_EQ(Look(engine, PipeEnd::kWrite), 0x0c) << "room, no reader";
  EXPECT_EQ(Look(engine, PipeEnd::kWrite, 0), 0x08) << "the error comes unasked";
}

TEST(Poll, WritableMeansAFreeSlotNotThatBytesFit) {
  TestEngine engine;
  engine.Write(15 * kPage);
  EXPECT_EQ(Look(engine, PipeEnd::kWrite), kPollOut);
  engine.Write(4000);

  EXPECT_EQ(Look(engine, PipeEnd::kWrite), 0);
  EXPECT_EQ(engine.Write(96), 96);
}

TEST(Poll, AnEntryWithoutPipeIsPassedOver) {
  TestEngine engine;
  engine.Write(1);
  PollEntry entries[] = {{{}, PipeEnd::kRead, kPollIn}, {engine.pipe(), PipeEnd::kRead, kPollIn}};

  EXPECT_EQ(Poll(engine.worker(), entries, kForever), 1);
  EXPECT_EQ(entries[0].revents, 0);
}

TEST(Poll, TooManyEntriesAreRefused) {
  TestEngine engine;
  std::vector<PollEntry> entries(kMaxPollEntries + 1);

  EXPECT_EQ(Poll(engine.worker(), entries, Nanos(0)), -EINVAL);
}

TEST(Poll, ReturnsNothingWhenTheTimeRanOut) {
  TestEngine engine;
  PollEntry entry{engine.pipe(), PipeEnd::kRead, kPollIn};

  EXPECT_EQ(Poll(engine.worker(), {&entry, 1}, Milliseconds(1)), 0);
  EXPECT_EQ(engine.pipe().CountWaitingReaders(), 0);
  EXPECT_EQ(engine.Count(Counter::kPollSleeps), 1u);
}

// The deadline ran over, and the poll returned at once.
TEST(Poll, TheLongestTimeoutEndedAtOnce) {
  TestEngine engine;
  int result = 0;
  PollEntry entry{engine.pipe(), PipeEnd::kRead, kPollIn};
  std::thread poller([&] { result = Poll(engine.worker(1), {&entry, 1}, Nanos::max()); });
  EXPECT_TRUE(memory::Eventually([&] { return engine.pipe().CountWaitingReaders() == 1; }));
  engine.Write(1);
  poller.join();

  EXPECT_EQ(result, 1);
}

TEST(Poll, AnInterruptedPollSaysSo) {
  TestEngine engine;
  int result = 0;
  std::thread poller([&] {
    PollEntry entry{engine.pipe(), PipeEnd::kRead, kPollIn};
    result = Poll(engine.worker(1), {&entry, 1}, kForever);
  });
  ASSERT_TRUE(memory::Eventually([&] { return engine.pipe().CountWaitingReaders() == 1; }));
  engine.worker(1).Interrupt();
  poller.join();

  EXPECT_EQ(result, -EINTR);
  EXPECT_EQ(engine.pipe().CountWaitingReaders(), 0);
}

TEST(Poll, OneWriteWakesEveryPoller) {
  TestEngine::Options options;
  options.workers = 5;
  TestEngine engine(options);
  std::vector<std::thread> pollers;
  std::atomic<int> num_ready{0};
  for (int i = 1; i <= 4; ++i) {
    pollers.emplace_back([&, i] {
      PollEntry entry{engine.pipe(), PipeEnd::kRead, kPollIn};
      num_ready += Poll(engine.worker(i), {&entry, 1}, kForever);
    });
  }
  ASSERT_TRUE(memory::Eventually([&] { return engine.pipe().CountWaitingReaders() == 4; }));
  engine.Write(1);
  for (std::thread& poller : pollers) poller.join();

  EXPECT_EQ(num_ready.load(), 4);
}

TEST(Poll, WaitsForSeveralPipesAtOnce) {
  TestEngine::Options options;
  options.change = [](EngineSetup& setup) { setup.pipes.resize(3); };
  TestEngine engine(options);
  Engine& e = engine.engine();
  for (int wakes = 0; wakes < 3; ++wakes) {
    PollEntry entries[] = {{e.pipe(0), PipeEnd::kRead, kPollIn},
                           {e.pipe(1), PipeEnd::kRead, kPollIn},
                           {e.pipe(2), PipeEnd::kRead, kPollIn}};
    int result = 0;
    std::thread poller([&] { result = Poll(e.worker(1), entries, kForever); });
    ASSERT_TRUE(memory::Eventually([&] { return e.pipe(2).CountWaitingReaders() == 1; }));
    e.pipe(wakes).Write(e.worker(0), "x", 1);
    poller.join();
    char byte = 0;
    e.pipe(wakes).Read(e.worker(0), &byte, 1);

    EXPECT_EQ(result, 1);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(entries[i].revents, i == wakes ? kPollIn : 0);
      EXPECT_EQ(e.pipe(i).CountWaitingReaders(), 0);
    }
  }
}

// After the kernel had split the queue in two, who waited on one of them was missed by wake-ups of
// the other. One call that waits for both ends must be reached through either.
TEST(Poll, H4_AWaiterOfBothQueuesIsReachedThroughEither) {
  for (const bool through_reading : {false, true}) {
    TestEngine engine;
    if (through_reading) engine.Write(16 * kPage);
    const uint16_t in = through_reading ? 0 : kPollIn;
    const uint16_t out = through_reading ? kPollOut : 0;
    PollEntry entries[] = {{engine.pipe(), PipeEnd::kRead, in},
                           {engine.pipe(), PipeEnd::kWrite, out}};
    int result = 0;
    std::thread poller([&] { result = Poll(engine.worker(1), entries, kForever); });
    ASSERT_TRUE(memory::Eventually([&] {
      return engine.pipe().CountWaitingReaders() + engine.pipe().CountWaitingWriters() == 2;
    }));
    if (through_reading) {
      engine.Read(kPage);
    } else {
      engine.Write(1);
    }
    poller.join();

    EXPECT_EQ(result, 1);
    EXPECT_EQ(entries[through_reading ? 1 : 0].revents, through_reading ? kPollOut : kPollIn);
  }
}

TEST(Poll, TheLastCloseEndsAPoll) {
  TestEngine engine;
  PollEntry entry{engine.pipe(), PipeEnd::kRead, kPollIn};
  std::thread poller([&] { Poll(engine.worker(1), {&entry, 1}, kForever); });
  ASSERT_TRUE(memory::Eventually([&] { return engine.pipe().CountWaitingReaders() == 1; }));
  engine.pipe().CloseWriter(engine.worker());
  poller.join();

  EXPECT_EQ(entry.revents, kPollHup);
}

TEST(Poll, APollerThatWasWokenForNothingSleepsOn) {
  TestEngine engine;
  PollEntry entry{engine.pipe(), PipeEnd::kWrite, kPollOut};
  engine.Write(16 * kPage);
  std::thread poller([&] { Poll(engine.worker(1), {&entry, 1}, kForever); });
  ASSERT_TRUE(memory::Eventually([&] { return engine.pipe().CountWaitingWriters() == 1; }));
  // Freed and taken again before the poller can look.
  PipeInfo& info = engine.pipe().info();
  static_cast<void>(info.mutex.Lock());
  memory::PendingWakes wakes;
  info.writers_waiting.WakeOne(engine.engine().region().base(), wakes);
  info.mutex.Unlock();
  wakes.Flush();
  ASSERT_TRUE(memory::Eventually([&] {
    return engine.Count(Counter::kPollSleeps) == 2 && engine.pipe().CountWaitingWriters() == 1;
  }));
  engine.Read(kPage);
  poller.join();

  EXPECT_EQ(entry.revents, kPollOut);
}

// Who is woken by a write into a pipe with data (A4).
TEST(PollWakeup, DecidesWhichWritesWakeReaders) {
  enum class Before { kNothing, kPoll, kEdgeWatch };
  struct Case {
    PollWakeup rule;
    Before before;
    uint64_t woken;
  };
  const Case cases[] = {
      {PollWakeup::kPollUsage, Before::kNothing, 0},
      {PollWakeup::kPollUsage, Before::kPoll, 1},
      {PollWakeup::kPollUsage, Before::kEdgeWatch, 2},  // the watch itself and the waiter
      {PollWakeup::kNone, Before::kNothing, 0},
      {PollWakeup::kNone, Before::kPoll, 0},
      {PollWakeup::kNone, Before::kEdgeWatch, 0},
      {PollWakeup::kEdgeConsumers, Before::kNothing, 0},
      {PollWakeup::kEdgeConsumers, Before::kPoll, 0},
      {PollWakeup::kEdgeConsumers, Before::kEdgeWatch, 2},
  };
  for (const Case& c : cases) {
    TestEngine::Options options;
    options.change = [&](EngineSetup& setup) { setup.config.poll_wakeup = c.rule; };
    TestEngine engine(options);
    engine.Write(1);
    WatchSet watches(engine.worker());
    if (c.before == Before::kPoll) Look(engine, PipeEnd::kWrite);
    if (c.before == Before::kEdgeWatch) {
      watches.Add(engine.pipe(), PipeEnd::kRead, kPollIn, WatchTrigger::kEdge, 0);
    }
    engine.QueueWaiter(1, PipeEnd::kRead);
    const uint64_t before = engine.Count(Counter::kReaderWakeups);
    engine.Write(1);

    EXPECT_EQ(engine.Count(Counter::kReaderWakeups) - before, c.woken)
        << PollWakeupName(c.rule) << " " << static_cast<int>(c.before);
    engine.UnqueueWaiter(1, PipeEnd::kRead);
  }
}

}  // namespace
}  // namespace pipeyard::pipe
