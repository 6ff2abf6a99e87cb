// Many pages at once, as the kernel's bulk page allocator gives them (kernel-mechanisms.md B3, C2,
// C4).
#include <algorithm>
#include <cstring>

#include "workloads/memory/page_allocator.h"

namespace pipeyard::memory {

uint32_t PageAllocator::AllocateBulk(PageWorker& worker, std::span<PageId> out,
                                     const BulkOptions& options) {
  if (out.empty()) return 0;
  worker.counters->Add(PageCounter::kBulkRequests);
  uint32_t num_got = 0;
  if (!kPolicyCompiled || (gates_->Of(AllocationPath::kBulk) & kPolicyDecides) == 0) {
    num_got = BulkCallOn(worker, {worker.local.preferred, AllowedNodes()}, out, options);
    worker.counters->Add(PageCounter::kFastpathBulk, num_got);
    return num_got;
  }
  const PolicyContext& context = ContextOf(worker);
  if (context.allowed.IsEmpty()) {
    Fail(worker);
    return 0;
  }
  // One page is all that an accounted request gets, whatever its policy.
  const bool is_one_enough = options.is_accounted && controller_.is_on();
  TaskPolicy& task = worker.policy;
  const numa::NodeMask nodes = UsableNodes(task.policy, context);
  // After a short call the others are still asked: the answer is only looked at by single steps,
  // which an accounted request ends with its first page.
  const auto call = [&](numa::NodeId node, uint64_t pages) {
    if (is_one_enough && num_got != 0) return false;
    const uint32_t got =
        BulkCallOn(worker, {node, context.allowed}, out.subspan(num_got, pages), options);
    num_got += got;
    return got != 0 && !is_one_enough;
  };
  switch (task.policy.mode) {
    case numa::PolicyMode::kWeightedInterleave:
      ForEachBulkCall(options.algorithm, nodes, WeightsOf(task.policy, *context.host_weights),
                      task.state, out.size(), call);
      break;
    case numa::PolicyMode::kInterleave: {
      BulkPlan plan;
      PlanInterleave(nodes, task.state, out.size(), plan);
      task.state = plan.end;
      for (const BulkCall& planned : plan.Calls()) call(planned.node, planned.pages);
      break;
    }
    default: {
      const PageChoice choice = ChoosePage(task, context);
      num_got =
          BulkCallOn(worker, {choice.node, choice.allowed, !choice.is_first_pass}, out, options);
      if (choice.is_first_pass && num_got < (is_one_enough ? 1 : out.size())) {
        num_got +=
            BulkCallOn(worker, {choice.node, context.allowed}, out.subspan(num_got), options);
      }
    }
  }
  worker.counters->Add(PageCounter::kBulkPages, num_got);
  return num_got;
}

uint32_t PageAllocator::BulkCallOn(PageWorker& worker, const Walk& walk, std::span<PageId> out,
                                   const BulkOptions& options) {
  const uint32_t index = IndexOf(walk.node);
  CounterBlock<PageCounter>& counters = *worker.counters;
  std::atomic<uint64_t>& bulk_calls = worker.lists[index].bulk_calls;
  bulk_calls.store(bulk_calls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  counters.Add(PageCounter::kBulkCalls);
  const bool is_charged = options.is_accounted && controller_.is_on();
  uint32_t num_got = 0;
  if (out.size() == 1) {
    counters.Add(PageCounter::kBulkRefusedSingle);
  } else if (is_charged) {
    counters.Add(PageCounter::kBulkRefusedAccounted);
  } else {
    num_got = TakeRun(worker, walk, out);
    if (num_got == 0) counters.Add(PageCounter::kBulkRefusedWatermark);
  }
  if (num_got == 0) {
    const PageChoice choice{walk.node, walk.allowed, false};
    AllocationFlags flags;
    flags.is_accounted = options.is_accounted;
    flags.no_wait = !walk.may_reclaim;
    flags.this_node_only = options.this_node_only;
    out[0] = AllocateChosen(worker, choice, 0, flags);
    num_got = out[0] != kNoPage ? 1 : 0;
  }
  if (num_got < out.size()) counters.Add(PageCounter::kBulkShort);
  return num_got;
}

uint32_t PageAllocator::TakeRun(PageWorker& worker, const Walk& walk, std::span<PageId> out) {
  // The first node that the walk may take from; never another one.
  const uint32_t index = FirstOf(walk);
  if (index == num_nodes_) return 0;
  auto num_wanted = static_cast<uint32_t>(out.size());
  if (!nodes_[index].IsAbove(Mark::kLow, num_wanted)) return 0;
  if (failures_ != nullptr) {
    uint32_t num_spared = 0;
    while (num_spared < num_wanted && !failures_->IsNextToFail()) ++num_spared;
    if (num_spared < num_wanted) worker.counters->Add(PageCounter::kFailed);
    num_wanted = num_spared;
  }
  // Only requests that are not accounted come here.
  const bool is_marked = controller_.is_on();
  PageList& list = worker.lists[index];
  uint32_t num_got = 0;
  while (num_got < num_wanted) {
    const std::span<PageId> rest = out.subspan(num_got, num_wanted - num_got);
    if (list.count == 0 && rest.size() >= list.batch()) {
      // As many as the list would hold: they need not pass through it.
      const auto size = static_cast<uint32_t>(rest.size());
      const uint32_t from_node = nodes_[index].TakePages(rest.data(), size, Mark::kLow);
      if (is_marked) MarkRunUnaccounted(rest.first(from_node), index);
      worker.counters->Add(PageCounter::kRefills);
      num_got += from_node;
      break;
    }
    if (list.count == 0 && !Refill(worker, index, Mark::kLow)) break;
    const uint32_t size = std::min(static_cast<uint32_t>(rest.size()), list.count);
    list.count -= size;
    // Ahead of the copy: numbers that were just copied in large pieces are slow to read.
    if (is_marked) MarkRunUnaccounted({list.pages + list.count, size}, index);
    std::memcpy(rest.data(), list.pages + list.count, size * sizeof(PageId));
    num_got += size;
  }
  if (source_ == PageSource::kOnDemand) {
    for (const PageId page : out.first(num_got)) MakePresent(worker, page, 0);
  }
  return num_got;
}

void PageAllocator::MarkRunUnaccounted(std::span<const PageId> pages, uint32_t node_index) {
  const uint32_t word = 1 | node_index << kPageNodeShift | kPageUnaccounted |
                        (source_ == PageSource::kOnDemand ? kPageOnDemand : 0);
  std::atomic<uint32_t>* const words = page_words_;
#pragma GCC unroll 8
  for (const PageId page : pages) words[page].store(word, std::memory_order_relaxed);
}

void PageAllocator::FreeBulk(PageWorker& worker, std::span<const PageId> pages) {
  while (!pages.empty()) {
    const uint32_t word = page_words_[pages[0]].load(std::memory_order_acquire);
    if ((word & (kPageReferences | kPageOnDemand)) != 1) {
      Put(worker, pages[0]);
      pages = pages.subspan(1);
      continue;
    }
    // Pages alike, of one node and nobody else's, go in one piece.
    size_t size = 1;
    while (size < pages.size() &&
           page_words_[pages[size]].load(std::memory_order_acquire) == word) {
      ++size;
    }
    FreeRun(worker, pages.first(size), word);
    pages = pages.subspan(size);
  }
}

void PageAllocator::FreeRun(PageWorker& worker, std::span<const PageId> pages, uint32_t word) {
  if ((word & kPageUnaccounted) != 0) {
    for (const PageId page : pages) {
      page_words_[page].store(word & ~kPageUnaccounted, std::memory_order_relaxed);
    }
  } else {
    controller_.Uncharge(*worker.stock, page_bytes_ * static_cast<int64_t>(pages.size()));
  }
  worker.counters->Add(PageCounter::kFreed, pages.size());
  const uint32_t index = word >> kPageNodeShift & 0xff;
  PageList& list = worker.lists[index];
  while (!pages.empty()) {
    if (list.count == list.high) Drain(worker, index);
    const size_t size = std::min<size_t>(pages.size(), list.high - list.count);
    std::memcpy(list.pages + list.count, pages.data(), size * sizeof(PageId));
    list.count += static_cast<uint32_t>(size);
    pages = pages.subspan(size);
  }
}

}  // namespace pipeyard::memory
