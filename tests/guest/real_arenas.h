// RealArenasTest: the engine's page allocator over the machine's own nodes, with one worker on the
// first CPU of each that has CPUs.
//
// Thread safety: none is needed.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "tests/guest/machine.h"
#include "workloads/memory/page_allocator.h"
#include "workloads/memory/region.h"

namespace pipeyard {

using memory::kNoPage;
using memory::PageAllocator;
using memory::PageAllocatorOptions;
using memory::PageId;
using memory::PagePlacement;
using memory::PageWorker;
using numa::NodeId;
using numa::NodeMask;

class RealArenasTest : public testing::Test {
 protected:
  static constexpr uint64_t kArenaPages = 512;

  void SetUp() override { Create(PageAllocatorOptions{}); }

  // `options` but for pages and workers.
  void Create(PageAllocatorOptions options) {
    pages_.reset();
    options.page_bytes = HostPageBytes();
    options.arena_bytes = kArenaPages * HostPageBytes();
    for (const numa::Node& node : topology_.nodes()) {
      if (!node.cpus.empty()) options.worker_cpus.push_back(node.cpus.front());
    }
    worker_cpus_ = options.worker_cpus;
    memory::RegionLayout layout;
    auto plan = PageAllocator::AddTo(layout, options, topology_);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    PageAllocator::AddArenas(layout, options, *plan);
    auto region = memory::Region::Create(layout);
    ASSERT_TRUE(region.ok()) << region.status().message();
    region_ = std::move(*region);
    auto pages = PageAllocator::Create(*region_, *plan, options, topology_, kernel_);
    ASSERT_TRUE(pages.ok()) << pages.status().message();
    pages_ = std::move(*pages);
  }

  PagePlacement Prefer(NodeId node) const { return {node, topology_.memory_nodes()}; }

  NodeMask AllNodes() const { return topology_.memory_nodes(); }

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
  std::unique_ptr<memory::Region> region_;
  std::unique_ptr<PageAllocator> pages_;
};

}  // namespace pipeyard
