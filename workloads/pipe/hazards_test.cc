// Bugs that real pipes had (kernel-mechanisms.md H), each as a test named for what went wrong.
// Others stand where their mechanism is tested: H4 and H6 with poll and watches, H5 and H8 with
// resizing, H10 and H11 with the page cache, H13 with placement.

#include <errno.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>

#include "workloads/pipe/testing.h"

namespace pipeyard::pipe {
namespace {

class Hazards : public EveryCache {
 protected:
  static TestEngine::Options WithWorkers(int workers) {
    TestEngine::Options options = WithCache();
    options.workers = workers;
    return options;
  }
};
PIPEYARD_EVERY_CACHE(Hazards);

// Head and tail read one after the other made an empty pipe look full, and both sides slept. Here
// the counters begin just below the wrap and a bystander looks without the mutex at every moment:
// it must never see more slots in use than there are.
TEST_P(Hazards, H1_HeadAndTailOfDifferentMomentsHangTheHackbench) {
  TestEngine::Options options = WithWorkers(3);
  options.first_position = UINT32_MAX - 1000;
  TestEngine engine(options);
  std::atomic<bool> is_done{false};
  uint32_t most = 0;
  std::thread bystander([&] {
    while (!is_done.load()) most = std::max(most, engine.pipe().Occupancy());
  });
  const uint64_t received = Pump(engine, 1, 1, 5000, kPage);
  is_done = true;
  bystander.join();

  EXPECT_EQ(received, 5000u * kPage);
  EXPECT_LE(most, kDefaultSlots);
  EXPECT_EQ(engine.pipe().Occupancy(), 0u);
}

// The bug itself: what a reader of two separate words could put together. A writer and a reader
// move on between the two loads; the pipe is empty whenever both are idle, and yet it looked full.
TEST(HeadTail, H1_TornReadsOfAnEmptyPipeLookFull) {
  int num_full = 0;
  for (uint32_t at : {0u, 100u, UINT32_MAX - 1}) {
    for (uint32_t moved = 1; moved <= 16; ++moved) {
      const HeadTail before{at, at};
      const HeadTail after{at + moved, at + moved};
      ASSERT_TRUE(before.IsEmpty() && after.IsEmpty());
      // Head of the earlier moment, tail of the later one: occupancy wraps below zero.
      const HeadTail torn{before.head, after.tail};
      num_full += torn.IsFull(16) ? 1 : 0;
      // One word has both of one moment.
      EXPECT_FALSE(HeadTail::Unpack(before.Pack()).IsFull(16));
      EXPECT_FALSE(HeadTail::Unpack(after.Pack()).IsFull(16));
    }
  }
  EXPECT_EQ(num_full, 3 * 16);
  static_assert(sizeof(PipeInfo::head_tail) == sizeof(uint64_t));
  static_assert(decltype(PipeInfo::head_tail)::is_always_lock_free);
}

// Thousands of short runs of the benchmark that hung: every one must end.
TEST_P(Hazards, H1_ShortMessagingRunsAllEnd) {
  TestEngine::Options options = WithWorkers(4);
  options.change = [](EngineSetup& setup) {
    setup.extra_pipes = 4;
    setup.extra_slots = 64;
  };
  TestEngine engine(options);
  constexpr int kRuns = 300;
  constexpr int kLoops = 20;
  std::atomic<int> num_received{0};
  for (int run = 0; run < kRuns; ++run) {
    Pipe pipes[2] = {engine.engine().CreatePipe(engine.worker()).pipe,
                     engine.engine().CreatePipe(engine.worker()).pipe};
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back([&, i] {
        const std::string message(100, 'm');
        for (int loop = 0; loop < kLoops; ++loop) {
          for (Pipe& pipe : pipes) pipe.Write(engine.worker(i), message.data(), message.size());
        }
      });
      threads.emplace_back([&, i] {
        char message[100];
        for (int received = 0; received < 2 * kLoops;) {
          size_t size = 0;
          while (size < sizeof(message)) {
            size += static_cast<size_t>(
                pipes[i].Read(engine.worker(2 + i), message + size, sizeof(message) - size).bytes);
          }
          ++received;
          ++num_received;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (Pipe& pipe : pipes) {
      pipe.CloseReader(engine.worker());
      pipe.CloseWriter(engine.worker());
    }
  }
  EXPECT_EQ(num_received.load(), kRuns * 2 * 2 * kLoops);
}

// Reads of a pipe that was not full woke writers for nothing; programs came to rely on that. How
// many are woken now, by either rule, is part of the contract.
TEST_P(Hazards, H2_SpuriousWakeUpsOfWritersCameAndWent) {
  struct Case {
    Wakeup wakeup;
    size_t written;
    size_t read;
    uint64_t woken;
  };
  const Case cases[] = {
      {Wakeup::kWasFull, 5 * kPage, kPage, 0},
      {Wakeup::kAlways, 5 * kPage, kPage, 1},
      {Wakeup::kWasFull, 5 * kPage, 10, 0},
      {Wakeup::kAlways, 5 * kPage, 10, 1},
      {Wakeup::kWasFull, 16 * kPage, kPage - 1, 0},
      {Wakeup::kAlways, 16 * kPage, kPage - 1, 1},
      {Wakeup::kWasFull, 16 * kPage, kPage, 1},
      {Wakeup::kAlways, 16 * kPage, 3 * kPage, 1},
      {Wakeup::kWasFull, 0, 1, 0},
      {Wakeup::kAlways, 0, 1, 0},
  };
  for (const Case& c : cases) {
    TestEngine::Options options = WithWorkers(2);
    options.change = [&](EngineSetup& setup) { setup.config.wakeup = c.wakeup; };
    TestEngine engine(options);
    if (c.written != 0) engine.Write(c.written);
    engine.QueueWaiter(1, PipeEnd::kWrite);
    engine.Read(c.read);

    EXPECT_EQ(engine.Count(Counter::kWriterWakeups), c.woken)
        << WakeupName(c.wakeup) << " " << c.written << " " << c.read;
    engine.UnqueueWaiter(1, PipeEnd::kWrite);
  }
}

TEST(HeadTail, OccupancyIsRightAcrossTheWrap) {
  for (const uint32_t tail : {0u, 1u, UINT32_MAX - 15, UINT32_MAX - 1, UINT32_MAX}) {
    for (uint32_t used = 0; used <= 16; ++used) {
      const HeadTail ends = HeadTail::Unpack(HeadTail{tail + used, tail}.Pack());
      EXPECT_EQ(ends.Occupancy(), used);
      EXPECT_EQ(ends.IsEmpty(), used == 0);
      EXPECT_EQ(ends.IsFull(16), used == 16);
    }
  }
}

// The last close woke only one of several readers; the others slept for ever.
TEST_P(Hazards, H3_TheLastCloseWokeOnlyOneReader) {
  TestEngine engine(WithWorkers(5));
  std::vector<std::thread> readers;
  std::atomic<int> num_ends{0};
  for (int i = 1; i <= 4; ++i) {
    readers.emplace_back([&, i] {
      char byte = 0;
      const IoResult result = engine.pipe().Read(engine.worker(i), &byte, 1);
      if (result.ok() && result.bytes == 0) ++num_ends;
    });
  }
  ASSERT_TRUE(memory::Eventually([&] { return engine.pipe().CountWaitingReaders() == 4; }));
  engine.pipe().CloseWriter(engine.worker());
  for (std::thread& reader : readers) reader.join();

  EXPECT_EQ(num_ends.load(), 4);
}

TEST_P(Hazards, H3_TheLastReaderLeavesAndEveryWriterFindsOut) {
  TestEngine engine(WithWorkers(5));
  engine.Write(16 * kPage);
  std::vector<std::thread> writers;
  std::atomic<int> num_broken{0};
  for (int i = 1; i <= 4; ++i) {
    writers.emplace_back([&, i] {
      const IoResult result = engine.pipe().Write(engine.worker(i), "x", 1);
      if (result.error == EPIPE && result.is_sigpipe) ++num_broken;
    });
  }
  // One byte would merge were the last slot not full.
  ASSERT_TRUE(memory::Eventually([&] { return engine.pipe().CountWaitingWriters() == 4; }));
  engine.pipe().CloseReader(engine.worker());
  for (std::thread& writer : writers) writer.join();

  EXPECT_EQ(num_broken.load(), 4);
}

// A pipe of one slot: bytes already read are room that cannot be used.
TEST_P(Hazards, H7_AOneSlotPipeStaysFullUntilItIsEmpty) {
  TestEngine::Options options = WithCache();
  options.pipe_bytes = kPage;
  TestEngine engine(options);
  ASSERT_EQ(engine.pipe().ring_slots(), 1u);
  engine.Write(kPage);
  engine.Read(4000);

  EXPECT_EQ(engine.Write(1), -EAGAIN);
  engine.Read(96);
  EXPECT_EQ(engine.Write(1), 1);
}

// Two writers of one byte each on a pipe of one page: the second must get in by merging, else a job
// server hangs.
TEST_P(Hazards, H7_TwoOneByteWritersHangOnAOnePagePipe) {
  TestEngine::Options options = WithWorkers(3);
  options.pipe_bytes = kPage;
  TestEngine engine(options);
  std::vector<std::thread> writers;
  for (int i = 1; i <= 2; ++i) {
    writers.emplace_back([&, i] {
      for (int token = 0; token < 200; ++token) engine.pipe().Write(engine.worker(i), "t", 1);
    });
  }
  int num_tokens = 0;
  char tokens[64];
  while (num_tokens < 400) {
    num_tokens +=
        static_cast<int>(engine.pipe().Read(engine.worker(0), tokens, sizeof(tokens)).bytes);
  }
  for (std::thread& writer : writers) writer.join();

  EXPECT_EQ(num_tokens, 400);
}

// A user over the soft limit has pipes of two slots: 4,324 bytes in two writes fill one although
// half of it is unused, and whoever waits for room before reading deadlocks.
TEST_P(Hazards, H7_ATwoSlotPipeIsFullWithHalfItsBytesUnused) {
  TestEngine::Options options = WithCache();
  options.pipe_bytes = 2 * kPage;
  TestEngine engine(options);
  ASSERT_EQ(engine.Write(4000), 4000);
  ASSERT_EQ(engine.Write(324), 324);

  EXPECT_EQ(engine.pipe().QueuedBytes(engine.worker()), 4324);
  EXPECT_EQ(engine.Write(kPage), -EAGAIN);
  EXPECT_EQ(engine.Write(kPage - 324), static_cast<int64_t>(kPage - 324)) << "merging still fits";
}

// A slot kept the flags of its last use, so that later bytes were merged into a page that was not
// the pipe's.
TEST_P(Hazards, H9_AReusedSlotKeepsItsOldFlags) {
  TestEngine engine(WithCache());
  PipeInfo& info = engine.pipe().info();
  static_cast<void>(info.mutex.Lock());
  auto* slots = engine.engine().region().At<Slot>(info.slots_offset);
  std::memset(static_cast<void*>(slots), 0xab, kDefaultSlots * sizeof(Slot));
  info.mutex.Unlock();
  engine.Write(3 * kPage + 7);

  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(slots[i].offset, 0u);
    EXPECT_EQ(slots[i].length, i < 3 ? kPage : 7u);
    EXPECT_EQ(slots[i].kind, SlotKind::kAnonymousPage);
    EXPECT_EQ(slots[i].flags, static_cast<uint32_t>(kSlotCanMerge));
    EXPECT_EQ(slots[i].reserved, 0u);
    EXPECT_EQ(slots[i].private_data, 0u);
    EXPECT_LT(slots[i].page, engine.engine().pages().num_pages());
  }
  EXPECT_EQ(slots[4].flags, 0xababababu);
}

TEST_P(Hazards, H9_ASlotWithoutTheMergeFlagIsLeftAlone) {
  TestEngine engine(WithCache());
  engine.Write(100);
  PipeInfo& info = engine.pipe().info();
  static_cast<void>(info.mutex.Lock());
  engine.engine().region().At<Slot>(info.slots_offset)->flags = 0;
  info.mutex.Unlock();
  engine.Write(10);

  EXPECT_EQ(engine.pipe().Occupancy(), 2u);
}

}  // namespace
}  // namespace pipeyard::pipe
