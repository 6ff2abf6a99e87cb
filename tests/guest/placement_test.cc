// The engine's arenas and placement proof on a machine with several real nodes.
#include "workloads/numa/placement.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "tests/guest/real_arenas.h"

namespace pipeyard {
namespace {

// Small pages of a huge one.
constexpr int64_t kHugePages = 512;

TEST_F(RealArenasTest, LieOnTheirNodes) {
  EXPECT_TRUE(pages_->is_bound());
  ASSERT_EQ(pages_->arenas().size(), static_cast<size_t>(topology_.memory_nodes().Count()));

  const auto counts = numa::VerifyPlacement(kernel_, pages_->arenas(), HostPageBytes(),
                                            [](size_t, uint64_t) { return true; });

  ASSERT_TRUE(counts.ok()) << counts.status().message();
  for (const numa::PlacementCount& count : *counts) {
    ASSERT_EQ(count.pages_on.size(), 1u);
    EXPECT_GE(count.pages_on.at(count.expected), static_cast<int64_t>(kArenaPages));
    EXPECT_EQ(count.not_present, 0);
    EXPECT_EQ(count.unknown, 0);
  }
}

TEST_F(RealArenasTest, GiveAPageOfTheNodeThatIsAskedFor) {
  PageWorker worker = pages_->MakeWorker(0);
  for (const NodeId node : topology_.memory_nodes().Nodes()) {
    const PageId page = pages_->Allocate(worker, Prefer(node));

    ASSERT_NE(page, kNoPage);
    EXPECT_EQ(pages_->NodeOf(page), node);
    EXPECT_EQ(KernelsNodeOf(page), node);
    pages_->Put(worker, page);
  }
}

TEST_F(RealArenasTest, GiveEachWorkerPagesOfItsOwnNode) {
  for (size_t i = 0; i < worker_cpus_.size(); ++i) {
    PageWorker worker = pages_->MakeWorker(static_cast<int>(i));

    const PageId page = pages_->Allocate(worker);

    ASSERT_NE(page, kNoPage);
    EXPECT_EQ(KernelsNodeOf(page), topology_.LocalMemoryNode(worker_cpus_[i]));
    pages_->Put(worker, page);
  }
}

// The nodes of all pages in the order in which a worker gets them, each once.
TEST_F(RealArenasTest, AreUsedUpFromTheNearestToTheFarthest) {
  PageWorker worker = pages_->MakeWorker(0);
  for (const numa::Node& start : topology_.nodes()) {
    std::vector<NodeId> order;
    std::vector<PageId> taken;
    for (PageId page; (page = pages_->Allocate(worker, Prefer(start.id))) != kNoPage;) {
      taken.push_back(page);
      const NodeId node = KernelsNodeOf(page);
      if (order.empty() || order.back() != node) order.push_back(node);
    }

    EXPECT_EQ(order, topology_.FallbackOrder(start.id)) << "from node " << start.id;
    for (const PageId page : taken) pages_->Put(worker, page);
  }
}

TEST_F(RealArenasTest, FailWhereTheAllowedNodeIsUsedUp) {
  PageWorker worker = pages_->MakeWorker(0);
  const NodeId last = topology_.memory_nodes().Nodes().back();
  const PagePlacement only{last, NodeMask::Of({last})};
  std::vector<PageId> taken;

  for (PageId page; (page = pages_->Allocate(worker, only)) != kNoPage;) {
    EXPECT_EQ(KernelsNodeOf(page), last);
    taken.push_back(page);
  }

  EXPECT_FALSE(taken.empty());
  for (const PageId page : taken) pages_->Put(worker, page);
}

TEST_F(RealArenasTest, ProofCatchesAPageThatWasMovedAway) {
  const std::vector<NodeId> nodes = topology_.memory_nodes().Nodes();
  PageWorker worker = pages_->MakeWorker(0);
  const PageId page = pages_->Allocate(worker, Prefer(nodes[0]));
  ASSERT_NE(page, kNoPage);
  void* address = pages_->Address(page);
  const int target = nodes[1];
  int status = -1;
  constexpr int kMove = 1 << 1;  // MPOL_MF_MOVE
  ASSERT_EQ(::syscall(SYS_move_pages, 0, 1, &address, &target, &status, kMove), 0);
  ASSERT_EQ(status, target);

  const auto counts = numa::VerifyPlacement(kernel_, pages_->arenas(), HostPageBytes(),
                                            [](size_t, uint64_t) { return true; });

  ASSERT_TRUE(counts.ok()) << counts.status().message();
  const auto away = std::find_if(counts->begin(), counts->end(),
                                 [&](const auto& count) { return count.expected == nodes[0]; });
  ASSERT_NE(away, counts->end());
  // The page alone, or the whole huge page that it is a part of.
  EXPECT_TRUE(away->misplaced() == 1 || away->misplaced() == kHugePages) << away->misplaced();
  EXPECT_EQ(away->pages_on.at(target), away->misplaced());
}

}  // namespace
}  // namespace pipeyard
