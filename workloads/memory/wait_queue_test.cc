#include "workloads/memory/wait_queue.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "workloads/memory/region.h"
#include "workloads/memory/testing.h"

namespace pipeyard::memory {
namespace {

class WaitQueueTest : public ::testing::Test {
 protected:
  WaitQueueTest() {
    RegionLayout layout;
    nodes_offset_ = layout.Add(sizeof(WaitNode) * 8, kCacheLine);
    queue_offset_ = layout.Add(sizeof(WaitQueue), kCacheLine);
    region_ = *Region::Create(layout);
    nodes_ = region_->At<WaitNode>(nodes_offset_);
    queue_ = region_->At<WaitQueue>(queue_offset_);
  }

  void Join(int node, bool is_exclusive = true) {
    nodes_[node].sleeper.Prepare();
    queue_->Join(region_->base(), nodes_[node].sleeper, nodes_[node].entry,
                 is_exclusive ? WaitKind::kExclusive : WaitKind::kShared);
  }
  void Leave(int node) { queue_->Leave(region_->base(), nodes_[node].entry); }
  int WakeOne() {
    PendingWakes wakes;
    const int woken = queue_->WakeOne(region_->base(), wakes);
    wakes.Flush();
    return woken;
  }
  bool IsQueued(int node) const { return nodes_[node].entry.is_queued != 0; }
  int Count() const { return queue_->CountWaiters(region_->base()); }

  uint64_t nodes_offset_;
  uint64_t queue_offset_;
  std::unique_ptr<Region> region_;
  WaitNode* nodes_;
  WaitQueue* queue_;
};

TEST_F(WaitQueueTest, WakesExclusiveWaitersInOrderOfArrival) {
  for (int i = 0; i < 3; ++i) Join(i);

  EXPECT_EQ(WakeOne(), 1);
  EXPECT_FALSE(IsQueued(0));
  EXPECT_TRUE(IsQueued(1));
  EXPECT_EQ(WakeOne(), 1);
  EXPECT_FALSE(IsQueued(1));
  EXPECT_EQ(Count(), 1);
}

TEST_F(WaitQueueTest, AWakeUpReachesAllNonExclusiveAndOneExclusive) {
  Join(0);
  Join(1, /*is_exclusive=*/false);
  Join(2);
  Join(3, /*is_exclusive=*/false);

  EXPECT_EQ(WakeOne(), 3);
  EXPECT_FALSE(IsQueued(0));
  EXPECT_FALSE(IsQueued(1));
  EXPECT_TRUE(IsQueued(2));
  EXPECT_FALSE(IsQueued(3));
}

TEST_F(WaitQueueTest, WakeAllReachesEverybody) {
  for (int i = 0; i < 4; ++i) Join(i, i % 2 == 0);

  EXPECT_EQ(queue_->WakeAll(region_->base()), 4);
  EXPECT_TRUE(queue_->IsEmpty());
}

TEST_F(WaitQueueTest, NobodyToWakeIsNoError) {
  EXPECT_EQ(WakeOne(), 0);
  EXPECT_EQ(queue_->WakeAll(region_->base()), 0);
}

TEST_F(WaitQueueTest, LeavingFromAnyPlaceKeepsTheOthersInOrder) {
  for (int leaver = 0; leaver < 3; ++leaver) {
    for (int i = 0; i < 3; ++i) Join(i);
    Leave(leaver);
    Leave(leaver);

    EXPECT_EQ(Count(), 2);
    for (int i = 0; i < 3; ++i) {
      if (i == leaver) continue;
      EXPECT_TRUE(IsQueued(i));
      EXPECT_EQ(WakeOne(), 1);
      EXPECT_FALSE(IsQueued(i));
    }
    EXPECT_TRUE(queue_->IsEmpty());
  }
}

TEST_F(WaitQueueTest, AWakeUpBeforeTheSleepIsNotLost) {
  Join(0);
  WakeOne();

  EXPECT_FALSE(SleepUntilWoken(nodes_[0].sleeper));
}

TEST_F(WaitQueueTest, ASleeperIsWoken) {
  Join(0);
  std::thread sleeper([this] { SleepUntilWoken(nodes_[0].sleeper); });
  ASSERT_TRUE(Eventually([&] { return nodes_[0].sleeper.state.load() == Sleeper::kSleeping; }));
  WakeOne();
  sleeper.join();

  EXPECT_EQ(nodes_[0].sleeper.state.load(), Sleeper::kWoken);
}

TEST_F(WaitQueueTest, AnInterruptionEndsTheSleepAndIsUsedUp) {
  Join(0);
  std::thread sleeper([this] { SleepUntilWoken(nodes_[0].sleeper); });
  ASSERT_TRUE(Eventually([&] { return nodes_[0].sleeper.state.load() == Sleeper::kSleeping; }));
  Interrupt(nodes_[0].sleeper, Interruption::kOnce);
  sleeper.join();

  EXPECT_TRUE(IsQueued(0));
  EXPECT_NE(TakeInterruption(nodes_[0].sleeper), Interruption::kNone);
  EXPECT_EQ(TakeInterruption(nodes_[0].sleeper), Interruption::kNone);
}

TEST_F(WaitQueueTest, AnInterruptionBeforeTheSleepPreventsIt) {
  Interrupt(nodes_[0].sleeper, Interruption::kOnce);
  Join(0);

  EXPECT_FALSE(SleepUntilWoken(nodes_[0].sleeper));
}

TEST_F(WaitQueueTest, AnInterruptionForGoodStays) {
  Interrupt(nodes_[0].sleeper, Interruption::kForGood);
  Interrupt(nodes_[0].sleeper, Interruption::kOnce);

  EXPECT_NE(TakeInterruption(nodes_[0].sleeper), Interruption::kNone);
  EXPECT_NE(TakeInterruption(nodes_[0].sleeper), Interruption::kNone);
}

}  // namespace
}  // namespace pipeyard::memory
