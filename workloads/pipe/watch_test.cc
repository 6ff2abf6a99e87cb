// Watches (epoll), by level and by edge, under each wake-up rule (kernel-mechanisms.md A4, H6).

#include "workloads/pipe/watch.h"

#include <errno.h>
#include <gtest/gtest.h>

#include <atomic>

#include "workloads/pipe/testing.h"

namespace pipeyard::pipe {
namespace {

constexpr Nanos kForever{-1};

TestEngine::Options With(PollWakeup poll_wakeup) {
  TestEngine::Options options;
  options.change = [poll_wakeup](EngineSetup& setup) { setup.config.poll_wakeup = poll_wakeup; };
  return options;
}

// Events of one look; 0 for none.
uint16_t Look(WatchSet& watches) {
  WatchSet::Event event;
  return watches.Wait({&event, 1}, Nanos(0)) == 1 ? event.events : 0;
}

TEST(WatchSet, ALevelIsReportedUntilItIsGone) {
  TestEngine engine;
  WatchSet watches(engine.worker());
  ASSERT_EQ(watches.Add(engine.pipe(), PipeEnd::kRead, kPollIn, WatchTrigger::kLevel, 7), 0);
  EXPECT_EQ(Look(watches), 0);
  engine.Write(2);
  EXPECT_EQ(Look(watches), kPollIn);
  engine.Read(1);
  EXPECT_EQ(Look(watches), kPollIn);
  engine.Read(1);
  EXPECT_EQ(Look(watches), 0);
}

TEST(WatchSet, AnEdgeIsReportedOnce) {
  TestEngine engine;
  WatchSet watches(engine.worker());
  engine.Write(1);
  ASSERT_EQ(watches.Add(engine.pipe(), PipeEnd::kRead, kPollIn, WatchTrigger::kEdge, 7), 0);
  EXPECT_EQ(Look(watches), kPollIn) << "what holds when it is added counts";
  EXPECT_EQ(Look(watches), 0);
  engine.Read(1);
  engine.Write(1);
  EXPECT_EQ(Look(watches), kPollIn);
}

// Writes woke only on the step from empty to not empty; programs that read once for each event
// stopped hearing of later writes.
TEST(WatchSet, H6_ASecondWriteWithoutAReadWasNotReported) {
  struct Case {
    PollWakeup rule;
    uint16_t second;
  };
  for (const Case& c : {Case{PollWakeup::kPollUsage, kPollIn}, Case{PollWakeup::kNone, 0},
                        Case{PollWakeup::kEdgeConsumers, kPollIn}}) {
    TestEngine engine(With(c.rule));
    WatchSet watches(engine.worker());
    watches.Add(engine.pipe(), PipeEnd::kRead, kPollIn, WatchTrigger::kEdge, 0);
    engine.Write(1);
    EXPECT_EQ(Look(watches), kPollIn) << PollWakeupName(c.rule);
    for (int i = 0; i < 3; ++i) {
      engine.Write(1);
      EXPECT_EQ(Look(watches), c.second) << PollWakeupName(c.rule);
    }
  }
}

TEST(WatchSet, TheLastEdgeConsumerTakesTheRuleAway) {
  TestEngine engine(With(PollWakeup::kEdgeConsumers));
  WatchSet level(engine.worker(0));
  level.Add(engine.pipe(), PipeEnd::kWrite, kPollOut, WatchTrigger::kLevel, 0);
  {
    WatchSet edge(engine.worker(1));
    edge.Add(engine.pipe(), PipeEnd::kRead, kPollIn, WatchTrigger::kEdge, 0);
    EXPECT_EQ(engine.pipe().info().wakes_every_write, 1u);
  }
  EXPECT_EQ(engine.pipe().info().wakes_every_write, 0u);
}

TEST(WatchSet, RoomIsAnEdgeOnlyWhenThePipeWasFull) {
  TestEngine engine;
  WatchSet watches(engine.worker());
  watches.Add(engine.pipe(), PipeEnd::kWrite, kPollOut, WatchTrigger::kEdge, 0);
  EXPECT_EQ(Look(watches), kPollOut);
  engine.Write(16 * kPage);
  EXPECT_EQ(Look(watches), 0);
  engine.Read(kPage);
  EXPECT_EQ(Look(watches), kPollOut) << "from full to not full";
  engine.Read(kPage);
  EXPECT_EQ(Look(watches), 0) << "it was not full";
}

TEST(WatchSet, TheLastCloseIsReported) {
  TestEngine engine;
  WatchSet watches(engine.worker());
  watches.Add(engine.pipe(), PipeEnd::kRead, kPollIn, WatchTrigger::kEdge, 0);
  engine.pipe().CloseWriter(engine.worker());

  EXPECT_EQ(Look(watches), kPollHup);
}

TEST(WatchSet, TellsWatchesApartAndStarvesNone) {
  TestEngine::Options options;
  options.change = [](EngineSetup& setup) { setup.pipes.resize(3); };
  TestEngine engine(options);
  WatchSet watches(engine.worker());
  for (int i = 0; i < 3; ++i) {
    watches.Add(engine.engine().pipe(i), PipeEnd::kRead, kPollIn, WatchTrigger::kLevel,
                static_cast<uint64_t>(100 + i));
    engine.engine().pipe(i).Write(engine.worker(), "x", 1);
  }
  WatchSet::Event one;
  int seen[3] = {};
  for (int i = 0; i < 6; ++i) {
    ASSERT_EQ(watches.Wait({&one, 1}, kForever), 1);
    ++seen[one.tag - 100];
  }
  WatchSet::Event all[8];

  for (const int count : seen) EXPECT_EQ(count, 2);
  EXPECT_EQ(watches.Wait(all, kForever), 3);
}

TEST(WatchSet, AWaitSleepsUntilAWriteComes) {
  TestEngine engine;
  WatchSet::Event event;
  int result = 0;
  std::atomic<bool> is_added{false};
  std::thread waiter([&] {
    WatchSet watches(engine.worker(1));
    watches.Add(engine.pipe(), PipeEnd::kRead, kPollIn, WatchTrigger::kEdge, 5);
    is_added = true;
    result = watches.Wait({&event, 1}, kForever);
  });
  ASSERT_TRUE(
      memory::Eventually([&] { return is_added && engine.Count(Counter::kWatchSleeps) == 1; }));
  engine.Write(1);
  waiter.join();

  EXPECT_EQ(result, 1);
  EXPECT_EQ(event.tag, 5u);
  EXPECT_EQ(engine.pipe().CountWaitingReaders(), 0);
}

TEST(WatchSet, AWaitEndsWithItsTimeOrAnInterruption) {
  TestEngine engine;
  WatchSet watches(engine.worker());
  WatchSet::Event event;
  watches.Add(engine.pipe(), PipeEnd::kRead, kPollIn, WatchTrigger::kLevel, 0);

  EXPECT_EQ(watches.Wait({&event, 1}, Milliseconds(1)), 0);
  engine.worker().Interrupt();
  EXPECT_EQ(watches.Wait({&event, 1}, kForever), -EINTR);
}

TEST(WatchSet, AWatchDoesNotDisturbTheWorkersOtherWaits) {
  TestEngine::Options options;
  options.change = [](EngineSetup& setup) { setup.pipes.resize(2); };
  TestEngine engine(options);
  Pipe& watched = engine.engine().pipe(0);
  Pipe& other = engine.engine().pipe(1);
  WatchSet watches(engine.worker(1));
  watches.Add(watched, PipeEnd::kRead, kPollIn, WatchTrigger::kEdge, 0);
  int64_t result = 0;
  std::thread reader([&] {
    char byte = 0;
    result = other.Read(engine.worker(1), &byte, 1).bytes;
  });
  ASSERT_TRUE(memory::Eventually([&] { return other.CountWaitingReaders() == 1; }));
  engine.Write(1);
  other.Write(engine.worker(0), "x", 1);
  reader.join();

  EXPECT_EQ(result, 1);
  EXPECT_EQ(Look(watches), kPollIn);
}

TEST(WatchSet, SaysWhatCannotBe) {
  TestEngine engine;
  Worker& worker = engine.worker();
  WatchSet watches(worker);
  const auto add = [&](Pipe& pipe) {
    return watches.Add(pipe, PipeEnd::kRead, kPollIn, WatchTrigger::kLevel, 0);
  };
  EXPECT_EQ(watches.Remove(engine.pipe(), PipeEnd::kRead), ENOENT);
  EXPECT_EQ(add(engine.pipe()), 0);
  EXPECT_EQ(add(engine.pipe()), EEXIST);
  EXPECT_EQ(watches.Remove(engine.pipe(), PipeEnd::kWrite), ENOENT);
  std::vector<Pipe> pipes;
  for (uint32_t i = 1; i < kMaxWatches; ++i) {
    pipes.push_back(engine.engine().CreatePipe(worker).pipe);
    EXPECT_EQ(add(pipes.back()), 0);
  }
  pipes.push_back(engine.engine().CreatePipe(worker).pipe);
  EXPECT_EQ(add(pipes.back()), ENOSPC);
  EXPECT_EQ(watches.Remove(engine.pipe(), PipeEnd::kRead), 0);
  EXPECT_EQ(add(pipes.back()), 0);
}

TEST(WatchSet, APipeThatEndsIsWatchedNoMore) {
  TestEngine engine;
  Pipe pipe = engine.engine().CreatePipe(engine.worker()).pipe;
  WatchSet watches(engine.worker());
  watches.Add(pipe, PipeEnd::kRead, kPollIn, WatchTrigger::kEdge, 0);
  pipe.CloseWriter(engine.worker());
  EXPECT_EQ(Look(watches), kPollHup);
  pipe.CloseReader(engine.worker());

  EXPECT_EQ(watches.Remove(pipe, PipeEnd::kRead), ENOENT);
}

TEST(WatchSet, APipeThatEndedHasNothingToReport) {
  TestEngine engine;
  Pipe pipe = engine.engine().CreatePipe(engine.worker()).pipe;
  WatchSet watches(engine.worker());
  watches.Add(pipe, PipeEnd::kRead, kPollIn, WatchTrigger::kLevel, 0);
  pipe.CloseWriter(engine.worker());
  pipe.CloseReader(engine.worker());

  EXPECT_EQ(Look(watches), 0);
}

TEST(WatchSet, APipeWhereAWatchedOneLayCanBeWatched) {
  TestEngine engine;
  Pipe ended = engine.engine().CreatePipe(engine.worker()).pipe;
  WatchSet watches(engine.worker());
  watches.Add(ended, PipeEnd::kRead, kPollIn, WatchTrigger::kLevel, 1);
  ended.CloseWriter(engine.worker());
  ended.CloseReader(engine.worker());
  Pipe pipe = engine.engine().CreatePipe(engine.worker()).pipe;
  ASSERT_EQ(pipe.offset(), ended.offset());

  EXPECT_EQ(watches.Add(pipe, PipeEnd::kRead, kPollIn, WatchTrigger::kLevel, 2), 0);
  pipe.Write(engine.worker(), "x", 1);
  WatchSet::Event event;
  EXPECT_EQ(watches.Wait({&event, 1}, Nanos(0)), 1);
  EXPECT_EQ(event.tag, 2u);
}

}  // namespace
}  // namespace pipeyard::pipe
