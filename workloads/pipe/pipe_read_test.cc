// The read side of kernel-mechanisms.md A3, as facts.

#include <errno.h>
#include <gtest/gtest.h>

#include "workloads/pipe/testing.h"

namespace pipeyard::pipe {
namespace {

class PipeRead : public EveryCache {};
PIPEYARD_EVERY_CACHE(PipeRead);

TEST_P(PipeRead, ReturnsWhatIsThereAndDoesNotWaitForMore) {
  TestEngine engine(WithCache());
  engine.Write(StreamBytes(0, 5000));
  std::string data(100'000, '\0');
  const IoResult result =
      engine.pipe().Read(engine.worker(), data.data(), data.size(), IoMode::kBlocking);

  EXPECT_EQ(result.bytes, 5000);
  EXPECT_EQ(data.substr(0, 5000), StreamBytes(0, 5000));
}

TEST_P(PipeRead, CrossesSlotsAndStopsWhereAsked) {
  TestEngine engine(WithCache());
  engine.Write(StreamBytes(0, 10'000));

  EXPECT_EQ(engine.ReadText(4095), StreamBytes(0, 4095));
  EXPECT_EQ(engine.pipe().Occupancy(), 3u);
  EXPECT_EQ(engine.ReadText(1), StreamBytes(4095, 1));
  EXPECT_EQ(engine.pipe().Occupancy(), 2u);
  EXPECT_EQ(engine.ReadText(5000), StreamBytes(4096, 5000));
  EXPECT_EQ(engine.pipe().QueuedBytes(engine.worker()), 904);
  EXPECT_EQ(engine.ReadText(5000), StreamBytes(9096, 904));
}

TEST_P(PipeRead, AnEmptyPipeIsAgainOrTheEnd) {
  TestEngine engine(WithCache());

  EXPECT_EQ(engine.Read(0), 0);
  EXPECT_EQ(engine.Read(10), -EAGAIN);
  engine.Write(5);
  engine.pipe().CloseWriter(engine.worker());
  EXPECT_EQ(engine.Read(10), 5);
  EXPECT_EQ(engine.Read(10), 0);
  EXPECT_EQ(engine.Read(10), 0);
}

TEST_P(PipeRead, AWriterThatComesBackEndsTheEnd) {
  TestEngine engine(WithCache());
  engine.pipe().CloseWriter(engine.worker());
  ASSERT_EQ(engine.Read(10), 0);
  engine.pipe().OpenWriter(engine.worker());

  EXPECT_EQ(engine.Read(10), -EAGAIN);
}

TEST_P(PipeRead, AnInterruptedReadOfNothingSaysSo) {
  TestEngine engine(WithCache());
  IoResult result;
  std::thread reader([&] {
    char byte = 0;
    result = engine.pipe().Read(engine.worker(1), &byte, 1);
  });
  ASSERT_TRUE(memory::Eventually([&] { return engine.pipe().CountWaitingReaders() == 1; }));
  engine.worker(1).Interrupt();
  reader.join();

  EXPECT_EQ(result.error, EINTR);
  EXPECT_EQ(engine.pipe().CountWaitingReaders(), 0);
}

TEST_P(PipeRead, AnInterruptionDoesNotSpoilAReadThatNeedNotWait) {
  TestEngine engine(WithCache());
  engine.Write(3);
  engine.worker().Interrupt();
  char data[8];

  EXPECT_EQ(engine.pipe().Read(engine.worker(), data, sizeof(data)).bytes, 3);
}

TEST_P(PipeRead, StopEndsEveryWaitForGood) {
  TestEngine::Options options = WithCache();
  options.workers = 4;
  TestEngine engine(options);
  std::vector<std::thread> readers;
  std::atomic<int> num_interrupted{0};
  for (int i = 0; i < 4; ++i) {
    readers.emplace_back([&, i] {
      char byte = 0;
      for (int call = 0; call < 2; ++call) {
        if (engine.pipe().Read(engine.worker(i), &byte, 1).error == EINTR) ++num_interrupted;
      }
    });
  }
  ASSERT_TRUE(memory::Eventually([&] { return engine.pipe().CountWaitingReaders() == 4; }));
  engine.engine().Stop();
  for (std::thread& reader : readers) reader.join();

  EXPECT_EQ(num_interrupted.load(), 8);
}

TEST_P(PipeRead, QueuedBytesAreTheSumOfTheSlots) {
  TestEngine engine(WithCache());
  EXPECT_EQ(engine.pipe().QueuedBytes(engine.worker()), 0);
  engine.Write(5000);
  engine.Read(1000);
  engine.Write(10);

  EXPECT_EQ(engine.pipe().QueuedBytes(engine.worker()), 4010);
}

}  // namespace
}  // namespace pipeyard::pipe
