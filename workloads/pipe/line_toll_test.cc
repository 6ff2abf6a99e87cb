// The invented cost of an emulated topology (docs/SWEEPS.md), by its counters.

#include "workloads/pipe/line_toll.h"

#include <gtest/gtest.h>

#include "workloads/pipe/testing.h"

namespace pipeyard::pipe {
namespace {

// Workers 0 and 1 on node 0, workers 2 and 3 on node 1; the pipe's metadata on node 0.
TestEngine::Options Emulated(Nanos remote_access) {
  TestEngine::Options options;
  options.change = [remote_access](EngineSetup& setup) {
    setup.config.topology = numa::EmulatedTopology{{{2, 64 << 20}, {2, 64 << 20}}, {}};
    setup.config.remote_access = remote_access;
    setup.worker_cpus = {0, 1, 2, 3};
  };
  return options;
}

class LineTollTest : public ::testing::Test {
 protected:
  LineTollTest() : engine_(Emulated(Nanos(100))) {}

  // Remote lines that `worker` takes in a write (read) of `size`.
  uint64_t Write(int worker, size_t size) {
    return Counted([&] {
      const std::string data(size, 'x');
      engine_.pipe().Write(engine_.worker(worker), data.data(), size, kIoNonblocking);
    });
  }
  uint64_t Read(int worker, size_t size) {
    return Counted([&] {
      std::string data(size, '\0');
      engine_.pipe().Read(engine_.worker(worker), data.data(), size, kIoNonblocking);
    });
  }
  template <typename Act>
  uint64_t Counted(const Act& act) {
    const uint64_t before = engine_.Count(Counter::kRemoteLines);
    act();
    return engine_.Count(Counter::kRemoteLines) - before;
  }

  TestEngine engine_;
};

TEST_F(LineTollTest, LinesOfTheOwnNodeAreFree) {
  EXPECT_EQ(Write(0, 1), 0u);
  EXPECT_EQ(Read(1, 1), 0u) << "another CPU of the same node";
}

TEST_F(LineTollTest, ARemoteWorkerPaysForWhatAnotherWroteLast) {
  EXPECT_EQ(Write(0, 1), 0u);
  EXPECT_EQ(Read(2, 1), 3u) << "two lines of the info, one of the slot";
  EXPECT_EQ(Read(2, 1), 0u) << "it wrote them last itself";
  EXPECT_EQ(Read(3, 1), 2u) << "another CPU of its own node did: still of node 0";
  EXPECT_EQ(engine_.Count(Counter::kRemoteAccess), 5u * 100);
}

TEST_F(LineTollTest, DataPagesAreFree) {
  Write(0, 16 * kPage);

  // Slots of 40 bytes: 16 of them are ten lines.
  EXPECT_EQ(Read(2, 16 * kPage), 2u + 10);
}

TEST_F(LineTollTest, WritingASlotCostNothing) {
  EXPECT_EQ(Write(2, 16 * kPage), 2u + 10);
  EXPECT_EQ(Read(0, 16 * kPage), 0u);
  EXPECT_EQ(Write(2, 16 * kPage), 2u + 10) << "the reader wrote them last";
}

TEST_F(LineTollTest, AReaderPaysAgainForASlotThatWasFilledAgain) {
  for (int i = 0; i < 40; ++i) {
    Write(0, kPage);
    EXPECT_GE(Read(2, kPage), 3u) << "round " << i;
  }
}

TEST_F(LineTollTest, AMergeTakesTheLastSlotsLine) {
  Write(0, 10);

  EXPECT_EQ(Write(2, 10), 3u);
}

TEST_F(LineTollTest, EveryCallThatTakesTheMutexPays) {
  Write(0, 1);
  EXPECT_EQ(Counted([&] { engine_.pipe().QueuedBytes(engine_.worker(2)); }), 3u);
  Write(0, 1);
  EXPECT_EQ(Counted([&] { engine_.pipe().OpenReader(engine_.worker(2)); }), 2u);
}

TEST(LineToll, CostsNothingOnARealTopology) {
  TestEngine engine;
  engine.Write(kPage);
  engine.Read(kPage);

  EXPECT_EQ(engine.engine().environment().toll, nullptr);
  EXPECT_EQ(engine.Count(Counter::kRemoteLines), 0u);
}

TEST(LineToll, WithoutRemoteAccessLinesAreCountedAndFree) {
  TestEngine engine(Emulated(Nanos(0)));
  char byte = 0;
  engine.Write(1);
  engine.pipe().Read(engine.worker(2), &byte, 1);

  EXPECT_EQ(engine.Count(Counter::kRemoteLines), 3u);
  EXPECT_EQ(engine.Count(Counter::kRemoteAccess), 0u);
}

TEST(LineToll, IsReallySpent) {
  TestEngine engine(Emulated(Microseconds(10)));
  LineToll& toll = *engine.engine().environment().toll;
  const Pipe& pipe = engine.pipe();
  constexpr int kTakes = 2000;
  const int64_t start_ns = memory::MonotonicNanos();
  for (int i = 0; i < kTakes; ++i) {
    toll.Take(engine.worker(2 + i % 2), pipe.offset(), 2 * memory::kCacheLine);
  }
  const int64_t spent_ns = memory::MonotonicNanos() - start_ns;

  EXPECT_EQ(engine.Count(Counter::kRemoteAccess), 2u * kTakes * 10'000);
  // Half of it: the processor may run faster than when the spin was calibrated.
  EXPECT_GT(spent_ns, int64_t{kTakes} * 10'000);
}

}  // namespace
}  // namespace pipeyard::pipe
