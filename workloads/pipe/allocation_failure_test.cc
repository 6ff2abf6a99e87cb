// Allocation failures at every place, one after the other: nothing is lost, nothing is held twice,
// and the pipe works again.

#include <errno.h>
#include <gtest/gtest.h>

#include "workloads/pipe/poll.h"
#include "workloads/pipe/testing.h"

namespace pipeyard::pipe {
namespace {

class FailingAllocations : public EveryCache {
 protected:
  // How many pages a large write allocates before it takes the mutex, where failing shows nowhere.
  static uint64_t NumHidden() {
    switch (GetParam()) {
      case PageCache::kPrealloc:
      case PageCache::kPool:
        return 8;
      case PageCache::kPreallocV1:
        return 1;  // accounted
      case PageCache::kTwoPage:
      case PageCache::kOnePage:
        break;
    }
    return 0;
  }
};
PIPEYARD_EVERY_CACHE(FailingAllocations);

// Fails allocation 1, 2, ... until a write of a full pipe no longer notices.
TEST_P(FailingAllocations, OnceAtEveryPlaceTheWriteIsShortOrWhole) {
  constexpr uint64_t kPages = 16;
  for (uint64_t i = 1;; ++i) {
    TestEngine engine(WithCache());
    memory::AllocationFailures failures{i, 1};
    engine.engine().pages().InjectFailures(&failures);
    const int64_t result = engine.Write(StreamBytes(0, kPages * kPage));
    engine.engine().pages().InjectFailures(nullptr);
    if (failures.num_allocations < i) {
      EXPECT_EQ(result, static_cast<int64_t>(kPages * kPage));
      EXPECT_GT(i, kPages);
      break;
    }
    // A failure in the preallocation ends only that.
    const int64_t expected = i <= NumHidden() ? kPages * kPage
                             : i == 1         ? -ENOMEM
                                              : static_cast<int64_t>((i - 1) * kPage);
    EXPECT_EQ(result, expected) << "allocation " << i;
    if (result > 0) {
      EXPECT_EQ(engine.ReadText(kPages * kPage), StreamBytes(0, static_cast<size_t>(result)));
    }
    EXPECT_EQ(engine.Write(kPage), static_cast<int64_t>(kPage)) << "the pipe works again";
  }
}

TEST_P(FailingAllocations, FromEveryPlaceOnTheWriteIsShort) {
  for (uint64_t i = 1; i <= 16; ++i) {
    TestEngine engine(WithCache());
    memory::AllocationFailures failures{i, UINT64_MAX};
    engine.engine().pages().InjectFailures(&failures);

    EXPECT_EQ(engine.Write(16 * kPage), i == 1 ? -ENOMEM : static_cast<int64_t>((i - 1) * kPage));
    engine.engine().pages().InjectFailures(nullptr);
  }
}

TEST_P(FailingAllocations, CachedPagesNeedNoAllocation) {
  TestEngine engine(WithCache());
  engine.Write(2 * kPage);
  engine.Read(2 * kPage);
  const int64_t num_cached = GetParam() == PageCache::kOnePage ? 1 : 2;
  memory::AllocationFailures failures{1, UINT64_MAX};
  engine.engine().pages().InjectFailures(&failures);

  EXPECT_EQ(engine.Write(4 * kPage), num_cached * static_cast<int64_t>(kPage));
  engine.engine().pages().InjectFailures(nullptr);
}

TEST_P(FailingAllocations, WhatMergedStaysWhenThePageIsMissing) {
  TestEngine engine(WithCache());
  engine.Write(StreamBytes(0, 100));
  memory::AllocationFailures failures{1, UINT64_MAX};
  engine.engine().pages().InjectFailures(&failures);

  EXPECT_EQ(engine.Write(StreamBytes(100, kPage + 50)), 50);
  engine.engine().pages().InjectFailures(nullptr);
  EXPECT_EQ(engine.ReadText(1000), StreamBytes(0, 150));
}

// What a scenario of every kind of call allocates: infos, small and large rings, data pages. Calls
// may fail; pages and objects must not get lost. Returns how many calls failed.
int RunScenario(TestEngine& engine) {
  Engine& e = engine.engine();
  Worker& worker = engine.worker();
  int num_failed = 0;
  std::string data(20 * kPage, 'x');
  for (int round = 0; round < 2; ++round) {
    const CreatedPipe created = e.CreatePipe(worker);
    if (!created.ok()) {
      EXPECT_EQ(created.error, ENFILE);
      ++num_failed;
      continue;
    }
    Pipe pipe = created.pipe;
    for (const uint64_t slots : {uint64_t{4}, uint64_t{256}, uint64_t{32}}) {
      const IoResult written = pipe.Write(worker, data.data(), 3 * kPage + 10, kIoNonblocking);
      if (!written.ok()) ++num_failed;
      const int64_t resized = pipe.Resize(worker, slots * kPage);
      if (resized < 0) {
        EXPECT_EQ(resized, -ENOMEM);
        ++num_failed;
      }
      PollEntry entry{pipe, PipeEnd::kRead, kPollIn};
      Poll(worker, {&entry, 1}, Nanos(0));
      EXPECT_EQ(entry.revents, pipe.Occupancy() != 0 ? kPollIn : 0);
      pipe.Read(worker, data.data(), 2 * kPage, kIoNonblocking);
    }
    EXPECT_EQ(pipe.CloseWriter(worker), 0);
    EXPECT_EQ(pipe.CloseReader(worker), 0);
    const Status sound = e.CheckConservation();
    EXPECT_TRUE(sound.ok()) << sound.ToString();
  }
  return num_failed;
}

TEST_P(FailingAllocations, AtEveryPlaceOfAScenarioNothingIsLost) {
  for (const bool is_for_good : {false, true}) {
    for (uint64_t i = 1;; ++i) {
      TestEngine engine(WithCache());
      memory::AllocationFailures failures{i, is_for_good ? UINT64_MAX : 1};
      engine.engine().pages().InjectFailures(&failures);
      const int num_failed = RunScenario(engine);
      engine.engine().pages().InjectFailures(nullptr);
      EXPECT_EQ(engine.engine().UserSlots(0), kDefaultSlots) << "charged for pipes that are gone";
      EXPECT_EQ(engine.DataPages(), 0u);
      if (failures.num_allocations < i) {
        EXPECT_EQ(num_failed, 0);
        EXPECT_GT(i, 10u);
        break;
      }
      ASSERT_LT(i, 1000u);
    }
  }
}

}  // namespace
}  // namespace pipeyard::pipe
