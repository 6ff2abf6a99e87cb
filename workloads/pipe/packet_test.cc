// Packet mode (O_DIRECT) and slots that must be read whole (kernel-mechanisms.md A3), as facts.

#include <errno.h>
#include <gtest/gtest.h>

#include "workloads/pipe/testing.h"

namespace pipeyard::pipe {
namespace {

class Packets : public EveryCache {};
PIPEYARD_EVERY_CACHE(Packets);

TEST_P(Packets, OneReadTakesOnePacketAndTheRestIsLost) {
  TestEngine engine(WithCache());
  ASSERT_EQ(engine.WritePacket(10), 10);
  ASSERT_EQ(engine.WritePacket(20), 20);
  ASSERT_EQ(engine.WritePacket(5000), 5000);
  EXPECT_EQ(engine.pipe().QueuedBytes(engine.worker()), 5030);

  EXPECT_EQ(engine.Read(4), 4);
  EXPECT_EQ(engine.Read(100), 20);
  EXPECT_EQ(engine.Read(10000), 4096) << "a write above a page is several packets";
  EXPECT_EQ(engine.Read(10000), 904);
  EXPECT_EQ(engine.Read(10000), -EAGAIN);
}

TEST_P(Packets, NeverMerge) {
  TestEngine engine(WithCache());
  for (int i = 0; i < 16; ++i) ASSERT_EQ(engine.WritePacket(1), 1);

  EXPECT_EQ(engine.WritePacket(1), -EAGAIN);
  EXPECT_EQ(engine.Write(1), -EAGAIN) << "nothing merges behind a packet either";
}

TEST_P(Packets, OfNoBytesAreNone) {
  TestEngine engine(WithCache());

  EXPECT_EQ(engine.WritePacket(0), 0);
  EXPECT_EQ(engine.pipe().Occupancy(), 0u);
}

TEST_P(Packets, TheFlagIsThatOfTheFileAtTheWrite) {
  TestEngine engine(WithCache());
  engine.Write(10);
  engine.WritePacket(20);  // merges: the last slot is of a stream
  engine.WritePacket(kPage);
  engine.Write(5);
  engine.Write(6);

  EXPECT_EQ(engine.pipe().Occupancy(), 3u);
  EXPECT_EQ(engine.Read(30 + 100), 130) << "a stream's bytes, then one packet cut short";
  EXPECT_EQ(engine.Read(100), 11);
}

TEST_P(Packets, FreeingAPacketOfAFullPipeWakesAWriter) {
  TestEngine engine(WithCache());
  for (int i = 0; i < 16; ++i) engine.WritePacket(100);
  const std::string data(1, 'x');
  std::thread writer([&] { engine.pipe().Write(engine.worker(1), data.data(), 1, kIoPacket); });
  ASSERT_TRUE(memory::Eventually([&] { return engine.pipe().CountWaitingWriters() == 1; }));
  EXPECT_EQ(engine.Read(1), 1);
  writer.join();

  EXPECT_EQ(engine.pipe().QueuedBytes(engine.worker()), 1501);
}

TEST_P(Packets, AWholeSlotIsReadWholeOrNotAtAll) {
  TestEngine engine(WithCache());
  engine.WritePacket(100);
  engine.WritePacket(50);
  PipeInfo& info = engine.pipe().info();
  static_cast<void>(info.mutex.Lock());
  auto* slots = engine.engine().region().At<Slot>(info.slots_offset);
  slots[0].flags = 0;
  slots[1].flags = kSlotWhole;
  info.mutex.Unlock();

  EXPECT_EQ(engine.Read(120), 100) << "what was read before it stays read";
  EXPECT_EQ(engine.Read(49), -ENOBUFS);
  EXPECT_EQ(engine.Read(60), 50);
}

TEST_P(Packets, WithoutTheSignalThereIsStillTheError) {
  TestEngine engine(WithCache());
  engine.pipe().CloseReader(engine.worker());
  const IoResult silent = engine.pipe().Write(engine.worker(), "x", 1, kIoNoSignal);
  const IoResult loud = engine.pipe().Write(engine.worker(), "x", 1);

  EXPECT_EQ(silent.error, EPIPE);
  EXPECT_FALSE(silent.is_sigpipe);
  EXPECT_EQ(loud.error, EPIPE);
  EXPECT_TRUE(loud.is_sigpipe);
}

}  // namespace
}  // namespace pipeyard::pipe
