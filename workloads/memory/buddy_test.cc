#include "workloads/memory/buddy.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "workloads/memory/testing.h"

namespace pipeyard::memory {
namespace {

// A node of pages [first, first + count).
struct Arena {
  Arena(PageId first_page, uint32_t num_pages)
      : first(first_page),
        count(num_pages),
        links(first_page + num_pages),
        orders(first_page + num_pages),
        buddy(&state, links.data(), orders.data(), first_page, num_pages) {
    buddy.Init();
    buddy.GiveRange(first, count);
  }
  uint32_t NumFree() const {
    uint32_t pages = 0;
    for (unsigned order = 0; order < kNumOrders; ++order) pages += buddy.NumBlocks(order) << order;
    return pages;
  }

  PageId first;
  uint32_t count;
  BuddyState state;
  std::vector<BuddyLink> links;
  std::vector<uint8_t> orders;
  Buddy buddy;
};

TEST(Buddy, SplitsALargeBlockAndJoinsItAgain) {
  Arena arena(0, 1024);
  ASSERT_EQ(arena.buddy.NumBlocks(10), 1u);

  EXPECT_EQ(arena.buddy.Take(0), 0u);
  for (unsigned order = 0; order < kMaxOrder; ++order) {
    EXPECT_EQ(arena.buddy.NumBlocks(order), 1u) << order;
  }
  EXPECT_EQ(arena.buddy.NumBlocks(10), 0u);
  EXPECT_EQ(arena.buddy.Take(3), 8u);

  arena.buddy.Give(8, 3);
  EXPECT_EQ(arena.buddy.NumBlocks(10), 0u);
  arena.buddy.Give(0, 0);
  EXPECT_EQ(arena.buddy.NumBlocks(10), 1u);
  EXPECT_EQ(arena.NumFree(), 1024u);
}

TEST(Buddy, DoesNotJoinABuddyOfAnotherOrderOrNode) {
  Arena arena(4, 8);  // 4..11: blocks 4-7 and 8-11
  EXPECT_EQ(arena.buddy.NumBlocks(2), 2u);
  EXPECT_EQ(arena.buddy.NumBlocks(3), 0u);

  ASSERT_EQ(arena.buddy.Take(1), 4u);
  ASSERT_EQ(arena.buddy.Take(0), 6u);
  // 4,5 are free as one block, 7 as a page: 6's buddy 7 joins, then 4-7; its buddy 0-3 is no page
  // of the node.
  arena.buddy.Give(4, 1);
  EXPECT_EQ(arena.buddy.NumBlocks(0), 1u);
  arena.buddy.Give(6, 0);
  EXPECT_EQ(arena.buddy.NumBlocks(2), 2u);
}

TEST(Buddy, HasNoBlockWhereOnlySmallerOnesAreFree) {
  Arena arena(0, 16);
  std::vector<PageId> pages;
  for (int i = 0; i < 16; ++i) pages.push_back(arena.buddy.Take(0));
  for (size_t i = 0; i < pages.size(); i += 2) arena.buddy.Give(pages[i], 0);

  EXPECT_EQ(arena.NumFree(), 8u);
  EXPECT_EQ(arena.buddy.Take(1), kNoPage);
  EXPECT_NE(arena.buddy.Take(0), kNoPage);
}

TEST(Buddy, TakesSinglePagesWithTheLowestLast) {
  Arena arena(0, 100);
  PageId pages[63];

  ASSERT_EQ(arena.buddy.TakePages(pages, 63), 63u);
  EXPECT_EQ(arena.NumFree(), 37u);
  PageId rest[63];
  EXPECT_EQ(arena.buddy.TakePages(rest, 63), 37u);
  EXPECT_EQ(arena.buddy.TakePages(rest, 1), 0u);
}

TEST(Buddy, RandomUseKeepsBlocksAlignedApartAndComplete) {
  const uint64_t seed = TestSeed(20261);
  std::mt19937_64 random(seed);
  for (const auto& [first, count] :
       std::vector<std::pair<PageId, uint32_t>>{{0, 4096}, {7, 1500}, {1000, 37}, {513, 2047}}) {
    Arena arena(first, count);
    std::map<PageId, unsigned> taken;  // by first page: order
    for (int step = 0; step < 20000; ++step) {
      if (random() % 100 < 55) {
        const auto order = static_cast<unsigned>(std::min<uint64_t>(random() % 14, 10) % 11);
        const PageId block = arena.buddy.Take(order);
        if (block == kNoPage) continue;
        ASSERT_EQ(block % (PageId{1} << order), 0u) << "seed " << seed;
        ASSERT_GE(block, first);
        ASSERT_LE(block + (PageId{1} << order), first + count);
        const auto next = taken.lower_bound(block);
        ASSERT_TRUE(next == taken.end() || next->first >= block + (PageId{1} << order));
        ASSERT_TRUE(next == taken.begin() ||
                    std::prev(next)->first + (PageId{1} << std::prev(next)->second) <= block);
        taken.emplace(block, order);
      } else if (!taken.empty()) {
        auto victim = taken.lower_bound(static_cast<PageId>(first + random() % count));
        if (victim == taken.end()) victim = taken.begin();
        arena.buddy.Give(victim->first, victim->second);
        taken.erase(victim);
      }
      if (step % 500 != 0) continue;
      uint32_t in_use = 0;
      for (const auto& [block, order] : taken) in_use += uint32_t{1} << order;
      ASSERT_EQ(arena.NumFree() + in_use, count) << "seed " << seed;
    }
    const Arena fresh(first, count);
    for (const auto& [block, order] : taken) arena.buddy.Give(block, order);
    for (unsigned order = 0; order < kNumOrders; ++order) {
      EXPECT_EQ(arena.buddy.NumBlocks(order), fresh.buddy.NumBlocks(order)) << order;
    }
  }
}

}  // namespace
}  // namespace pipeyard::memory
