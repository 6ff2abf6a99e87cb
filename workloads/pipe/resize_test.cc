// Sizes and limits: F_SETPIPE_SZ, user accounts, creation under limits (kernel-mechanisms.md A6),
// as facts.

#include <errno.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <time.h>

#include "workloads/pipe/testing.h"

namespace pipeyard::pipe {
namespace {

constexpr Capabilities kRoot{true, true};
constexpr Capabilities kAdminOnly{false, true};
constexpr Capabilities kResourceOnly{true, false};
constexpr Capabilities kNobody{false, false};
constexpr uint64_t kMiB = 1 << 20;

TestEngine::Options WithRoom(PipeLimits limits = {}) {
  TestEngine::Options options;
  options.change = [limits](EngineSetup& setup) {
    setup.limits = limits;
    setup.num_users = 2;
    setup.extra_pipes = 64;
    setup.extra_slots = 2048;
  };
  return options;
}

TEST(Resize, RoundsUpToAPowerOfTwoPages) {
  struct Case {
    uint64_t bytes;
    int64_t result;
  };
  const Case cases[] = {{0, 4096},
                        {1, 4096},
                        {4095, 4096},
                        {4096, 4096},
                        {4097, 8192},
                        {65536, 65536},
                        {65537, 131072},
                        {(uint64_t{1} << 31) + 1, -EINVAL},
                        {UINT64_MAX, -EINVAL}};
  for (const Case& c : cases) {
    TestEngine engine(WithRoom());

    EXPECT_EQ(engine.pipe().Resize(engine.worker(), c.bytes), c.result) << c.bytes;
    EXPECT_EQ(engine.pipe().capacity_bytes(),
              static_cast<uint64_t>(c.result < 0 ? 65536 : c.result));
    EXPECT_EQ(engine.engine().UserSlots(0), engine.pipe().ring_slots());
  }
}

// An index of 16 bits cannot tell more slots apart; on such machines F_SETPIPE_SZ says EINVAL.
TEST(Resize, H8_MoreSlotsThanTheIndexCanCount) {
  EXPECT_FALSE(ExceedsIndex<uint16_t>(32768));
  EXPECT_FALSE(ExceedsIndex<uint16_t>(65535));
  EXPECT_TRUE(ExceedsIndex<uint16_t>(65536));
  EXPECT_FALSE(ExceedsIndex<uint32_t>(kMaxPipeBytes / 4096));
  EXPECT_TRUE(ExceedsIndex<uint32_t>(uint64_t{1} << 32));
}

TEST(Resize, BusyCountsSlotsNotBytes) {
  TestEngine engine(WithRoom());
  for (int i = 0; i < 5; ++i) ASSERT_EQ(engine.WritePacket(1), 1);

  EXPECT_EQ(engine.pipe().Resize(engine.worker(), 4 * kPage), -EBUSY);
  EXPECT_EQ(engine.pipe().capacity_bytes(), 65536u);
  EXPECT_EQ(engine.engine().UserSlots(0), 16u) << "the charge is taken back";
  EXPECT_EQ(engine.pipe().Resize(engine.worker(), 8 * kPage), static_cast<int64_t>(8 * kPage));
  engine.Read(1);
  EXPECT_EQ(engine.pipe().Resize(engine.worker(), 4 * kPage), static_cast<int64_t>(4 * kPage));
  EXPECT_EQ(engine.WritePacket(1), -EAGAIN);
  EXPECT_EQ(engine.pipe().QueuedBytes(engine.worker()), 4);
}

TEST(Resize, BytesFlagsAndOrderSurvive) {
  for (const uint32_t first_position : {0u, UINT32_MAX - 3}) {
    TestEngine::Options options = WithRoom();
    options.first_position = first_position;
    TestEngine engine(options);
    engine.Write(StreamBytes(0, 3 * kPage + 10));
    engine.Read(kPage + 5);
    for (const uint64_t slots : {4, 256, 3, 64}) {
      ASSERT_GT(engine.pipe().Resize(engine.worker(), slots * kPage), 0);
      EXPECT_EQ(engine.pipe().QueuedBytes(engine.worker()), static_cast<int64_t>(2 * kPage + 5));
    }
    // The last slot still merges.
    engine.Write(StreamBytes(3 * kPage + 10, 7));
    EXPECT_EQ(engine.pipe().Occupancy(), 3u);
    EXPECT_EQ(engine.ReadText(4 * kPage), StreamBytes(kPage + 5, 2 * kPage + 12));
  }
}

TEST(Resize, GrowingMakesRoomForNonblockingWrites) {
  TestEngine engine(WithRoom());
  engine.Write(16 * kPage);
  ASSERT_EQ(engine.Write(kPage), -EAGAIN);
  ASSERT_EQ(engine.pipe().Resize(engine.worker(), 32 * kPage), static_cast<int64_t>(32 * kPage));

  EXPECT_EQ(engine.Write(20 * kPage), static_cast<int64_t>(16 * kPage));
}

// The ring grew, but max_usage was raised only after the writer had been woken: it found the pipe
// full and slept again (CVE-2023-52672).
TEST(Resize, H5_TheWriterWokenByGrowingFoundThePipeStillFull) {
  for (int round = 0; round < 50; ++round) {
    TestEngine engine(WithRoom());
    engine.Write(16 * kPage);
    int64_t written = 0;
    std::thread writer([&] {
      const std::string page(kPage, 'w');
      written = engine.pipe().Write(engine.worker(1), page.data(), page.size()).bytes;
    });
    ASSERT_TRUE(memory::Eventually([&] { return engine.pipe().CountWaitingWriters() == 1; }));
    engine.pipe().Resize(engine.worker(), 32 * kPage);
    writer.join();

    EXPECT_EQ(written, static_cast<int64_t>(kPage));
    EXPECT_EQ(engine.Count(Counter::kWriterWakeups), 1u);
    EXPECT_EQ(engine.Count(Counter::kWriterSleeps), 1u);
  }
}

// It compared with the old size until its time was over.
TEST(Resize, ASpinningWriterMissedThatThePipeHadGrown) {
  TestEngine::Options options = WithRoom();
  options.wait_spin = Seconds(3600);
  TestEngine engine(options);
  engine.Write(16 * kPage);
  int64_t written = 0;
  std::thread writer([&] {
    const std::string page(kPage, 'w');
    written = engine.pipe().Write(engine.worker(1), page.data(), page.size()).bytes;
  });
  clockid_t time_of_writer = 0;
  EXPECT_EQ(::pthread_getcpuclockid(writer.native_handle(), &time_of_writer), 0);
  // What it does before it spins takes some microseconds. On a busy machine it gives up spinning
  // and sleeps.
  EXPECT_TRUE(memory::Eventually([&] {
    timespec spent = {};
    ::clock_gettime(time_of_writer, &spent);
    return spent.tv_sec > 0 || spent.tv_nsec > 5'000'000 ||
           engine.pipe().CountWaitingWriters() == 1;
  }));

  EXPECT_EQ(engine.pipe().Resize(engine.worker(), 32 * kPage), static_cast<int64_t>(32 * kPage));
  writer.join();

  EXPECT_EQ(written, static_cast<int64_t>(kPage));
}

TEST(Resize, ChecksInTheKernelsOrder) {
  struct Case {
    const char* what;
    Capabilities capabilities;
    PipeLimits limits;
    uint64_t bytes;
    int64_t result;
  };
  const PipeLimits kSmallSoft{kMiB, 20, 0};
  const PipeLimits kSmallHard{kMiB, 0, 20};
  const Case cases[] = {
      {"to pipe-max-size exactly", kNobody, {}, kMiB, kMiB},
      {"above pipe-max-size", kNobody, {}, kMiB + 1, -EPERM},
      {"above pipe-max-size with SYS_ADMIN alone", kAdminOnly, {}, kMiB + 1, -EPERM},
      {"above pipe-max-size with SYS_RESOURCE", kResourceOnly, {}, kMiB + 1, 2 * kMiB},
      {"too large to be a size comes before permission",
       kNobody,
       {},
       (uint64_t{1} << 31) + 1,
       -EINVAL},
      {"over the soft limit", kNobody, kSmallSoft, 32 * kPage, -EPERM},
      {"over the soft limit with SYS_ADMIN", kAdminOnly, kSmallSoft, 32 * kPage, 32 * kPage},
      {"over the soft limit with SYS_RESOURCE", kResourceOnly, kSmallSoft, 32 * kPage, 32 * kPage},
      {"over the hard limit", kNobody, kSmallHard, 32 * kPage, -EPERM},
      {"over the hard limit as root", kRoot, kSmallHard, 32 * kPage, 32 * kPage},
      {"exactly the soft limit", kNobody, {kMiB, 32, 0}, 32 * kPage, 32 * kPage},
      {"exactly the hard limit", kNobody, {kMiB, 0, 32}, 32 * kPage, 32 * kPage},
      {"shrinking is always permitted, so busy shows", kNobody, {kPage, 1, 1}, 4 * kPage, -EBUSY},
      {"shrinking is always permitted", kNobody, {kPage, 1, 1}, 8 * kPage, 8 * kPage},
  };
  for (const Case& c : cases) {
    TestEngine engine(WithRoom(c.limits));
    for (int i = 0; i < 5; ++i) engine.WritePacket(1);
    engine.worker().SetIdentity({0, c.capabilities});
    const int64_t before = static_cast<int64_t>(engine.engine().UserSlots(0));
    const int64_t result = engine.pipe().Resize(engine.worker(), c.bytes);

    EXPECT_EQ(result, c.result) << c.what;
    EXPECT_EQ(static_cast<int64_t>(engine.engine().UserSlots(0)),
              c.result < 0 ? before : c.result / static_cast<int64_t>(kPage))
        << c.what;
  }
}

TEST(Resize, OverTheSoftLimitShrinkingWorksAndGrowingBackDoesNot) {
  TestEngine engine(WithRoom({kMiB, 64, 0}));
  Engine& e = engine.engine();
  Worker& worker = engine.worker();
  worker.SetIdentity({1, kNobody});
  std::vector<Pipe> pipes;
  const auto create = [&] {
    const CreatedPipe created = e.CreatePipe(worker);
    EXPECT_EQ(created.error, 0);
    pipes.push_back(created.pipe);
    return created.pipe.capacity_bytes();
  };
  for (int i = 0; i < 4; ++i) EXPECT_EQ(create(), 65536u);
  ASSERT_EQ(e.UserSlots(1), 64u) << "reaching the limit is not being over it";
  for (int i = 0; i < 8; ++i) EXPECT_EQ(create(), 8192u) << "two slots";

  EXPECT_EQ(pipes.back().Resize(worker, 4096), 4096);
  EXPECT_EQ(pipes.back().Resize(worker, 8192), -EPERM);
  EXPECT_EQ(pipes[0].Resize(worker, 4096), 4096);
  ASSERT_EQ(e.UserSlots(1), 64u);
  EXPECT_EQ(pipes.back().Resize(worker, 8192), -EPERM) << "it would be over again";
  EXPECT_EQ(pipes[1].Resize(worker, 4096), 4096);
  EXPECT_EQ(pipes.back().Resize(worker, 8192), 8192);
  EXPECT_EQ(pipes[1].Resize(worker, 32 * kPage), -EPERM);
  EXPECT_EQ(e.UserSlots(0), 16u) << "the other user's account is untouched";
  for (Pipe& pipe : pipes) {
    pipe.CloseReader(worker);
    pipe.CloseWriter(worker);
  }
  EXPECT_EQ(e.UserSlots(1), 0u);
}

TEST(Creation, ObeysTheLimits) {
  struct Case {
    const char* what;
    Capabilities capabilities;
    PipeLimits limits;
    uint32_t slots;  // 0: ENFILE
  };
  const Case cases[] = {
      {"no limit", kNobody, {kMiB, 0, 0}, 16},
      {"at the soft limit", kNobody, {kMiB, 16, 0}, 16},
      {"over the soft limit", kNobody, {kMiB, 15, 0}, 2},
      {"over the soft limit as root", kRoot, {kMiB, 15, 0}, 16},
      {"over the soft limit with SYS_ADMIN", kAdminOnly, {kMiB, 15, 0}, 16},
      {"at the hard limit", kNobody, {kMiB, 0, 16}, 16},
      {"over the hard limit", kNobody, {kMiB, 0, 15}, 0},
      {"over the hard limit as root", kRoot, {kMiB, 0, 15}, 16},
      {"over soft, two slots within hard", kNobody, {kMiB, 1, 2}, 2},
      {"over both even with two slots", kNobody, {kMiB, 1, 1}, 0},
      {"pipe-max-size below 16 pages", kNobody, {8 * kPage, 0, 0}, 8},
      {"pipe-max-size below 16 pages with SYS_ADMIN", kAdminOnly, {8 * kPage, 0, 0}, 8},
      {"pipe-max-size below 16 pages with SYS_RESOURCE", kResourceOnly, {8 * kPage, 0, 0}, 16},
  };
  for (const Case& c : cases) {
    TestEngine engine(WithRoom(c.limits));
    engine.worker().SetIdentity({1, c.capabilities});
    CreatedPipe created = engine.engine().CreatePipe(engine.worker());

    EXPECT_EQ(created.error, c.slots == 0 ? ENFILE : 0) << c.what;
    EXPECT_EQ(engine.engine().UserSlots(1), c.slots) << c.what;
    if (!created.ok()) continue;
    EXPECT_EQ(created.pipe.ring_slots(), c.slots) << c.what;
    created.pipe.CloseReader(engine.worker());
    created.pipe.CloseWriter(engine.worker());
    EXPECT_EQ(engine.engine().UserSlots(1), 0u) << c.what;
  }
}

TEST(Creation, ASizeThatIsRefusedLeavesNothing) {
  TestEngine engine(WithRoom());
  engine.worker().SetIdentity({1, kNobody});
  const CreatedPipe created = engine.engine().CreatePipe(engine.worker(), {.bytes = 2 * kMiB});

  EXPECT_EQ(created.error, EPERM);
  EXPECT_FALSE(created.pipe.IsValid());
  EXPECT_EQ(engine.engine().UserSlots(1), 0u);
}

TEST(Creation, TheCreatorsAccountIsChargedWhoeverResizes) {
  TestEngine engine(WithRoom());
  engine.worker(1).SetIdentity({1, kNobody});
  engine.pipe().Resize(engine.worker(1), 32 * kPage);

  EXPECT_EQ(engine.engine().UserSlots(0), 32u);
  EXPECT_EQ(engine.engine().UserSlots(1), 0u);
}

}  // namespace
}  // namespace pipeyard::pipe
