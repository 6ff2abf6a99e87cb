#include "workloads/memory/memory_controller.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>
#include <vector>

#include "workloads/memory/testing.h"

namespace pipeyard::memory {
namespace {

constexpr int64_t kPage = 4096;

struct Fixture {
  Fixture(int num_workers, const MemoryControllerOptions& options)
      : stocks(static_cast<size_t>(num_workers)) {
    controller.Init(&state, stocks.data(), num_workers, options, kPage);
  }
  // Pages that worker 0 can charge before it is refused.
  int64_t ChargeAll() {
    int64_t pages = 0;
    while (controller.Charge(stocks[0], kPage)) ++pages;
    return pages;
  }

  MemoryControllerState state{};
  std::vector<ChargeStock> stocks;
  MemoryController controller;
};

TEST(MemoryController, ChargesABatchAndServesTheRestFromTheStock) {
  Fixture f(2, {});
  ASSERT_TRUE(f.controller.Charge(f.stocks[0], kPage));
  EXPECT_EQ(f.controller.charged_bytes(), 64u * kPage);
  for (int i = 0; i < 63; ++i) ASSERT_TRUE(f.controller.Charge(f.stocks[0], kPage));

  EXPECT_EQ(f.controller.charged_bytes(), 64u * kPage);
  EXPECT_EQ(f.controller.used_bytes(), 64u * kPage);
}

TEST(MemoryController, AFullStockGoesBackAltogether) {
  Fixture f(1, {});
  for (int i = 0; i < 128; ++i) ASSERT_TRUE(f.controller.Charge(f.stocks[0], kPage));
  for (int i = 0; i < 64; ++i) f.controller.Uncharge(f.stocks[0], kPage);
  EXPECT_EQ(f.controller.charged_bytes(), 128u * kPage);

  f.controller.Uncharge(f.stocks[0], kPage);
  EXPECT_EQ(f.controller.charged_bytes(), 63u * kPage);
  EXPECT_EQ(f.controller.used_bytes(), 63u * kPage);
}

TEST(MemoryController, TheLimitIsReachedExactlyAndNeverPassed) {
  for (const int64_t limit_pages : {1, 2, 10, 64, 100, 1000}) {
    for (const int num_workers : {1, 2, 40}) {
      Fixture f(num_workers, {true, static_cast<uint64_t>(limit_pages * kPage)});
      EXPECT_EQ(f.ChargeAll(), limit_pages) << num_workers << " workers";
      EXPECT_EQ(f.controller.charged_bytes(), static_cast<uint64_t>(limit_pages * kPage));
      EXPECT_EQ(f.controller.peak_bytes(), static_cast<uint64_t>(limit_pages * kPage));
    }
  }
}

TEST(MemoryController, NearTheLimitAFreeIsThereForEverybodyAtOnce) {
  Fixture f(2, {true, 100 * kPage});
  ASSERT_EQ(f.ChargeAll(), 100);

  EXPECT_FALSE(f.controller.Charge(f.stocks[1], kPage));
  f.controller.Uncharge(f.stocks[0], kPage);
  EXPECT_TRUE(f.controller.Charge(f.stocks[1], kPage));
}

TEST(MemoryController, IdleStocksKeepLessThanASixteenthFromTheLimit) {
  Fixture f(4, {true, 1000 * kPage});
  for (size_t i = 1; i < 4; ++i) {
    ASSERT_TRUE(f.controller.Charge(f.stocks[i], kPage));
    f.controller.Uncharge(f.stocks[i], kPage);
  }

  EXPECT_GE(f.ChargeAll(), 1000 - 1000 / 16);
}

TEST(MemoryController, StocksFillAgainFarBelowTheLimit) {
  Fixture f(1, {true, 3200 * kPage});
  const int64_t pages = f.ChargeAll();
  for (int64_t i = 0; i < pages; ++i) f.controller.Uncharge(f.stocks[0], kPage);
  ASSERT_EQ(f.controller.used_bytes(), 0u);
  f.controller.EmptyStock(f.stocks[0]);

  ASSERT_TRUE(f.controller.Charge(f.stocks[0], kPage));
  EXPECT_EQ(f.controller.charged_bytes(), 64u * kPage);
}

TEST(MemoryController, OffItCountsAndRefusesNothing) {
  Fixture f(1, {false, kPage});
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(f.controller.Charge(f.stocks[0], kPage));

  EXPECT_EQ(f.controller.charged_bytes(), 0u);
  EXPECT_EQ(f.controller.used_bytes(), 0u);
}

TEST(MemoryController, BytesAndPagesShareOneStock) {
  Fixture f(1, {});
  ASSERT_TRUE(f.controller.Charge(f.stocks[0], kPage));
  ASSERT_TRUE(f.controller.Charge(f.stocks[0], 192));
  f.controller.Uncharge(f.stocks[0], kPage);

  EXPECT_EQ(f.controller.used_bytes(), 192u);
}

TEST(MemoryController, WorkersAtOnceNeitherLoseChargesNorPassTheLimit) {
  constexpr int kWorkers = 4;
  constexpr int64_t kLimitPages = 700;
  const uint64_t seed = TestSeed(20262);
  Fixture f(kWorkers, {true, kLimitPages * kPage});
  std::vector<int64_t> held(kWorkers);
  std::vector<std::thread> threads;
  for (int i = 0; i < kWorkers; ++i) {
    threads.emplace_back([&, i] {
      const auto index = static_cast<size_t>(i);
      std::mt19937_64 random(seed + index);
      for (int step = 0; step < 50000; ++step) {
        if (random() % 2 == 0) {
          if (f.controller.Charge(f.stocks[index], kPage)) ++held[index];
        } else if (held[index] != 0) {
          f.controller.Uncharge(f.stocks[index], kPage);
          --held[index];
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  int64_t used = 0;
  for (const int64_t pages : held) used += pages * kPage;
  EXPECT_EQ(f.controller.used_bytes(), static_cast<uint64_t>(used));
  EXPECT_LE(f.controller.peak_bytes(), static_cast<uint64_t>(kLimitPages * kPage));
}

}  // namespace
}  // namespace pipeyard::memory
