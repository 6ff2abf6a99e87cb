#include "base/ids.h"

#include <gtest/gtest.h>

#include <set>

namespace pipeyard {
namespace {

TEST(Ids, AreUuidsOfVersionSevenWithTheTimeInFront) {
  FakeClock clock;
  IdSource ids(clock, 1);

  const std::string id = ids.Next();

  EXPECT_TRUE(IsUuid(id)) << id;
  EXPECT_EQ(id[14], '7');
  EXPECT_NE(std::string("89ab").find(id[19]), std::string::npos) << id;
  // 2026-01-01T00:00:00Z is 1767225600000 ms.
  EXPECT_EQ(id.substr(0, 13), "019b76da-a800");
}

TEST(Ids, GrowAndNeverRepeatWithinOneMillisecond) {
  FakeClock clock;
  IdSource ids(clock, 2);
  std::string last;
  for (int i = 0; i < 10'000; ++i) {
    const std::string id = ids.Next();
    ASSERT_GT(id, last);
    last = id;
  }
}

TEST(Ids, GrowThoughTheWallClockStepsBack) {
  FakeClock clock;
  IdSource ids(clock, 3);
  const std::string before = ids.Next();

  clock.StepUtc(-Seconds(3600));

  EXPECT_GT(ids.Next(), before);
}

TEST(Ids, AreDrawnFromTheKernelWithoutASeed) {
  IdSource a(SystemClock());
  IdSource b(SystemClock());
  EXPECT_NE(a.Next(), b.Next());
}

TEST(Ids, OtherTextsAreNoUuids) {
  for (const char* text :
       {"", "latest", "019b76da-a800-7000-8000-00000000000", "019B76DA-A800-7000-8000-000000000000",
        "019b76da_a800-7000-8000-000000000000", "019b76da-a800-7000-8000-0000000000000"}) {
    EXPECT_FALSE(IsUuid(text)) << text;
  }
}

TEST(Ids, BootIdIsRead) {
  const Result<std::string> boot = ReadBootId();
  ASSERT_TRUE(boot.ok());
  EXPECT_EQ(*boot, *ReadBootId());
}

}  // namespace
}  // namespace pipeyard
