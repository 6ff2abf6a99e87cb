// Several actors whose calls may wait: who returns, with what, and who still waits must be as with
// the kernel's pipe after every single operation. Planted faults of wake-ups must be found.

#include <gtest/gtest.h>

#include "workloads/memory/testing.h"
#include "workloads/pipe/differential/actor_comparison.h"
#include "workloads/pipe/differential/privilege.h"

namespace pipeyard::pipe::differential {
namespace {

#if defined(PIPEYARD_IS_SANITIZED)
constexpr uint64_t kOperations = 1'500;
#else
constexpr uint64_t kOperations = 10'000;
#endif
// Ends with the first difference.
constexpr uint64_t kOperationsToFind = 50'000;
constexpr size_t kMaxShrunk = 12;

struct Case {
  const char* name;
  PageCache page_cache;
  int num_actors;
  bool has_polls;
};

class Actors : public ::testing::TestWithParam<Case> {};

TEST_P(Actors, ReturnAndWaitAsWithTheKernel) {
  const uint64_t seed = memory::TestSeed(41);
  RunSettings settings;
  settings.page_cache = GetParam().page_cache;
  settings.num_actors = GetParam().num_actors;
  settings.has_polls = GetParam().has_polls;

  const ActorReport report = CompareActors(settings, MakeEngineSystem, seed, kOperations);

  if (!report.is_usable) GTEST_SKIP() << "/proc does not tell what a thread waits for";
  EXPECT_EQ(report.report.difference, "");
  // Else nothing was tested.
  EXPECT_GT(report.num_waits, kOperations / 20);
}

std::string NameOfCase(const ::testing::TestParamInfo<Case>& param) { return param.param.name; }

INSTANTIATE_TEST_SUITE_P(Differential, Actors,
                         ::testing::Values(Case{"TwoNeverPolled", PageCache::kTwoPage, 2, false},
                                           Case{"ThreeOnePage", PageCache::kOnePage, 3, true},
                                           Case{"FourTwoPage", PageCache::kTwoPage, 4, true},
                                           Case{"FivePrealloc", PageCache::kPrealloc, 5, true},
                                           Case{"FourPreallocV1", PageCache::kPreallocV1, 4, true},
                                           Case{"SixPool", PageCache::kPool, 6, true}),
                         NameOfCase);

// The soft limit was near on the engine's side alone: it refused resizes that the kernel made.
TEST(UnprivilegedActors, AreAsNearToTheirSoftLimitWithTheKernel) {
  const uint64_t seed = memory::TestSeed(770'004);
  RunSettings settings;
  settings.num_actors = 5;
  settings.is_unprivileged = true;

  const Result<std::string> difference = RunAs(Role::kUnprivileged, [&] {
    const ActorReport report = CompareActors(settings, MakeEngineSystem, seed, kOperations);
    return report.is_usable ? report.report.difference : "unusable";
  });

  ASSERT_TRUE(difference.ok()) << difference.status().ToString();
  if (*difference == "unusable") GTEST_SKIP() << "/proc does not tell what a thread waits for";
  EXPECT_EQ(*difference, "");
}

enum class WakeFault {
  kClosesSilently,   // the last close of an end wakes nobody
  kWakesOneOnClose,  // H3
  kWritesSilently,   // a write wakes no reader
  kLosesInterruptions,
};

class FaultySystem : public EngineSystem {
 public:
  FaultySystem(Engine& engine, WakeFault fault)
      : EngineSystem(engine), fault_(fault), region_(engine.region().base()) {}

  Outcome Close(int actor, int file) override {
    PipeInfo& info = PipeOf(file).info();
    const bool closes_silently =
        fault_ == WakeFault::kClosesSilently || fault_ == WakeFault::kWakesOneOnClose;
    if (closes_silently && info.readers + info.writers > 1) {
      static_cast<void>(info.mutex.Lock());
      memory::PendingWakes wakes;
      if (fault_ == WakeFault::kWakesOneOnClose) {
        info.readers_waiting.WakeOne(region_, wakes);
        info.writers_waiting.WakeOne(region_, wakes);
      }
      // What is left in the queues is not there for the close that follows.
      info.readers_waiting.DismissAll(region_);
      info.writers_waiting.DismissAll(region_);
      info.mutex.Unlock();
      wakes.Flush();
    }
    return EngineSystem::Close(actor, file);
  }

  Outcome Write(int actor, int file, const char* data, size_t size, bool is_quiet) override {
    if (fault_ == WakeFault::kWritesSilently) {
      PipeInfo& info = PipeOf(file).info();
      static_cast<void>(info.mutex.Lock());
      info.readers_waiting.DismissAll(region_);
      info.mutex.Unlock();
    }
    return EngineSystem::Write(actor, file, data, size, is_quiet);
  }

  void Interrupt(int actor) override {
    // In the end all must be let go.
    if (fault_ == WakeFault::kLosesInterruptions && num_lost_++ % 64 != 63) return;
    EngineSystem::Interrupt(actor);
  }

 private:
  const WakeFault fault_;
  std::byte* const region_;
  int num_lost_ = 0;
};

class PlantedWakeFault : public ::testing::TestWithParam<WakeFault> {};

TEST_P(PlantedWakeFault, IsFoundAndShrunk) {
  const uint64_t seed = memory::TestSeed(42);
  RunSettings settings;
  settings.num_actors = 4;

  const ActorReport report = CompareActors(
      settings, [](Engine& engine) { return std::make_unique<FaultySystem>(engine, GetParam()); },
      seed, kOperationsToFind);

  if (!report.is_usable) GTEST_SKIP() << "/proc does not tell what a thread waits for";
  EXPECT_NE(report.report.difference, "");
  EXPECT_LE(report.report.num_shrunk, kMaxShrunk) << report.report.difference;
}

INSTANTIATE_TEST_SUITE_P(Differential, PlantedWakeFault,
                         ::testing::Values(WakeFault::kClosesSilently, WakeFault::kWakesOneOnClose,
                                           WakeFault::kWritesSilently,
                                           WakeFault::kLosesInterruptions));

}  // namespace
}  // namespace pipeyard::pipe::differential
