// Who is woken by what: the table of kernel-mechanisms.md A4, first with waiters placed by hand
// (which no scheduling can disturb), then as the probes on the kernel were made, with threads.

#include <gtest/gtest.h>

#include <atomic>

#include "workloads/pipe/poll.h"
#include "workloads/pipe/testing.h"

namespace pipeyard::pipe {
namespace {

// Workers 1..3 wait for data, 4..6 for room, all exclusive; worker 0 acts.
class WakeUps : public EveryCache {
 protected:
  struct Woken {
    int readers;
    int writers;
    friend bool operator==(const Woken&, const Woken&) = default;
    friend void PrintTo(const Woken& woken, std::ostream* out) {
      *out << woken.readers << " readers, " << woken.writers << " writers";
    }
  };

  WakeUps() : engine_(Options()) {
    for (int i = 1; i <= 3; ++i) engine_.QueueWaiter(i, PipeEnd::kRead);
    for (int i = 4; i <= 6; ++i) engine_.QueueWaiter(i, PipeEnd::kWrite);
  }
  ~WakeUps() override {
    static_cast<void>(info().mutex.Lock());
    info().readers_waiting.WakeAll(engine_.engine().region().base());
    info().writers_waiting.WakeAll(engine_.engine().region().base());
    info().mutex.Unlock();
  }

  static TestEngine::Options Options() {
    TestEngine::Options options = WithCache();
    options.workers = 8;
    return options;
  }
  PipeInfo& info() { return engine_.pipe().info(); }
  template <typename Act>
  Woken WokenBy(const Act& act) {
    const Woken before{engine_.pipe().CountWaitingReaders(), engine_.pipe().CountWaitingWriters()};
    act();
    return {before.readers - engine_.pipe().CountWaitingReaders(),
            before.writers - engine_.pipe().CountWaitingWriters()};
  }

