// Layout and creation of a PageAllocator, and what changes about its nodes later.
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <set>
#include <string>

#include "workloads/memory/page_allocator.h"

namespace pipeyard::memory {
namespace {

Status CheckOptions(const PageAllocatorOptions& options, const numa::Topology& topology) {
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
  numa::NodeMask known = topology.memory_nodes();
  for (const OfflineNode& node : options.offline_nodes) {
    if (node.id < 0 || node.id >= numa::kMaxNodes || known.Contains(node.id)) {
      return InvalidArgument("offline node " + std::to_string(node.id) +
                             ": must be a node from 0 to " + std::to_string(numa::kMaxNodes - 1) +
                             " that has no memory yet");
    }
    known.Add(node.id);
  }
  return Status::Ok();
}

}  // namespace

uint32_t PageAllocator::ListHigh(uint64_t num_pages, size_t num_workers, size_t num_cpus) {
  const uint64_t share_of_node = num_pages / (2 * std::max<size_t>(num_workers, 1));
  const uint64_t share_of_cpu =
      std::max<uint64_t>(kSharedListHigh, kListHigh * num_cpus / std::max<size_t>(num_workers, 1));
  return static_cast<uint32_t>(
      std::clamp<uint64_t>(std::min(share_of_node, share_of_cpu), 2, kListHigh));
}

Result<PageAllocator::Plan> PageAllocator::AddTo(RegionLayout& layout,
                                                 const PageAllocatorOptions& options,
                                                 const numa::Topology& topology) {
  PIPEYARD_RETURN_IF_ERROR(CheckOptions(options, topology));
  Plan plan;
  auto add_node = [&](numa::NodeId id, uint64_t pages, bool has_reserve_within) {
    Watermarks marks = KernelWatermarks(pages, options.page_bytes);
    if (!has_reserve_within) pages += marks.high;
    plan.node_ids.push_back(id);
    plan.arena_pages.push_back(pages);
    plan.watermarks.push_back(marks);
    plan.num_pages += pages;
  };
  for (const numa::Node& node : topology.nodes()) {
    if (!node.has_memory()) continue;
    uint64_t bytes = options.arena_bytes;
    if (topology.is_emulated()) bytes = std::min(bytes, static_cast<uint64_t>(node.memory_bytes));
    add_node(node.id, bytes / options.page_bytes, topology.is_emulated());
  }
  if (plan.num_pages == 0) {
    return InvalidArgument("engine: the nodes hold less than one page of " +
                           std::to_string(options.page_bytes) + " bytes");
  }
  for (const OfflineNode& node : options.offline_nodes) {
    add_node(node.id, node.arena_bytes / options.page_bytes, false);
  }
  if (plan.num_pages >= kNoPage) return OutOfRange("engine: arenas of more than 2^32 pages");

  const size_t num_nodes = plan.node_ids.size();
  const size_t num_workers = options.worker_cpus.size();
  plan.gates_offset = layout.Add(sizeof(AllocationGates), kCacheLine);
  plan.nodes_offset = layout.Add(sizeof(NodePages) * num_nodes, kCacheLine);
  plan.lists_offset = layout.Add(sizeof(PageList) * num_nodes * num_workers, kCacheLine);
  plan.counters_offset = layout.Add(sizeof(CounterBlock<PageCounter>) * num_workers, kCacheLine);
  plan.controller_offset = layout.Add(sizeof(MemoryControllerState), kCacheLine);
  plan.stocks_offset = layout.Add(sizeof(ChargeStock) * num_workers, kCacheLine);
  for (const uint64_t pages : plan.arena_pages) {
    const uint32_t capacity = PageNode::StackCapacity(static_cast<uint32_t>(pages));
    plan.stack_offsets.push_back(layout.Add(sizeof(PageId) * capacity, kCacheLine));
  }
  plan.page_words_offset = layout.Add(sizeof(std::atomic<uint32_t>) * plan.num_pages, kCacheLine);
  plan.links_offset = layout.Add(sizeof(BuddyLink) * plan.num_pages, kCacheLine);
  plan.orders_offset = layout.Add(plan.num_pages, kCacheLine);
  return plan;
}

void PageAllocator::AddArenas(RegionLayout& layout, const PageAllocatorOptions& options,
                              Plan& plan) {
  plan.pages_offset = layout.Add(plan.num_pages * options.page_bytes, RegionLayout::kMaxAlignment);
}

Result<std::unique_ptr<PageAllocator>> PageAllocator::Create(Region& region, const Plan& plan,
                                                             const PageAllocatorOptions& options,
                                                             const numa::Topology& topology,
                                                             numa::NumaKernel& kernel) {
  std::unique_ptr<PageAllocator> allocator(new PageAllocator());
  PageAllocator& self = *allocator;
  const size_t num_online = plan.node_ids.size() - options.offline_nodes.size();
  self.region_ = &region;
  self.kernel_ = &kernel;
  self.pages_ = region.base() + plan.pages_offset;
  self.pages_offset_ = plan.pages_offset;
  self.page_bytes_ = static_cast<int64_t>(options.page_bytes);
  self.page_shift_ = static_cast<uint32_t>(std::countr_zero(options.page_bytes));
  self.num_nodes_ = static_cast<uint32_t>(plan.node_ids.size());
  self.num_pages_ = plan.num_pages;
  self.num_workers_ = static_cast<int>(options.worker_cpus.size());
  self.is_emulated_ = topology.is_emulated();
  self.source_ = options.source;
  self.weights_ = options.weights;
  self.gates_ = region.At<AllocationGates>(plan.gates_offset);
  self.lists_ = region.At<PageList>(plan.lists_offset);
  self.counters_ = region.At<CounterBlock<PageCounter>>(plan.counters_offset);
  self.stocks_ = region.At<ChargeStock>(plan.stocks_offset);
  self.page_words_ = region.At<std::atomic<uint32_t>>(plan.page_words_offset);

  self.controller_.Init(region.At<MemoryControllerState>(plan.controller_offset), self.stocks_,
                        self.num_workers_, options.accounting, options.page_bytes);
  self.is_bound_ = !self.is_emulated_;
  self.nodes_.reserve(self.num_nodes_);
  const std::set<numa::CpuId> cpus(options.worker_cpus.begin(), options.worker_cpus.end());
  uint64_t memory_nodes = 0;
  PageId next_page = 0;
  for (size_t i = 0; i < self.num_nodes_; ++i) {
    const auto num_pages = static_cast<uint32_t>(plan.arena_pages[i]);
    const numa::NodeId id = plan.node_ids[i];
    self.node_ids_[i] = id;
    self.node_index_[id] = static_cast<uint32_t>(i);
    self.arenas_.push_back({id, self.Address(next_page), uint64_t{num_pages} << self.page_shift_});
    self.nodes_.emplace_back(PageNode::Parts{region.At<NodePages>(plan.nodes_offset) + i,
                                             region.At<PageId>(plan.stack_offsets[i]),
                                             region.At<BuddyLink>(plan.links_offset),
                                             region.At<uint8_t>(plan.orders_offset)},
                             next_page, num_pages, plan.watermarks[i]);
    uint32_t word = 1 | static_cast<uint32_t>(i) << kPageNodeShift;
    if (self.source_ == PageSource::kOnDemand) word |= kPageOnDemand;
    for (PageId page = next_page; page < next_page + num_pages; ++page) {
      self.page_words_[page].store(word, std::memory_order_relaxed);
    }
    const uint32_t high = ListHigh(num_pages, options.worker_cpus.size(), cpus.size());
    for (size_t worker = 0; worker < options.worker_cpus.size(); ++worker) {
      self.lists_[worker * self.num_nodes_ + i].high = high;
    }
    self.nodes_[i].Init();
    if (i < num_online) {
      PIPEYARD_RETURN_IF_ERROR(self.PrepareArena(i, /*must_bind=*/num_online > 1));
      self.nodes_[i].AddPages();
      memory_nodes |= uint64_t{1} << id;
    }
    next_page += num_pages;
  }
  self.gates_->memory_nodes.store(memory_nodes, std::memory_order_relaxed);
  self.gates_->cpuset_nodes.store(~uint64_t{0}, std::memory_order_relaxed);
  const bool has_one_real_node = num_online == 1 && !self.is_emulated_;
  for (size_t i = 0; i < kNumAllocationPaths; ++i) {
    const auto path = static_cast<AllocationPath>(i);
    if (!has_one_real_node || !options.fastpath.Of(path)) self.gates_->Add(path, kPolicyDecides);
    if (self.source_ == PageSource::kOnDemand) self.gates_->Add(path, kPagesOnDemand);
  }
  self.BuildFallback(topology);
  for (const numa::CpuId cpu : options.worker_cpus) {
    self.worker_placements_.push_back({topology.LocalMemoryNode(cpu), topology.memory_nodes()});
  }
  return allocator;
}

Status PageAllocator::PrepareArena(size_t index, bool must_bind) {
  const numa::PageRange& arena = arenas_[index];
  if (!is_emulated_) {
    const int error = kernel_->Bind(arena.address, arena.size_bytes, numa::PolicyMode::kBind,
                                    numa::NodeMask::Of({arena.node}));
    if (error != 0 && must_bind) {
      return FailedPrecondition("engine: bind the arena of node " + std::to_string(arena.node) +
                                ": " + ErrnoText(error));
    }
    // One memory node: its pages can be nowhere else (containers often forbid the call).
    if (error != 0) is_bound_ = false;
  }
  if (source_ == PageSource::kOnDemand) return Status::Ok();
  return region_->Populate(static_cast<uint64_t>(arena.address - region_->base()),
                           arena.size_bytes);
}

void PageAllocator::BuildFallback(const numa::Topology& topology) {
  fallback_.resize(numa::kMaxNodes);
  fallback_ids_.resize(numa::kMaxNodes);
  for (numa::NodeId id = 0; id < numa::kMaxNodes; ++id) {
    const auto i = static_cast<size_t>(id);
    // A node that the topology lacks has no distances; that of its first node stands in.
    const bool is_known = topology.Find(id) != nullptr;
    std::vector<numa::NodeId>& order = fallback_ids_[i];
    order = topology.FallbackOrder(is_known ? id : topology.nodes().front().id);
    for (const numa::PageRange& arena : arenas_) {
      // Nodes that are offline are farthest from all others, and nearest to themselves.
      if (std::find(order.begin(), order.end(), arena.node) != order.end()) continue;
      order.insert(arena.node == id ? order.begin() : order.end(), arena.node);
    }
    for (const numa::NodeId node : order) fallback_[i].push_back(IndexOf(node));
    if (order.front() != id) node_index_[i] = IndexOf(order.front());
  }
}

PageWorker PageAllocator::MakeWorker(int index) const {
  const auto i = static_cast<size_t>(index);
  PageWorker worker;
  worker.lists = lists_ + i * num_nodes_;
  worker.local = worker_placements_[i];
  worker.local_list = worker.lists + IndexOf(worker.local.preferred);
  worker.counters = counters_ + i;
  worker.stock = stocks_ + i;
  worker.context.local = worker.local.preferred;
  worker.context.local_order = FallbackOrder(worker.local.preferred);
  worker.context.allowed = AllowedNodes();
  worker.context.host_weights = &weights_;
  return worker;
}

void PageAllocator::SetCpuset(numa::NodeMask mems_allowed) {
  gates_->cpuset_nodes.store(mems_allowed.bits(), std::memory_order_seq_cst);
  const uint64_t excluded =
      gates_->memory_nodes.load(std::memory_order_relaxed) & ~mems_allowed.bits();
  for (size_t i = 0; i < kNumAllocationPaths; ++i) {
    if (excluded != 0) {
      gates_->Add(static_cast<AllocationPath>(i), kCpusetExcludes);
    } else {
      gates_->Remove(static_cast<AllocationPath>(i), kCpusetExcludes);
    }
  }
}

Status PageAllocator::OnlineNode(numa::NodeId node) {
  // First of all: whatever fails below, no allocation that starts from here on may pass a policy
  // by.
  for (size_t i = 0; i < kNumAllocationPaths; ++i) {
    gates_->Add(static_cast<AllocationPath>(i), kPolicyDecides);
  }
  gates_->num_flips.fetch_add(1, std::memory_order_seq_cst);
  if (node < 0 || node >= numa::kMaxNodes) return Status::Ok();
  const uint64_t bit = uint64_t{1} << node;
  if ((gates_->memory_nodes.load(std::memory_order_relaxed) & bit) != 0) return Status::Ok();
  for (size_t i = 0; i < num_nodes_; ++i) {
    if (node_ids_[i] != node) continue;
    PIPEYARD_RETURN_IF_ERROR(PrepareArena(i, /*must_bind=*/true));
    nodes_[i].AddPages();
    gates_->memory_nodes.fetch_or(bit, std::memory_order_seq_cst);
    SetCpuset(numa::NodeMask::FromBits(gates_->cpuset_nodes.load(std::memory_order_relaxed)));
  }
  return Status::Ok();
}

void PageAllocator::InjectFailures(AllocationFailures* failures) {
  failures_ = failures;
  for (size_t i = 0; i < kNumAllocationPaths; ++i) {
    if (failures != nullptr) {
      gates_->Add(static_cast<AllocationPath>(i), kFailuresInjected);
    } else {
      gates_->Remove(static_cast<AllocationPath>(i), kFailuresInjected);
    }
  }
}

}  // namespace pipeyard::memory
