#include "controller/scheduler/order.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace pipeyard::scheduler {
namespace {

// Two comparisons of two arms, and a reference variant.
const std::vector<OrderVariant> kVariants = {{0, true, "writers=1"},
                                             {1, true, "writers=1"},
                                             {2, true, "writers=2"},
                                             {3, true, "writers=2"},
                                             {4, false, ""}};

std::string Text(const std::vector<OrderedTrial>& order) {
  std::string text;
  uint32_t block = 0;
  for (const OrderedTrial& trial : order) {
    if (trial.block != block) {
      text += fmt::format("{}{}:", block == 0 ? "" : " | ", trial.block);
      block = trial.block;
    }
    text += fmt::format(" {}", trial.variant_index);
  }
  return text;
}

std::vector<uint32_t> Block(const std::vector<OrderedTrial>& order, uint32_t block) {
  std::vector<uint32_t> variants;
  for (const OrderedTrial& trial : order) {
    if (trial.block == block) variants.push_back(trial.variant_index);
  }
  return variants;
}

// Written down once: an order that changes changes every stored seed's meaning. Recomputed by
// testing/order_reference.py, a second implementation from the text in order.h.
TEST(Order, OfASeedAndHostIsThis) {
  EXPECT_EQ(
      Text(TrialOrder(spec::OrderKind::kBlocked, kVariants, 6, 42,
                      "00000000-0000-7000-8000-000000000001")),
      "1: 2 3 0 1 4 | 2: 4 1 0 3 2 | 3: 0 1 3 2 4 | 4: 4 2 3 1 0 | 5: 3 2 0 1 4 | 6: 4 1 0 2 3");
  EXPECT_EQ(Text(TrialOrder(spec::OrderKind::kRandom, kVariants, 3, 42,
                            "00000000-0000-7000-8000-000000000001")),
            "1: 3 2 2 3 1 4 2 4 3 0 1 0 4 0 1");
}

TEST(Order, EachBlockHasEveryVariantOnceWithTheArmsOfAComparisonAdjacent) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const auto order = TrialOrder(spec::OrderKind::kBlocked, kVariants, 5, seed, "host");
    ASSERT_EQ(order.size(), 25u);
    for (uint32_t block = 1; block <= 5; ++block) {
      const std::vector<uint32_t> variants = Block(order, block);
      ASSERT_EQ(std::set(variants.begin(), variants.end()).size(), 5u) << "seed " << seed;
      for (const uint32_t first : {0u, 2u}) {
        const auto a = std::ranges::find(variants, first) - variants.begin();
        const auto b = std::ranges::find(variants, first + 1) - variants.begin();
        ASSERT_EQ(std::abs(a - b), 1) << "seed " << seed << " block " << block;
      }
    }
  }
}

TEST(Order, AnEvenBlockIsTheOneBeforeReversed) {
  const auto order = TrialOrder(spec::OrderKind::kBlocked, kVariants, 6, 7, "host");

  for (const uint32_t block : {2u, 4u, 6u}) {
    std::vector<uint32_t> before = Block(order, block - 1);
    std::ranges::reverse(before);
    EXPECT_EQ(Block(order, block), before);
  }
}

TEST(Order, SeedAndHostBothChangeIt) {
  const auto order = [](uint64_t seed, const char* host) {
    return Text(TrialOrder(spec::OrderKind::kBlocked, kVariants, 6, seed, host));
  };

  EXPECT_NE(order(1, "a"), order(2, "a"));
  EXPECT_NE(order(1, "a"), order(1, "b"));
  EXPECT_EQ(order(1, "a"), order(1, "a"));
}

TEST(Order, ArmsComeFirstAboutEquallyOften) {
  int num_first = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const auto order = TrialOrder(spec::OrderKind::kBlocked, kVariants, 1, seed, "host");
    const std::vector<uint32_t> variants = Block(order, 1);
    if (std::ranges::find(variants, 0u) < std::ranges::find(variants, 1u)) ++num_first;
  }

  EXPECT_GT(num_first, 440);
  EXPECT_LT(num_first, 560);
}

TEST(Order, RandomShufflesAllTrialsAndNumbersThemAsTheyRun) {
  const auto order = TrialOrder(spec::OrderKind::kRandom, kVariants, 4, 3, "host");

  ASSERT_EQ(order.size(), 20u);
  std::map<uint32_t, uint32_t> last;
  for (const OrderedTrial& trial : order) {
    EXPECT_EQ(trial.block, 1u);
    EXPECT_EQ(trial.trial_index, ++last[trial.variant_index]);
  }
  EXPECT_EQ(last.size(), 5u);
}

TEST(Order, ListedIsFileOrderInEachRepetition) {
  EXPECT_EQ(Text(TrialOrder(spec::OrderKind::kListed, kVariants, 2, 3, "host")),
            "1: 0 1 2 3 4 | 2: 0 1 2 3 4");
}

TEST(Order, BelowIsUniformAndInRange) {
  OrderGenerator generator(1, "host");
  std::vector<int> counts(6);
  for (int i = 0; i < 6000; ++i) ++counts[generator.Below(6)];

  for (const int count : counts) {
    EXPECT_GT(count, 850);
    EXPECT_LT(count, 1150);
  }
  EXPECT_EQ(generator.Below(1), 0u);
}

TEST(TrialSeed, IsSharedByTheArmsOfABlockAndDiffersBetweenBlocks) {
  EXPECT_EQ(TrialSeed(1, "a", 1), TrialSeed(1, "a", 1));
  EXPECT_NE(TrialSeed(1, "a", 1), TrialSeed(1, "a", 2));
  EXPECT_NE(TrialSeed(1, "a", 1), TrialSeed(1, "b", 1));
}

}  // namespace
}  // namespace pipeyard::scheduler
