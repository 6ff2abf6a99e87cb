// Where every page is, and the sums of what was counted.
#include "workloads/memory/page_allocator.h"

namespace pipeyard::memory {

Result<PageCensus> PageAllocator::TakeCensus() const {
  PageCensus census;
  census.is_allocated.assign(num_pages_, false);
  const numa::NodeMask online =
      numa::NodeMask::FromBits(gates_->memory_nodes.load(std::memory_order_relaxed));
  for (const PageNode& node : nodes_) {
    if (!online.Contains(node_ids_[&node - nodes_.data()])) continue;
    census.total += node.num_pages();
    for (PageId page = node.first_page(); page < node.first_page() + node.num_pages(); ++page) {
      census.is_allocated[page] = true;
    }
  }
  auto take = [&](PageId page) {
    if (page >= num_pages_ || !census.is_allocated[page]) return false;
    census.is_allocated[page] = false;
    return true;
  };
  for (PageNode& node : nodes_) {
    PIPEYARD_RETURN_IF_ERROR(node.ForEachFree(take));
    census.free_on_nodes += node.num_free();
  }
  for (uint64_t i = 0; i < uint64_t{num_nodes_} * static_cast<uint64_t>(num_workers_); ++i) {
    const PageList& list = lists_[i];
    if (list.count > list.high) return Internal("page census: a list holds more than its capacity");
    for (uint32_t j = 0; j < list.count; ++j) {
      if (!take(list.pages[j])) return Internal("page census: a page is free twice");
    }
    census.free_on_lists += list.count;
  }
  census.num_allocated = census.total - census.free_on_nodes - census.free_on_lists;
  return census;
}

std::vector<CounterValue> PageAllocator::Counters() const {
  std::vector<CounterValue> values = ReduceCounters(kPageCounters, counters_, num_workers_);
  const auto of = [&](PageCounter counter) -> uint64_t& {
    return values[static_cast<size_t>(counter)].value;
  };
  of(PageCounter::kFaultPages) += of(PageCounter::kFastpathFault);
  of(PageCounter::kBulkPages) += of(PageCounter::kFastpathBulk);
  of(PageCounter::kBlockPages) += of(PageCounter::kFastpathBlock);
  of(PageCounter::kAllocated) += of(PageCounter::kFastpathPage) + of(PageCounter::kFaultPages) +
                                 of(PageCounter::kBulkPages) + of(PageCounter::kBlockPages);
  return values;
}

std::vector<uint64_t> PageAllocator::BulkCallsByNode() const {
  std::vector<uint64_t> calls(num_nodes_, 0);
  for (size_t worker = 0; worker < static_cast<size_t>(num_workers_); ++worker) {
    for (size_t node = 0; node < num_nodes_; ++node) {
      calls[node] += lists_[worker * num_nodes_ + node].bulk_calls.load(std::memory_order_relaxed);
    }
  }
  return calls;
}

}  // namespace pipeyard::memory