  TestEngine engine_;
};
PIPEYARD_EVERY_CACHE(WakeUps);

TEST_P(WakeUps, AWriteIntoAnEmptyPipeWakesOneReader) {
  EXPECT_EQ(WokenBy([&] { engine_.Write(1); }), (Woken{1, 0}));
  EXPECT_EQ(engine_.worker(1).wait_node().entry.is_queued, 0u);
}

TEST_P(WakeUps, ALargeWriteIntoAnEmptyPipeWakesOneReader) {
  EXPECT_EQ(WokenBy([&] { engine_.Write(10 * kPage); }), (Woken{1, 0}));
}

TEST_P(WakeUps, AWriteIntoAPipeWithDataWakesNobody) {
  engine_.Write(1);

  EXPECT_EQ(WokenBy([&] { engine_.Write(1); }), (Woken{0, 0}));
  EXPECT_EQ(WokenBy([&] { engine_.Write(kPage); }), (Woken{0, 0}));
}

TEST_P(WakeUps, AWriteWakesAllNonExclusiveWaitersToo) {
  engine_.QueueWaiter(7, PipeEnd::kRead, memory::WaitKind::kShared);

  EXPECT_EQ(WokenBy([&] { engine_.Write(1); }), (Woken{2, 0}));
}

TEST_P(WakeUps, OncePolledEveryWriteWakesOneReader) {
  PollEntry entry{engine_.pipe(), PipeEnd::kWrite, kPollOut};
  Poll(engine_.worker(), {&entry, 1}, Nanos(0));
  engine_.Write(1);

  EXPECT_EQ(WokenBy([&] { engine_.Write(1); }), (Woken{1, 0}));
  EXPECT_EQ(WokenBy([&] { engine_.Write(kPage); }), (Woken{1, 0}));
}

TEST_P(WakeUps, AReadOfAFullPipeWakesPollersOfTheWriteEndToo) {
  engine_.Write(16 * kPage);
  engine_.QueueWaiter(7, PipeEnd::kWrite, memory::WaitKind::kShared);

  EXPECT_EQ(WokenBy([&] { engine_.Read(kPage); }), (Woken{0, 2}));
}

TEST_P(WakeUps, ResizingWakesOneWriter) {
  engine_.Write(16 * kPage);

  EXPECT_EQ(WokenBy([&] { engine_.pipe().Resize(engine_.worker(), 32 * kPage); }), (Woken{0, 1}));
  EXPECT_EQ(WokenBy([&] { engine_.pipe().Resize(engine_.worker(), 4 * kPage); }), (Woken{0, 0}))
      << "refused: busy";
}

TEST_P(WakeUps, AReadThatFreesASlotOfAFullPipeWakesOneWriter) {
  engine_.Write(16 * kPage);

  EXPECT_EQ(WokenBy([&] { engine_.Read(kPage - 1); }), (Woken{0, 0}));
  EXPECT_EQ(WokenBy([&] { engine_.Read(1); }), (Woken{0, 1}));
}

TEST_P(WakeUps, AReadThatFreesASlotOfAPipeWithRoomWakesNobody) {
  engine_.Write(15 * kPage);

  EXPECT_EQ(WokenBy([&] { engine_.Read(15 * kPage); }), (Woken{0, 0}));
}

TEST_P(WakeUps, AReadOfAFullPipeWakesOneWriterHoweverManySlotsItFrees) {
  engine_.Write(16 * kPage);

  EXPECT_EQ(WokenBy([&] { engine_.Read(16 * kPage); }), (Woken{0, 1}));
}

TEST_P(WakeUps, AReadThatNeverSleptWakesNoReader) {
  engine_.Write(2 * kPage);

  EXPECT_EQ(WokenBy([&] { engine_.Read(kPage); }), (Woken{0, 0}));
}

TEST_P(WakeUps, TheLastCloseOfASideWakesEverybody) {
  EXPECT_EQ(WokenBy([&] { engine_.pipe().CloseWriter(engine_.worker()); }), (Woken{3, 3}));
}

TEST_P(WakeUps, TheLastCloseOfReadersWakesEverybody) {
  EXPECT_EQ(WokenBy([&] { engine_.pipe().CloseReader(engine_.worker()); }), (Woken{3, 3}));
}

TEST_P(WakeUps, ACloseThatLeavesThatSideOpenWakesNobody) {
  engine_.pipe().OpenWriter(engine_.worker());

  EXPECT_EQ(WokenBy([&] { engine_.pipe().CloseWriter(engine_.worker()); }), (Woken{0, 0}));
}

class WakeUpProbes : public EveryCache {
 protected:
  static TestEngine::Options WithWorkers(int workers) {
    TestEngine::Options options = WithCache();
    options.workers = workers;
    return options;
  }
};
PIPEYARD_EVERY_CACHE(WakeUpProbes);

TEST_P(WakeUpProbes, TheCloseOfTheSecondSideWakesNobody) {
  TestEngine engine(WithWorkers(2));
  engine.pipe().CloseWriter(engine.worker());
  const memory::WaitNode& node = engine.QueueWaiter(1, PipeEnd::kRead);
  engine.pipe().CloseReader(engine.worker());

  EXPECT_EQ(node.sleeper.state.load(), memory::Sleeper::kQueued);
  EXPECT_EQ(node.entry.is_queued, 0u) << "a freed pipe still knows a waiter";
}

TEST_P(WakeUpProbes, OneReaderReturnsForEachWriteAndAllAtTheEnd) {
  TestEngine engine(WithWorkers(6));
  std::atomic<int> num_returned{0};
  std::atomic<int> num_ends{0};
  std::vector<std::thread> readers;
  for (int i = 1; i <= 5; ++i) {
    readers.emplace_back([&, i] {
      char data[64];
      if (engine.pipe().Read(engine.worker(i), data, sizeof(data)).bytes == 0) ++num_ends;
      ++num_returned;
    });
  }
  ASSERT_TRUE(memory::Eventually([&] { return engine.pipe().CountWaitingReaders() == 5; }));

  engine.Write(1);
  ASSERT_TRUE(memory::Eventually([&] { return num_returned == 1; }));
  EXPECT_EQ(engine.pipe().CountWaitingReaders(), 4);
  engine.Write(3);
  ASSERT_TRUE(memory::Eventually([&] { return num_returned == 2; }));
  EXPECT_EQ(engine.pipe().CountWaitingReaders(), 3);
  engine.pipe().CloseWriter(engine.worker());
  for (std::thread& reader : readers) reader.join();

  EXPECT_EQ(num_ends.load(), 3);
  EXPECT_EQ(engine.Count(Counter::kReaderSleeps), 5u);
}

TEST_P(WakeUpProbes, AReaderThatLeavesDataWakesTheNext) {
  TestEngine engine(WithWorkers(3));
  std::vector<std::thread> readers;
  std::atomic<int64_t> num_bytes{0};
  for (int i = 1; i <= 2; ++i) {
    readers.emplace_back([&, i] {
      char byte = 0;
      num_bytes += engine.pipe().Read(engine.worker(i), &byte, 1).bytes;
    });
  }
  ASSERT_TRUE(memory::Eventually([&] { return engine.pipe().CountWaitingReaders() == 2; }));
  engine.Write(2);
  for (std::thread& reader : readers) reader.join();

  EXPECT_EQ(num_bytes.load(), 2);
}

TEST_P(WakeUpProbes, EachFreedPageOfAFullPipeLetsOneWriterIn) {
  TestEngine engine(WithWorkers(4));
  ASSERT_EQ(engine.Write(16 * kPage), static_cast<int64_t>(16 * kPage));
  std::vector<std::thread> writers;
  std::atomic<int> num_written{0};
  for (int i = 1; i <= 3; ++i) {
    writers.emplace_back([&, i] {
      const std::string page(kPage, 'w');
      engine.pipe().Write(engine.worker(i), page.data(), page.size());
      ++num_written;
    });
  }
  ASSERT_TRUE(memory::Eventually([&] { return engine.pipe().CountWaitingWriters() == 3; }));

  engine.Read(kPage - 1);
  EXPECT_EQ(engine.pipe().CountWaitingWriters(), 3);
  engine.Read(1);
  ASSERT_TRUE(memory::Eventually([&] { return num_written == 1; }));
  EXPECT_EQ(engine.pipe().CountWaitingWriters(), 2);
  engine.Read(kPage);
  ASSERT_TRUE(memory::Eventually([&] { return num_written == 2; }));
  engine.Read(kPage);
  for (std::thread& writer : writers) writer.join();

  EXPECT_EQ(num_written.load(), 3);
  EXPECT_EQ(engine.pipe().Occupancy(), 16u);
}

TEST_P(WakeUpProbes, AWriterThatLeavesRoomWakesTheNext) {
  TestEngine engine(WithWorkers(4));
  ASSERT_EQ(engine.Write(16 * kPage), static_cast<int64_t>(16 * kPage));
  std::vector<std::thread> writers;
  for (int i = 1; i <= 3; ++i) {
    writers.emplace_back([&, i] {
      const std::string page(kPage, 'w');
      engine.pipe().Write(engine.worker(i), page.data(), page.size());
    });
  }
  ASSERT_TRUE(memory::Eventually([&] { return engine.pipe().CountWaitingWriters() == 3; }));
  // One read, one wake-up: the other two must come from the chain.
  engine.Read(16 * kPage);
  for (std::thread& writer : writers) writer.join();

  EXPECT_EQ(engine.pipe().Occupancy(), 3u);
}

}  // namespace
}  // namespace pipeyard::pipe
