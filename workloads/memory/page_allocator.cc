#include "workloads/memory/page_allocator.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

namespace pipeyard::memory {

const CounterDefinition kPageCounters[static_cast<size_t>(PageCounter::kCount)] = {
    {"pages_allocated", "pages", CounterReduction::kSum, "pages handed out by the page allocator"},
    {"pages_freed", "pages", CounterReduction::kSum, "pages given back to the page allocator"},
    {"page_allocation_failures", "count", CounterReduction::kSum,
     "allocations that found no page on any allowed node"},
    {"page_allocation_fallbacks", "pages", CounterReduction::kSum,
     "pages that came from another node than the preferred one"},
    {"page_list_refills", "count", CounterReduction::kSum,
     "batches that a worker took from a node, under the node's lock"},
    {"page_list_drains", "count", CounterReduction::kSum,
     "batches that a worker gave back to a node, under the node's lock"},
};

namespace {

std::vector<const numa::Node*> MemoryNodes(const numa::Topology& topology) {
  std::vector<const numa::Node*> nodes;
  for (const numa::Node& node : topology.nodes()) {
    if (node.has_memory()) nodes.push_back(&node);
  }
  return nodes;
}

}  // namespace

Result<PageAllocator::Plan> PageAllocator::AddTo(RegionLayout& layout,
                                                 const PageAllocatorOptions& options,
                                                 const numa::Topology& topology) {
  const uint64_t host_page_bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  if (!std::has_single_bit(options.page_bytes) || options.page_bytes < host_page_bytes ||
      options.page_bytes > RegionLayout::kMaxAlignment) {
    return InvalidArgument("page size " + std::to_string(options.page_bytes) +
                           ": must be a power of two from the host's " +
                           std::to_string(host_page_bytes) + " to " +
                           std::to_string(RegionLayout::kMaxAlignment));
  }
  for (const numa::CpuId cpu : options.worker_cpus) {
    if (topology.NodeOfCpu(cpu) < 0) {
      return InvalidArgument("worker on CPU " + std::to_string(cpu) +
                             ": no such CPU in the topology");
    }
  }
  const std::vector<const numa::Node*> nodes = MemoryNodes(topology);
  const size_t num_workers = options.worker_cpus.size();
  Plan plan;
  plan.nodes_offset = layout.Add(sizeof(NodePages) * nodes.size(), kCacheLine);
  plan.lists_offset = layout.Add(sizeof(PageList) * nodes.size() * num_workers, kCacheLine);
  plan.counters_offset = layout.Add(sizeof(CounterBlock<PageCounter>) * num_workers, kCacheLine);
  for (const numa::Node* node : nodes) {
    uint64_t bytes = options.arena_bytes;
    if (topology.is_emulated()) bytes = std::min(bytes, static_cast<uint64_t>(node->memory_bytes));
    plan.arena_pages.push_back(bytes / options.page_bytes);
    plan.num_pages += plan.arena_pages.back();
    plan.stack_offsets.push_back(layout.Add(sizeof(PageId) * plan.arena_pages.back(), kCacheLine));
  }
  if (plan.num_pages == 0) {
    return InvalidArgument("engine: the nodes hold less than one page of " +
                           std::to_string(options.page_bytes) + " bytes");
  }
  if (plan.num_pages >= kNoPage) return InvalidArgument("engine: arenas of more than 2^32 pages");
  plan.references_offset = layout.Add(sizeof(std::atomic<uint16_t>) * plan.num_pages, kCacheLine);
  plan.page_nodes_offset = layout.Add(plan.num_pages, kCacheLine);
  plan.pages_offset = layout.Add(plan.num_pages * options.page_bytes, RegionLayout::kMaxAlignment);
  return plan;
}

Result<std::unique_ptr<PageAllocator>> PageAllocator::Create(Region& region, const Plan& plan,
                                                             const PageAllocatorOptions& options,
                                                             const numa::Topology& topology,
                                                             numa::NumaKernel& kernel) {
  std::unique_ptr<PageAllocator> allocator(new PageAllocator());
  PageAllocator& self = *allocator;
  const std::vector<const numa::Node*> nodes = MemoryNodes(topology);
  self.region_ = &region;
  self.pages_ = region.base() + plan.pages_offset;
  self.page_shift_ = static_cast<uint32_t>(std::countr_zero(options.page_bytes));
  self.num_nodes_ = static_cast<uint32_t>(nodes.size());
  self.num_pages_ = plan.num_pages;
  self.num_workers_ = static_cast<int>(options.worker_cpus.size());
  self.nodes_ = region.At<NodePages>(plan.nodes_offset);
  self.lists_ = region.At<PageList>(plan.lists_offset);
  self.counters_ = region.At<CounterBlock<PageCounter>>(plan.counters_offset);
  self.references_ = region.At<std::atomic<uint16_t>>(plan.references_offset);
  self.page_nodes_ = region.At<uint8_t>(plan.page_nodes_offset);

  // The parts before the pages are small and used by everybody; the machine's default places them.
  PIPEYARD_RETURN_IF_ERROR(
      region.Populate(plan.nodes_offset, plan.pages_offset - plan.nodes_offset));
  self.is_bound_ = !topology.is_emulated();
  PageId next_page = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const auto num_pages = static_cast<uint32_t>(plan.arena_pages[i]);
    std::byte* arena = self.Address(next_page);
    const uint64_t arena_bytes = uint64_t{num_pages} << self.page_shift_;
    if (!topology.is_emulated()) {
      const int error = kernel.Bind(arena, arena_bytes, numa::PolicyMode::kBind,
                                    numa::NodeMask::Of({nodes[i]->id}));
      if (error != 0 && nodes.size() > 1) {
        return FailedPrecondition("engine: bind the arena of node " + std::to_string(nodes[i]->id) +
                                  ": " + ErrnoText(error));
      }
      // One memory node: its pages can be nowhere else (containers often forbid the call).
      if (error != 0) self.is_bound_ = false;
    }
    PIPEYARD_RETURN_IF_ERROR(
        region.Populate(static_cast<uint64_t>(arena - region.base()), arena_bytes));
    NodePages& node = self.nodes_[i];
    node.first_page = next_page;
    node.num_pages = num_pages;
    node.stack_offset = plan.stack_offsets[i];
    auto* stack = region.At<PageId>(node.stack_offset);
    // The lowest page on top.
    for (uint32_t j = 0; j < num_pages; ++j) {
      const PageId page = next_page + num_pages - 1 - j;
      stack[j] = page;
      self.references_[page].store(1, std::memory_order_relaxed);
      self.page_nodes_[page] = static_cast<uint8_t>(nodes[i]->id);
    }
    static_cast<void>(node.mutex.Lock());
    node.num_free = num_pages;
    node.mutex.Unlock();
    self.arenas_.push_back({nodes[i]->id, arena, arena_bytes});
    self.node_ids_[i] = nodes[i]->id;
    self.node_index_[nodes[i]->id] = static_cast<uint32_t>(i);
    next_page += num_pages;
  }

