// What the page allocator's tests share: topologies, an allocator on a machine of the test's
// choice.
//
// Thread safety: confined to one thread, the allocator itself as it says.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "workloads/memory/page_allocator.h"
#include "workloads/memory/testing.h"
#include "workloads/numa/fake_numa_kernel.h"

namespace pipeyard::memory {

inline constexpr uint64_t kTestPage = 4096;

// Node i has CPU i where has_cpu; distance |i - j| * 10 + 10.
struct TestNode {
  bool has_memory = true;
  bool has_cpu = true;
};
inline numa::Topology MakeTopology(const std::vector<TestNode>& given, bool is_emulated = false) {
  std::vector<numa::Node> nodes;
  const int count = static_cast<int>(given.size());
  for (int i = 0; i < count; ++i) {
    numa::Node node;
    node.id = i;
    if (given[static_cast<size_t>(i)].has_cpu) node.cpus = {i};
    node.memory_bytes = given[static_cast<size_t>(i)].has_memory ? int64_t{1} << 40 : 0;
    for (int j = 0; j < count; ++j) node.distances.push_back(10 + 10 * (i < j ? j - i : i - j));
    nodes.push_back(std::move(node));
  }
  return *numa::Topology::Make(std::move(nodes), {0, 1}, is_emulated);
}
inline numa::Topology MakeTopology(int num_nodes) {
  return MakeTopology(std::vector<TestNode>(static_cast<size_t>(num_nodes)));
}

// An allocator of `pages` pages a node; worker i sits on the topology's CPU i.
struct PageFixture {
  explicit PageFixture(const numa::Topology& topology, uint64_t pages, size_t num_workers = 1,
                       PageAllocatorOptions given = {}) {
    options = std::move(given);
    options.arena_bytes = pages * kTestPage;
    for (size_t i = 0; i < num_workers; ++i) {
      options.worker_cpus.push_back(topology.cpus()[i % topology.cpus().size()]);
    }
    RegionLayout layout;
    PageAllocator::Plan plan = *PageAllocator::AddTo(layout, options, topology);
    PageAllocator::AddArenas(layout, options, plan);
    region = *Region::Create(layout);
    allocator = *PageAllocator::Create(*region, plan, options, topology, kernel);
  }
  uint64_t Count(PageCounter counter) const {
    return allocator->Counters()[static_cast<size_t>(counter)].value;
  }
  uint64_t NumAllocated() const {
    const Result<PageCensus> census = allocator->TakeCensus();
    EXPECT_TRUE(census.ok()) << census.status().ToString();
    return census.ok() ? census->num_allocated : UINT64_MAX;
  }
  PageWorker Worker(int index, std::string_view policy = "default") const {
    PageWorker worker = allocator->MakeWorker(index);
    worker.policy.SetPolicy(*ParsePolicy(policy));
    return worker;
  }
  // The nodes of the next `count` pages, which stay allocated; -1 for a failure.
  std::vector<int> Nodes(PageWorker& worker, int count) const {
    std::vector<int> nodes;
    for (int i = 0; i < count; ++i) {
      const PageId page = allocator->Allocate(worker);
      nodes.push_back(page == kNoPage ? -1 : allocator->NodeOf(page));
    }
    return nodes;
  }

  PageAllocatorOptions options;
  numa::FakeNumaKernel kernel;
  std::unique_ptr<Region> region;
  std::unique_ptr<PageAllocator> allocator;
};

}  // namespace pipeyard::memory
