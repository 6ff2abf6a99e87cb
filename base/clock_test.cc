#include "base/clock.h"

#include <gtest/gtest.h>

namespace pipeyard {
namespace {

TEST(Clock, UtcIsWrittenWithMilliseconds) {
  EXPECT_EQ(FormatUtc(Nanos(0)), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(FormatUtc(FakeClock().UtcNow() + Milliseconds(123)), "2026-01-01T00:00:00.123Z");
  EXPECT_EQ(FormatUtc(-Milliseconds(1)), "1969-12-31T23:59:59.999Z");
}

TEST(Clock, SystemMonotonicNeverRunsBack) {
  const MonotonicTime first = SystemClock().Now();
  EXPECT_GE(SystemClock().Now(), first);
}

TEST(FakeClock, StepMovesTheWallClockAlone) {
  FakeClock clock;
  const UtcTime utc = clock.UtcNow();

  clock.Advance(Seconds(1));
  clock.StepUtc(-Seconds(5));

  EXPECT_EQ(clock.Now(), Seconds(1));
  EXPECT_EQ(clock.UtcNow(), utc - Seconds(4));
}

}  // namespace
}  // namespace pipeyard
