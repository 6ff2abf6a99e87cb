// A machine of several nodes with page and object allocator, for tests of the object allocator.
//
// Thread safety: confined to one thread, but for the allocators themselves.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "workloads/memory/object_allocator.h"
#include "workloads/memory/policy.h"
#include "workloads/memory/testing.h"
#include "workloads/numa/fake_numa_kernel.h"

namespace pipeyard::memory {

// `num_nodes` nodes of one CPU each, CPU i on node i; distances 10 and 20 + the ids' difference.
inline numa::Topology Machine(int num_nodes) {
  std::vector<numa::Node> nodes;
  std::vector<numa::CpuId> cpus;
  for (int i = 0; i < num_nodes; ++i) {
    numa::Node node{i, {i}, int64_t{1} << 30, {}};
    for (int j = 0; j < num_nodes; ++j) {
      node.distances.push_back(i == j ? numa::kLocalDistance
                                      : numa::kDefaultRemoteDistance + (i > j ? i - j : j - i));
    }
    nodes.push_back(node);
    cpus.push_back(i);
  }
  return *numa::Topology::Make(nodes, cpus, false);
}

struct ObjectFixture {
  // Worker i is on CPU worker_cpus[i]; `num_pages` pages a node.
  explicit ObjectFixture(int num_nodes, std::vector<numa::CpuId> worker_cpus,
                         const ObjectAllocatorOptions& object_options = {},
                         uint64_t num_pages = 2048, PageAllocatorOptions page_options = {})
      : topology(Machine(num_nodes)), options(std::move(page_options)) {
    options.arena_bytes = num_pages * options.page_bytes;
    options.worker_cpus = std::move(worker_cpus);
    RegionLayout layout;
    PageAllocator::Plan pages_plan = *PageAllocator::AddTo(layout, options, topology);
    const ObjectAllocator::Plan plan =
        *ObjectAllocator::AddTo(layout, object_options, pages_plan, options);
    PageAllocator::AddArenas(layout, options, pages_plan);
    region = *Region::Create(layout);
    pages = *PageAllocator::Create(*region, pages_plan, options, topology, kernel);
    objects = *ObjectAllocator::Create(*region, plan, object_options, *pages, topology);
    const size_t num_workers = options.worker_cpus.size();
    for (size_t i = 0; i < num_workers; ++i) {
      page_workers.push_back(std::make_unique<PageWorker>(pages->MakeWorker(static_cast<int>(i))));
      workers.push_back(objects->MakeWorker(static_cast<int>(i), *page_workers.back()));
    }
  }

  void SetPolicy(size_t worker, std::string_view text) {
    page_workers[worker]->policy.SetPolicy(*ParsePolicy(text));
  }
  uint64_t Count(ObjectCounter counter) const {
    return objects->Counters()[static_cast<size_t>(counter)].value;
  }
  ObjectCensus Census() const {
    const Result<ObjectCensus> census = objects->TakeCensus();
    EXPECT_TRUE(census.ok()) << census.status().message();
    return census.ok() ? *census : ObjectCensus{};
  }
  // Every page is with the page allocator, or of a slab or block.
  void ExpectPagesConserved() const {
    const Result<PageCensus> census = pages->TakeCensus();
    ASSERT_TRUE(census.ok()) << census.status().message();
    EXPECT_EQ(census->num_allocated, Census().num_pages);
  }
  std::vector<ObjectRef> Allocate(size_t worker, size_t count, uint32_t size_bytes,
                                  numa::NodeId node = numa::kNoNode) {
    std::vector<ObjectRef> refs;
    for (size_t i = 0; i < count; ++i)
      refs.push_back(objects->Allocate(workers[worker], size_bytes, node));
    return refs;
  }
  void Free(size_t worker, const std::vector<ObjectRef>& refs, uint32_t size_bytes) {
    for (const ObjectRef ref : refs) objects->Free(workers[worker], ref, size_bytes);
  }
  // Leaves `num_slabs` slabs of that size on `node` with half of their objects out: returned.
  std::vector<ObjectRef> MakePartialSlabs(size_t worker, numa::NodeId node, uint32_t size_bytes,
                                          uint32_t num_slabs) {
    const uint32_t class_index = SlabClassIndex(size_bytes);
    const SlabClass& slab_class = objects->slab_class(class_index);
    const auto per_slab =
        static_cast<uint32_t>((pages->page_bytes() << slab_class.order) / slab_class.bytes);
    const std::vector<ObjectRef> refs =
        Allocate(worker, size_t{per_slab} * num_slabs, size_bytes, node);
    std::vector<ObjectRef> kept;
    for (size_t i = 0; i < refs.size(); ++i) {
      if (i % 2 == 0) {
        kept.push_back(refs[i]);
      } else {
        objects->Free(workers[worker], refs[i], size_bytes);
      }
    }
    objects->Flush(workers[worker]);
    return kept;
  }

  numa::Topology topology;
  PageAllocatorOptions options;
  numa::FakeNumaKernel kernel;
  std::unique_ptr<Region> region;
  std::unique_ptr<PageAllocator> pages;
  std::unique_ptr<ObjectAllocator> objects;
  std::vector<std::unique_ptr<PageWorker>> page_workers;
  std::vector<ObjectWorker> workers;
};

}  // namespace pipeyard::memory
