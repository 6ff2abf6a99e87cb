#include "base/faulty_env.h"

#include <gtest/gtest.h>

namespace pipeyard {
namespace {

using Fault = FaultyEnv::Fault;
using Survives = FaultyEnv::Survives;

class FaultyEnvTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(env_.CreateDirs("/d").ok());
    ASSERT_TRUE(env_.SyncDir("/").ok());
  }

  FaultyEnv env_;
};

TEST_F(FaultyEnvTest, PowerLossDropsBytesThatWereNotSynced) {
  auto file = env_.OpenAppend("/d/f");
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->Append("synced").ok());
  ASSERT_TRUE((*file)->Sync().ok());
  ASSERT_TRUE(env_.SyncDir("/d").ok());
  ASSERT_TRUE((*file)->Append("lost").ok());

  env_.Reboot(Survives::kSynced);

  EXPECT_EQ(*env_.ReadFile("/d/f"), "synced");
}

TEST_F(FaultyEnvTest, PowerLossDropsANameWhoseFolderWasNotSynced) {
  auto file = env_.OpenAppend("/d/f");
  ASSERT_TRUE((*file)->Append("x").ok());
  ASSERT_TRUE((*file)->Sync().ok());

  env_.Reboot(Survives::kSynced);

  EXPECT_FALSE(env_.Exists("/d/f"));
}

TEST_F(FaultyEnvTest, HalfOfTheUnsyncedBytesIsATornTail) {
  auto file = env_.OpenAppend("/d/f");
  ASSERT_TRUE((*file)->Append("12345678").ok());

  env_.Reboot(Survives::kHalf);

  EXPECT_EQ(*env_.ReadFile("/d/f"), "1234");
}

TEST_F(FaultyEnvTest, BytesOfAFailedSyncAreGoneAlsoAfterALaterSync) {
  auto file = env_.OpenAppend("/d/f");
  ASSERT_TRUE(env_.SyncDir("/d").ok());
  ASSERT_TRUE((*file)->Append("ab").ok());
  env_.Inject(Fault::kFail, 0);
  ASSERT_FALSE((*file)->Sync().ok());
  ASSERT_TRUE((*file)->Append("cd").ok());
  ASSERT_TRUE((*file)->Sync().ok());

  env_.Reboot(Survives::kSynced);

  EXPECT_EQ(*env_.ReadFile("/d/f"), std::string("\0\0cd", 4));
}

TEST_F(FaultyEnvTest, NothingWorksBetweenPowerLossAndReboot) {
  env_.Inject(Fault::kPowerLoss, 1);

  EXPECT_TRUE(env_.FreeBytes("/d").ok());
  EXPECT_FALSE(env_.FreeBytes("/d").ok());
  EXPECT_FALSE(env_.ListDir("/d").ok());
  EXPECT_TRUE(env_.was_hit());
  env_.Reboot(Survives::kSynced);
  EXPECT_TRUE(env_.ListDir("/d").ok());
}

TEST_F(FaultyEnvTest, AnAtomicWriteShowsTheOldOrTheNewContentAtEveryStep) {
  ASSERT_TRUE(env_.WriteFileAtomic("/d/f", "old").ok());
  for (int step = 0;; ++step) {
    for (const Survives what : {Survives::kSynced, Survives::kHalf, Survives::kEverything}) {
      env_.Inject(Fault::kPowerLoss, step);
      const bool is_written = env_.WriteFileAtomic("/d/f", "new").ok();
      env_.Reboot(what);

      const auto content = env_.ReadFile("/d/f");
      ASSERT_TRUE(content.ok());
      EXPECT_TRUE(*content == "new" || (!is_written && *content == "old")) << *content;

      ASSERT_TRUE(env_.WriteFileAtomic("/d/f", "old").ok());
    }
    env_.Inject(Fault::kPowerLoss, step);
    (void)env_.WriteFileAtomic("/d/f", "old");
    const bool is_done = !env_.was_hit();
    env_.Reboot(Survives::kEverything);
    if (is_done) break;
  }
}

TEST_F(FaultyEnvTest, ALockIsFreeAfterARebootAndWhenItsHolderIsGone) {
  auto lock = env_.LockFile("/d/lock");
  ASSERT_TRUE(lock.ok());
  EXPECT_EQ(env_.LockFile("/d/lock").status().code(), StatusCode::kFailedPrecondition);

  env_.Reboot(Survives::kEverything);

  EXPECT_TRUE(env_.LockFile("/d/lock").ok());
}

TEST(CreateDirsDurably, TheFolderAndAllAboveItSurvivePowerLoss) {
  FaultyEnv env;

  ASSERT_TRUE(CreateDirsDurably(env, "/var/lib/pipeyard/controller").ok());
  env.Reboot(FaultyEnv::Survives::kSynced);

  EXPECT_TRUE(env.Exists("/var/lib/pipeyard/controller"));
}

}  // namespace
}  // namespace pipeyard
