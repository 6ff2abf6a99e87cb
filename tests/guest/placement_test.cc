// The engine's arenas and placement proof on a machine with several real nodes.
#include "workloads/numa/placement.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "tests/guest/machine.h"
#include "workloads/memory/page_allocator.h"
#include "workloads/memory/region.h"

namespace pipeyard {
namespace {

using memory::kNoPage;
using memory::PageAllocator;
using memory::PageAllocatorOptions;
using memory::PageId;
using memory::PagePlacement;
using memory::PageWorker;
using memory::Region;
using numa::NodeId;
using numa::NodeMask;

// An allocator over the machine's own nodes, with one worker on the first CPU of each.
class RealArenasTest : public testing::Test {
 protected:
  static constexpr uint64_t kArenaPages = 512;

  void SetUp() override {
    ASSERT_GE(topology_.memory_nodes().Count(), 2);
    PageAllocatorOptions options;
    options.page_bytes = HostPageBytes();
    options.arena_bytes = kArenaPages * HostPageBytes();
    for (const numa::Node& node : topology_.nodes()) {
      if (!node.cpus.empty()) options.worker_cpus.push_back(node.cpus.front());
    }
    worker_cpus_ = options.worker_cpus;
    memory::RegionLayout layout;
    const auto plan = PageAllocator::AddTo(layout, options, topology_);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    auto region = Region::Create(layout);
    ASSERT_TRUE(region.ok()) << region.status().message();
    region_ = std::move(*region);
    auto pages = PageAllocator::Create(*region_, *plan, options, topology_, kernel_);
    ASSERT_TRUE(pages.ok()) << pages.status().message();
    pages_ = std::move(*pages);
  }

  PagePlacement Prefer(NodeId node) const { return {node, topology_.memory_nodes()}; }

  // Where the kernel says that the page is.
  NodeId KernelsNodeOf(PageId page) {
    void* const address = pages_->Address(page);
    int node = -1;
    kernel_.PopulateRead(address, HostPageBytes());
    EXPECT_EQ(kernel_.QueryNodes({&address, 1}, {&node, 1}), 0);
    return node;
  }

  const numa::Topology topology_ = RealTopology();
  numa::NumaKernel& kernel_ = numa::SystemNumaKernel();
  std::vector<numa::CpuId> worker_cpus_;
  std::unique_ptr<Region> region_;
  std::unique_ptr<PageAllocator> pages_;
};

TEST_F(RealArenasTest, LieOnTheirNodes) {
  EXPECT_TRUE(pages_->is_bound());
  ASSERT_EQ(pages_->arenas().size(), static_cast<size_t>(topology_.memory_nodes().Count()));

  const auto counts = numa::VerifyPlacement(kernel_, pages_->arenas(), HostPageBytes(),
                                            [](size_t, uint64_t) { return true; });

  ASSERT_TRUE(counts.ok()) << counts.status().message();
  for (const numa::PlacementCount& count : *counts) {
    EXPECT_EQ(count.pages_on, (std::map<NodeId, int64_t>{{count.expected, kArenaPages}}));
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
  EXPECT_EQ(away->misplaced(), 1);
  EXPECT_EQ(away->pages_on.at(target), 1);
}

}  // namespace
}  // namespace pipeyard
