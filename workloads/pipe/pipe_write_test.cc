// The write side of kernel-mechanisms.md A2, as facts.

#include <errno.h>
#include <gtest/gtest.h>

#include "workloads/pipe/testing.h"

namespace pipeyard::pipe {
namespace {

class PipeWrite : public EveryCache {};
PIPEYARD_EVERY_CACHE(PipeWrite);

TEST_P(PipeWrite, ShortWritesFillThePipeAsTheMergeRuleAllows) {
  struct Case {
    size_t size;
    int full_writes;
    int64_t last;  // what the write after them returns
    int64_t queued;
  };
  const Case cases[] = {
      {1, 65536, -EAGAIN, 65536}, {100, 640, -EAGAIN, 64000}, {511, 128, -EAGAIN, 65408},
      {2049, 16, -EAGAIN, 32784}, {3000, 16, -EAGAIN, 48000}, {4095, 16, -EAGAIN, 65520},
      {4096, 16, -EAGAIN, 65536}, {4097, 10, 4096, 45066},    {65536, 1, -EAGAIN, 65536},
      {65537, 0, 65536, 65536},
  };
  for (const Case& c : cases) {
    TestEngine engine(WithCache());
    const std::string data(c.size, 'x');
    int full_writes = 0;
    int64_t last = 0;
    while ((last = engine.Write(data)) == static_cast<int64_t>(c.size)) ++full_writes;

    EXPECT_EQ(full_writes, c.full_writes) << c.size;
    EXPECT_EQ(last, c.last) << c.size;
    EXPECT_EQ(engine.pipe().QueuedBytes(engine.worker()), c.queued) << c.size;
  }
}

TEST_P(PipeWrite, MergesOnlyTheRemainderOverPages) {
  struct Case {
    size_t first;
    size_t read;
    size_t second;
    uint32_t slots;
  };
  const Case cases[] = {
      {4000, 0, 4146, 2},                    // 50 bytes merge, one new slot
      {4000, 0, 4192, 2},                    // 96 merge exactly
      {4000, 0, 4196, 3},                    // 100 do not fit behind 4000: two new slots
      {4095, 4000, 2, 2},                    // bytes already read are not used again
      {4095, 4000, 1, 1}, {100, 50, 10, 1},  // a partly read slot still merges
      {100, 0, 4096, 2},                     // whole pages never merge
      {100, 0, 8192, 3},  {4096, 0, 1, 2},   // a full slot has no room
      {5000, 0, 3000, 2},                    // the last slot holds 904
      {5000, 0, 3193, 3},
  };
  for (const Case& c : cases) {
    TestEngine engine(WithCache());
    ASSERT_EQ(engine.Write(c.first), static_cast<int64_t>(c.first));
    if (c.read != 0) {
      ASSERT_EQ(engine.Read(c.read), static_cast<int64_t>(c.read));
    }
    ASSERT_EQ(engine.Write(c.second), static_cast<int64_t>(c.second));

    EXPECT_EQ(engine.pipe().Occupancy(), c.slots) << c.first << " " << c.read << " " << c.second;
  }
}

TEST_P(PipeWrite, TheFirstBytesAreTheOnesThatMerge) {
  TestEngine engine(WithCache());
  engine.Write(StreamBytes(0, 4000));
  engine.Write(StreamBytes(4000, 4146));

  EXPECT_EQ(engine.ReadText(8146), StreamBytes(0, 8146));
}

TEST_P(PipeWrite, NothingMergesIntoAnEmptyPipe) {
  TestEngine engine(WithCache());
  engine.Write(100);
  engine.Read(100);
  engine.Write(100);

  EXPECT_EQ(engine.pipe().Occupancy(), 1u);
  EXPECT_EQ(engine.Count(Counter::kMerges), 0u);
}

TEST_P(PipeWrite, UpToPipeBufIsAllOrNothing) {
  TestEngine engine(WithCache());
  ASSERT_EQ(engine.Write(15 * kPage + 4000), static_cast<int64_t>(15 * kPage + 4000));

  EXPECT_EQ(engine.Write(kPipeBuf), -EAGAIN);
  EXPECT_EQ(engine.Write(97), -EAGAIN);
  EXPECT_EQ(engine.Write(96), 96);
}

TEST_P(PipeWrite, AboveAPageMayBeShort) {
  TestEngine engine(WithCache());
  ASSERT_EQ(engine.Write(14 * kPage), static_cast<int64_t>(14 * kPage));

  EXPECT_EQ(engine.Write(5 * kPage), static_cast<int64_t>(2 * kPage));
  EXPECT_EQ(engine.ReadText(16 * kPage).size(), 16 * kPage);
}

TEST_P(PipeWrite, NoBytesAreNoWrite) {
  TestEngine engine(WithCache());
  engine.pipe().CloseReader(engine.worker());

  EXPECT_EQ(engine.Write(0), 0);
}

TEST_P(PipeWrite, WithoutReadersItIsBroken) {
  TestEngine engine(WithCache());
  engine.Write(100);
  engine.pipe().CloseReader(engine.worker());
  const IoResult result = engine.pipe().Write(engine.worker(), "x", 1);

  EXPECT_EQ(result.error, EPIPE);
  EXPECT_TRUE(result.is_sigpipe);
  EXPECT_EQ(result.bytes, 0);
}

TEST_P(PipeWrite, AReaderThatLeavesEndsABlockedWriteShortAndBroken) {
  TestEngine engine(WithCache());
  IoResult result;
  const std::string data(200'000, 'x');
  std::thread writer(
      [&] { result = engine.pipe().Write(engine.worker(1), data.data(), data.size()); });
  ASSERT_TRUE(memory::Eventually([&] { return engine.pipe().CountWaitingWriters() == 1; }));
  engine.pipe().CloseReader(engine.worker());
  writer.join();

  EXPECT_EQ(result.bytes, 65536);
  EXPECT_EQ(result.error, 0);
  EXPECT_TRUE(result.is_sigpipe);
}

TEST_P(PipeWrite, AnInterruptedBlockedWriteIsShort) {
  TestEngine engine(WithCache());
  IoResult results[2];
  const std::string data(100'000, 'x');
  std::thread writer([&] {
    results[0] = engine.pipe().Write(engine.worker(1), data.data(), data.size());
    results[1] = engine.pipe().Write(engine.worker(1), data.data(), data.size());
  });
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(memory::Eventually([&] { return engine.pipe().CountWaitingWriters() == 1; }));
    engine.worker(1).Interrupt();
    ASSERT_TRUE(memory::Eventually([&] {
      return engine.Count(Counter::kWriterSleeps) != uint64_t(i + 1) ||
             engine.pipe().CountWaitingWriters() == 0;
    }));
  }
  writer.join();

  EXPECT_EQ(results[0].bytes, 65536);
  EXPECT_EQ(results[0].error, 0);
  EXPECT_EQ(results[1].error, EINTR);
}

TEST_P(PipeWrite, ABigWriteIsNotAtomicButASmallOneInItIs) {
  TestEngine::Options options = WithCache();
  options.workers = 3;
  TestEngine engine(options);
  const std::string big(200'000, 'b');
  const std::string small(kPage, 's');
  std::thread big_writer([&] { engine.pipe().Write(engine.worker(1), big.data(), big.size()); });
  ASSERT_TRUE(memory::Eventually([&] { return engine.pipe().CountWaitingWriters() == 1; }));
  std::thread small_writer(
      [&] { engine.pipe().Write(engine.worker(2), small.data(), small.size()); });
  ASSERT_TRUE(memory::Eventually([&] { return engine.pipe().CountWaitingWriters() == 2; }));
  std::string all;
  while (all.size() < big.size() + small.size()) {
    std::string data(kPage, '\0');
    const IoResult result = engine.pipe().Read(engine.worker(0), data.data(), data.size());
    all.append(data, 0, static_cast<size_t>(result.bytes));
  }
  big_writer.join();
  small_writer.join();

  const size_t at = all.find('s');
  EXPECT_GE(at, 65536u);
  EXPECT_LT(at, 200'000u);
  EXPECT_EQ(all.substr(at, kPage), small);
  EXPECT_EQ(all.find('s', at + kPage), std::string::npos);
}

TEST_P(PipeWrite, OnLargerPagesMoreIsAtomic) {
  TestEngine::Options options = WithCache();
  options.page_bytes = 65536;
  TestEngine engine(options);

  EXPECT_EQ(engine.pipe().capacity_bytes(), 16u * 65536);
  ASSERT_EQ(engine.Write(15 * 65536), 15 * 65536);
  EXPECT_EQ(engine.Write(60000), 60000);
  EXPECT_EQ(engine.pipe().Occupancy(), 16u);
  EXPECT_EQ(engine.Write(6000), -EAGAIN);
  EXPECT_EQ(engine.Write(5536), 5536);
}

}  // namespace
}  // namespace pipeyard::pipe
