#include "workloads/memory/page_node.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <set>
#include <vector>

namespace pipeyard::memory {
namespace {

struct Fixture {
  Fixture(uint32_t num_pages, const Watermarks& marks) : Fixture(num_pages, marks, own) {}
  // The node's lock and counts may lie where a child process reaches them.
  Fixture(uint32_t num_pages, const Watermarks& marks, NodePages& shared)
      : stack(PageNode::StackCapacity(num_pages)),
        links(num_pages),
        orders(num_pages),
        node({&shared, stack.data(), links.data(), orders.data()}, 0, num_pages, marks) {
    node.Init();
    node.AddPages();
  }

  NodePages own{};
  std::vector<PageId> stack;
  std::vector<BuddyLink> links;
  std::vector<uint8_t> orders;
  PageNode node;
};

TEST(PageNode, WatermarksAreTheKernels) {
  // /proc/zoneinfo's rule by hand: 1 GiB is 1048576 KiB; sqrt(16 * that) = 4096 KiB = 1024 pages;
  // step = max(256, 262144 / 1000).
  const Watermarks marks = KernelWatermarks(262144, 4096);
  EXPECT_EQ(marks.min, 1024u);
  EXPECT_EQ(marks.low, 1024u + 262u);
  EXPECT_EQ(marks.high, 1024u + 524u);
  // 64 MiB: 1024 KiB, a quarter is the larger step.
  EXPECT_EQ(KernelWatermarks(16384, 4096).min, 256u);
  EXPECT_EQ(KernelWatermarks(16384, 4096).low, 320u);
  // At most 256 MiB, whatever the node.
  EXPECT_EQ(KernelWatermarks(uint64_t{1} << 32, 4096).min, 65536u);
  EXPECT_EQ(KernelWatermarks(1000, 4096).high, 0u);
}

TEST(PageNode, AnAllocationLeavesWhatTheMarkAsksFor) {
  Fixture f(100, {10, 20, 30});
  std::vector<PageId> pages(100);

  EXPECT_EQ(f.node.TakePages(pages.data(), 90, Mark::kLow), 80u);
  EXPECT_EQ(f.node.TakePages(pages.data(), 1, Mark::kLow), 0u);
  EXPECT_EQ(f.node.TakeBlock(0, Mark::kLow), kNoPage);
  EXPECT_EQ(f.node.TakePages(pages.data() + 80, 90, Mark::kMin), 10u);
  EXPECT_EQ(f.node.TakeBlock(3, Mark::kMin), kNoPage);
  EXPECT_EQ(f.node.TakePages(pages.data() + 90, 90, Mark::kNone), 10u);
  EXPECT_EQ(f.node.num_free(), 0u);
}

TEST(PageNode, NothingComesOutOnceAnOwnerDied) {
  RegionLayout layout;
  const uint64_t offset = layout.Add(sizeof(NodePages), kCacheLine);
  const std::unique_ptr<Region> region = std::move(*Region::Create(layout));
  Fixture f(100, {}, *region->At<NodePages>(offset));
  std::vector<PageId> pages(8);
  ASSERT_EQ(f.node.TakePages(pages.data(), 8, Mark::kNone), 8u);
  ASSERT_FALSE(f.node.is_broken());
  const pid_t child = ::fork();
  if (child == 0) {
    static_cast<void>(f.node.lock_for_test().Lock());
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);

  EXPECT_TRUE(f.node.is_broken());
  f.node.GivePages(pages.data(), 4);
  f.node.GiveBlock(pages[4], 0);
  EXPECT_EQ(f.node.TakePages(pages.data(), 4, Mark::kNone), 0u);
  EXPECT_EQ(f.node.TakeBlock(0, Mark::kNone), kNoPage);
  EXPECT_FALSE(f.node.lock_for_test().IsLocked());
}

TEST(PageNode, WhatWasFreedLastComesFirst) {
  Fixture f(200, {});
  std::vector<PageId> pages(6);
  ASSERT_EQ(f.node.TakePages(pages.data(), 6, Mark::kNone), 6u);
  f.node.GivePages(pages.data(), 3);
  f.node.GivePages(pages.data() + 3, 3);

  std::vector<PageId> again(3);
  ASSERT_EQ(f.node.TakePages(again.data(), 3, Mark::kNone), 3u);
  EXPECT_EQ(again, (std::vector<PageId>{pages[3], pages[4], pages[5]}));
}

TEST(PageNode, TheStackGivesItsPagesUpForABlock) {
  Fixture f(64, {});
  std::vector<PageId> pages(64);
  ASSERT_EQ(f.node.TakePages(pages.data(), 64, Mark::kNone), 64u);
  f.node.GivePages(pages.data(), 64);

  EXPECT_EQ(f.node.TakeBlock(6, Mark::kNone), 0u);
}

TEST(PageNode, AFullStackOverflowsIntoTheBuddyWithoutLoss) {
  constexpr uint32_t kPages = 5000;
  Fixture f(kPages, {});
  std::vector<PageId> pages(kPages);
  ASSERT_EQ(f.node.TakePages(pages.data(), kPages, Mark::kNone), kPages);
  for (uint32_t i = 0; i + 50 <= kPages; i += 50) f.node.GivePages(pages.data() + i, 50);

  std::set<PageId> free;
  EXPECT_TRUE(f.node.ForEachFree([&](PageId page) { return free.insert(page).second; }).ok());
  EXPECT_EQ(free.size(), kPages);
  EXPECT_EQ(f.node.num_free(), kPages);
}

}  // namespace
}  // namespace pipeyard::memory