  self.fallback_.resize(numa::kMaxNodes);
  for (const numa::Node& node : topology.nodes()) {
    const std::vector<numa::NodeId> order = topology.FallbackOrder(node.id);
    for (const numa::NodeId id : order) {
      self.fallback_[static_cast<size_t>(node.id)].push_back(self.node_index_[id]);
    }
    if (!node.has_memory()) self.node_index_[node.id] = self.node_index_[order.front()];
  }
  for (const numa::CpuId cpu : options.worker_cpus) {
    self.worker_placements_.push_back({topology.LocalMemoryNode(cpu), topology.memory_nodes()});
  }
  return allocator;
}

PageWorker PageAllocator::MakeWorker(int index) const {
  const auto i = static_cast<size_t>(index);
  return PageWorker{lists_ + i * num_nodes_, counters_ + i, worker_placements_[i]};
}

PageId PageAllocator::FailAllocation(PageWorker& worker) {
  worker.counters->Add(PageCounter::kFailed);
  return kNoPage;
}

PageId PageAllocator::AllocateSlowly(PageWorker& worker, const PagePlacement& placement) {
  for (const uint32_t index : fallback_[static_cast<size_t>(placement.preferred)]) {
    if (!placement.allowed.Contains(node_ids_[index])) continue;
    PageList& list = worker.lists[index];
    if (list.count == 0 && !Refill(worker, list, index)) continue;
    worker.counters->Add(PageCounter::kAllocated);
    if (node_ids_[index] != placement.preferred) worker.counters->Add(PageCounter::kFallback);
    return list.pages[--list.count];
  }
  return FailAllocation(worker);
}

