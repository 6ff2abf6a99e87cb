// Bugs that real pipes had (kernel-mechanisms.md H), each as a test named for what went wrong, and
// races over the whole engine.

#include <errno.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

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

// Sends `total` bytes from each of `writers` workers to `readers` workers in messages of `size`;
// returns the sum of the bytes received.
uint64_t Pump(TestEngine& engine, int writers, int readers, uint64_t messages, size_t size) {
  std::vector<std::thread> threads;
  std::atomic<uint64_t> received{0};
  for (int i = 0; i < readers; ++i) {
    threads.emplace_back([&, i] {
      std::string data(size, '\0');
      for (;;) {
        const IoResult result = engine.pipe().Read(engine.worker(writers + i), data.data(), size);
        if (result.bytes <= 0) break;
        received += static_cast<uint64_t>(result.bytes);
      }
    });
  }
  std::atomic<int> writing{writers};
  for (int i = 0; i < writers; ++i) {
    threads.emplace_back([&, i] {
      const std::string data(size, static_cast<char>('a' + i));
      for (uint64_t message = 0; message < messages; ++message) {
        if (engine.pipe().Write(engine.worker(i), data.data(), size).bytes !=
            static_cast<int64_t>(size))
          break;
      }
      if (--writing == 0) engine.pipe().CloseWriter(engine.worker(i));
    });
  }
  for (std::thread& thread : threads) thread.join();
  return received;
}

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

TEST_P(Hazards, AStreamArrivesInOrderInThreads) {
  TestEngine engine(WithWorkers(2));
  constexpr size_t kTotal = 3'000'000;
  std::thread writer([&] {
    // Sizes that walk over merges, page borders and more than the ring.
    for (size_t at = 0, size = 1; at < kTotal; at += size) {
      size = std::min<size_t>((size * 31 + 7) % 70'001, kTotal - at);
      const std::string data = StreamBytes(at, size);
      if (engine.pipe().Write(engine.worker(0), data.data(), size).bytes !=
          static_cast<int64_t>(size))
        return;
    }
    engine.pipe().CloseWriter(engine.worker(0));
  });
  std::string data(50'000, '\0');
  size_t at = 0;
  bool is_right = true;
  for (size_t size = 1;; size = (size * 17 + 3) % 50'000 + 1) {
    const IoResult result =
        engine.pipe().Read(engine.worker(1), data.data(), std::min(size, data.size()));
    if (result.bytes <= 0) break;
    is_right = is_right && data.compare(0, static_cast<size_t>(result.bytes),
                                        StreamBytes(at, static_cast<size_t>(result.bytes))) == 0;
    at += static_cast<size_t>(result.bytes);
  }
  writer.join();

  EXPECT_EQ(at, kTotal);
  EXPECT_TRUE(is_right);
}

TEST_P(Hazards, ManyWritersAndReadersLoseNoByteAndNoPage) {
  struct Case {
    int writers, readers;
    uint64_t messages;
    size_t size;
  };
  for (const Case& c : {Case{1, 1, 3000, 65536}, Case{5, 10, 300, 65536}, Case{3, 2, 5000, 100},
                        Case{2, 5, 1000, 5000}}) {
    TestEngine::Options options = WithWorkers(c.writers + c.readers);
    TestEngine engine(options);
    const uint64_t total = static_cast<uint64_t>(c.writers) * c.messages * c.size;

    EXPECT_EQ(Pump(engine, c.writers, c.readers, c.messages, c.size), total);
    EXPECT_EQ(engine.Count(Counter::kBytesWritten), total);
    EXPECT_EQ(engine.Count(Counter::kBytesRead), total);
  }
}

TEST_P(Hazards, SpinningBeforeSleepingLosesNothing) {
  TestEngine::Options options = WithWorkers(4);
  options.wait_spin = Microseconds(20);
  TestEngine engine(options);

  EXPECT_EQ(Pump(engine, 2, 2, 2000, 3000), 2u * 2000 * 3000);
}

// PIPE_BUF: messages of one page never mix, however many write.
TEST_P(Hazards, PagesFromManyWritersStayWhole) {
  TestEngine engine(WithWorkers(4));
  std::vector<std::thread> writers;
  std::atomic<int> writing{3};
  for (int i = 1; i <= 3; ++i) {
    writers.emplace_back([&, i] {
      const std::string data(kPipeBuf, static_cast<char>('a' + i));
      for (int message = 0; message < 1000; ++message)
        engine.pipe().Write(engine.worker(i), data.data(), data.size());
      if (--writing == 0) engine.pipe().CloseWriter(engine.worker(i));
    });
  }
  std::string data(kPipeBuf, '\0');
  int num_messages = 0;
  bool is_whole = true;
  while (engine.pipe().Read(engine.worker(0), data.data(), data.size()).bytes ==
         static_cast<int64_t>(kPipeBuf)) {
    is_whole = is_whole && data.find_first_not_of(data[0]) == std::string::npos;
    ++num_messages;
  }
  for (std::thread& writer : writers) writer.join();

  EXPECT_EQ(num_messages, 3000);
  EXPECT_TRUE(is_whole);
}

TEST_P(Hazards, ProcessesShareOnePipe) {
  TestEngine engine(WithWorkers(2));
  constexpr size_t kTotal = 2'000'000;
  const pid_t child = ::fork();
  if (child == 0) {
    bool is_ok = true;
    for (size_t at = 0; at < kTotal; at += 10'000) {
      const std::string data = StreamBytes(at, 10'000);
      is_ok =
          is_ok && engine.pipe().Write(engine.worker(1), data.data(), data.size()).bytes == 10'000;
    }
    engine.pipe().CloseWriter(engine.worker(1));
    ::_exit(is_ok ? 0 : 1);
  }
  std::string data(30'000, '\0');
  size_t at = 0;
  bool is_right = true;
  for (;;) {
    const IoResult result = engine.pipe().Read(engine.worker(0), data.data(), data.size());
    if (result.bytes <= 0) break;
    is_right = is_right && data.compare(0, static_cast<size_t>(result.bytes),
                                        StreamBytes(at, static_cast<size_t>(result.bytes))) == 0;
    at += static_cast<size_t>(result.bytes);
  }
  int status = -1;
  ::waitpid(child, &status, 0);

  EXPECT_EQ(status, 0);
  EXPECT_EQ(at, kTotal);
  EXPECT_TRUE(is_right);
  EXPECT_EQ(engine.Count(Counter::kBytesWritten), kTotal);
}

// A process that dies inside a call ends everybody's calls; nobody hangs.
TEST_P(Hazards, DeathInsideThePipeEndsEveryCall) {
  TestEngine engine(WithWorkers(4));
  const pid_t child = ::fork();
  if (child == 0) {
    if (!memory::Eventually([&] { return engine.pipe().CountWaitingReaders() == 2; })) ::_exit(1);
    static_cast<void>(engine.pipe().info().mutex.Lock());
    ::_exit(0);
  }
  std::vector<std::thread> readers;
  std::atomic<int> num_told{0};
  for (int i = 1; i <= 2; ++i) {
    readers.emplace_back([&, i] {
      char byte = 0;
      if (engine.pipe().Read(engine.worker(i), &byte, 1).error == EOWNERDEAD) ++num_told;
    });
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);

  EXPECT_EQ(engine.pipe().Write(engine.worker(0), "x", 1).error, EOWNERDEAD);
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(num_told.load(), 2);
  EXPECT_EQ(engine.pipe().CloseReader(engine.worker(0)), EOWNERDEAD);
}

}  // namespace
}  // namespace pipeyard::pipe