bool PageAllocator::Refill(PageWorker& worker, PageList& list, uint32_t node_index) {
  NodePages& node = nodes_[node_index];
  const auto* stack = region_->At<PageId>(node.stack_offset);
  // An owner that died here left num_free as it was before or after its batch: at worst a batch is
  // lost, none is given out twice.
  static_cast<void>(node.mutex.Lock());
  const uint32_t count = std::min(kListBatch, node.num_free);
  std::memcpy(list.pages, stack + (node.num_free - count), count * sizeof(PageId));
  node.num_free -= count;
  node.mutex.Unlock();
  list.count = count;
  if (count != 0) worker.counters->Add(PageCounter::kRefills);
  return count != 0;
}

void PageAllocator::Drain(PageWorker& worker, PageList& list, uint32_t node_index) {
  NodePages& node = nodes_[node_index];
  auto* stack = region_->At<PageId>(node.stack_offset);
  static_cast<void>(node.mutex.Lock());
  // The coldest pages go; the list keeps what was freed last.
  std::memcpy(stack + node.num_free, list.pages, kListBatch * sizeof(PageId));
  node.num_free += kListBatch;
  node.mutex.Unlock();
  list.count -= kListBatch;
  std::memmove(list.pages, list.pages + kListBatch, list.count * sizeof(PageId));
  worker.counters->Add(PageCounter::kDrains);
}

bool PageAllocator::DropReference(PageId page) {
  // Release: what this holder did to the page comes before the last holder frees it; acquire for
  // the last one.
  if (references_[page].fetch_sub(1, std::memory_order_acq_rel) != 1) return false;
  references_[page].store(1, std::memory_order_relaxed);
  return true;
}

Result<PageCensus> PageAllocator::TakeCensus() const {
  PageCensus census;
  census.total = num_pages_;
  census.is_allocated.assign(num_pages_, true);
  auto take = [&](PageId page) {
    if (page >= num_pages_ || !census.is_allocated[page]) return false;
    census.is_allocated[page] = false;
    return true;
  };
  for (uint32_t i = 0; i < num_nodes_; ++i) {
    NodePages& node = nodes_[i];
    const auto* stack = region_->At<PageId>(node.stack_offset);
    const bool is_owner_dead = node.mutex.Lock().is_owner_dead;
    bool is_sound = node.num_free <= node.num_pages;
    for (uint32_t j = 0; is_sound && j < node.num_free; ++j) is_sound = take(stack[j]);
    if (is_sound) census.free_on_nodes += node.num_free;
    node.mutex.Unlock();
    if (is_owner_dead) return Internal("page census: a worker died holding the lock of a node");
    if (!is_sound) return Internal("page census: a page is free twice");
  }
  for (uint64_t i = 0; i < uint64_t{num_nodes_} * static_cast<uint64_t>(num_workers_); ++i) {
    const PageList& list = lists_[i];
    if (list.count > kListHigh) return Internal("page census: a list holds more than its capacity");
    for (uint32_t j = 0; j < list.count; ++j) {
      if (!take(list.pages[j])) return Internal("page census: a page is free twice");
    }
    census.free_on_lists += list.count;
  }
  census.num_allocated = census.total - census.free_on_nodes - census.free_on_lists;
  return census;
}

std::vector<CounterValue> PageAllocator::Counters() const {
  std::vector<CounterValue> values;
  for (size_t i = 0; i < static_cast<size_t>(PageCounter::kCount); ++i) {
    CounterValue value{kPageCounters[i].name, kPageCounters[i].unit, 0};
    for (int worker = 0; worker < num_workers_; ++worker) {
      value.value = Reduce(kPageCounters[i].reduction, value.value,
                           counters_[worker].Get(static_cast<PageCounter>(i)));
    }
    values.push_back(value);
  }
  return values;
}

}  // namespace pipeyard::memory
