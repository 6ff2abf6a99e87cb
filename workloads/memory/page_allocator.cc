#include "workloads/memory/page_allocator.h"

#include <algorithm>
#include <cstring>

namespace pipeyard::memory {
namespace {

// Source: MAX_RECLAIM_RETRIES of mm/page_alloc.c and mm/memcontrol.c.
constexpr int kMaxReclaims = 16;

}  // namespace

PageId PageAllocator::AllocateShort(PageWorker& worker) {
  const PageId page = AllocateChosen(worker, LocalChoice(worker), 0, {});
  if (page != kNoPage) worker.counters->Add(PageCounter::kFastpathPage);
  return page;
}

PageId PageAllocator::AllocateByPolicy(PageWorker& worker) {
  const uint8_t reasons = gates_->Of(AllocationPath::kPage);
  if ((reasons & kPolicyDecides) == 0) return AllocateShort(worker);
  const PageChoice choice = ChooseForTask(worker);
  PageList& list = worker.lists[IndexOf(choice.node)];
  if (reasons == kPolicyDecides && list.count != 0 && choice.allowed.Contains(choice.node) &&
      worker.stock->TryTake(page_bytes_)) [[likely]] {
    worker.counters->Add(PageCounter::kAllocated);
    return list.pages[--list.count];
  }
  const PageId page = AllocateChosen(worker, choice, 0, {});
  if (page != kNoPage) worker.counters->Add(PageCounter::kAllocated);
  return page;
}

PageId PageAllocator::Allocate(PageWorker& worker, const PagePlacement& placement) {
  const numa::NodeMask allowed =
      numa::NodeMask::FromBits(placement.allowed.bits() & AllowedNodes().bits());
  const PageId page = AllocateChosen(worker, {placement.preferred, allowed, false}, 0, {});
  if (page != kNoPage) worker.counters->Add(PageCounter::kAllocated);
  return page;
}

PageId PageAllocator::AllocateForFault(PageWorker& worker, const Policy& policy, uint64_t index) {
  const uint8_t reasons = gates_->Of(AllocationPath::kFault);
  const bool is_fast = !kPolicyCompiled || (reasons & kPolicyDecides) == 0;
  const PageCounter counter = is_fast ? PageCounter::kFastpathFault : PageCounter::kFaultPages;
  PageChoice choice = LocalChoice(worker);
  if (!is_fast && !choice.allowed.IsEmpty()) {
    choice = ChooseFault(policy, ContextOf(worker), index);
  }
  PageList& list = worker.lists[IndexOf(choice.node)];
  if ((reasons & ~kPolicyDecides) == 0 && list.count != 0 && choice.allowed.Contains(choice.node) &&
      worker.stock->TryTake(page_bytes_)) [[likely]] {
    worker.counters->Add(counter);
    return list.pages[--list.count];
  }
  const PageId page = AllocateChosen(worker, choice, 0, {});
  if (page != kNoPage) worker.counters->Add(counter);
  return page;
}

PageId PageAllocator::AllocateBlock(PageWorker& worker, unsigned order, numa::NodeId node,
                                    AllocationFlags flags) {
  if (order > kMaxOrder || node >= numa::kMaxNodes) return Fail(worker);
  const bool is_fast =
      !kPolicyCompiled || (gates_->Of(AllocationPath::kPage) & kPolicyDecides) == 0;
  PageChoice choice = LocalChoice(worker);
  if (node != numa::kNoNode) {
    choice.node = node;
  } else if (!is_fast) {
    choice = ChooseForTask(worker);
  }
  const PageId page = AllocateChosen(worker, choice, order, flags);
  if (page != kNoPage) {
    worker.counters->Add(is_fast ? PageCounter::kFastpathBlock : PageCounter::kBlockPages,
                         uint64_t{1} << order);
  }
  return page;
}

PageId PageAllocator::AllocateChosen(PageWorker& worker, const PageChoice& choice, unsigned order,
                                     AllocationFlags flags) {
  if (IsToFail()) return Fail(worker);
  const int64_t bytes = page_bytes_ << order;
  const bool is_charged = flags.is_accounted && controller_.is_on();
  if (is_charged && !worker.stock->TryTake(bytes) && !ChargeSlowly(worker, bytes)) {
    return Fail(worker);
  }
  Walk walk{choice.node, choice.allowed, !flags.no_wait};
  if (flags.this_node_only) {
    walk.allowed = numa::NodeMask::FromBits(walk.allowed.bits() & uint64_t{1} << choice.node);
  }
  PageId page = kNoPage;
  if (choice.is_first_pass) {
    walk.may_reclaim = false;
    page = WalkNodes(worker, walk, order);
    if (page == kNoPage && !flags.this_node_only) {
      page = WalkNodes(worker, {choice.node, AllowedNodes(), !flags.no_wait}, order);
    }
  } else {
    page = WalkNodes(worker, walk, order);
  }
  if (page == kNoPage) {
    if (is_charged) controller_.Uncharge(*worker.stock, bytes);
    return Fail(worker);
  }
  if (NodeOf(page) != node_ids_[FirstOf(walk)]) {
    worker.counters->Add(PageCounter::kFallback, uint64_t{1} << order);
  }
  if (!is_charged && controller_.is_on()) MarkUnaccounted(page);
  if (source_ == PageSource::kOnDemand) MakePresent(worker, page, order);
  return page;
}

uint32_t PageAllocator::FirstOf(const Walk& walk) const {
  for (const uint32_t index : fallback_[static_cast<size_t>(walk.node)]) {
    if (walk.allowed.Contains(node_ids_[index])) return index;
  }
  return num_nodes_;
}

PageId PageAllocator::WalkNodes(PageWorker& worker, const Walk& walk, unsigned order) {
  PageId page = WalkOnce(worker, walk, order, Mark::kLow);
  if (page != kNoPage) return page;
  worker.counters->Add(PageCounter::kBelowLow);
  page = WalkOnce(worker, walk, order, Mark::kMin);
  if (page != kNoPage) return page;
  worker.counters->Add(PageCounter::kBelowMin);
  if (!walk.may_reclaim) return kNoPage;
  for (int i = 0; i < kMaxReclaims; ++i) {
    const uint64_t num_reclaimed = Reclaim(worker, uint64_t{1} << order);
    page = WalkOnce(worker, walk, order, Mark::kMin);
    if (page != kNoPage || num_reclaimed == 0) break;
  }
  return page;
}

PageId PageAllocator::WalkOnce(PageWorker& worker, const Walk& walk, unsigned order, Mark mark) {
  for (const uint32_t index : fallback_[static_cast<size_t>(walk.node)]) {
    if (!walk.allowed.Contains(node_ids_[index])) continue;
    if (order != 0) {
      const PageId block = nodes_[index].TakeBlock(order, mark);
      if (block != kNoPage) return block;
      continue;
    }
    PageList& list = worker.lists[index];
    if (list.count != 0 || Refill(worker, index, mark)) return list.pages[--list.count];
  }
  return kNoPage;
}

bool PageAllocator::Refill(PageWorker& worker, uint32_t node_index, Mark mark) {
  PageList& list = worker.lists[node_index];
  list.count = nodes_[node_index].TakePages(list.pages, list.batch(), mark);
  if (list.count == 0) return false;
  worker.counters->Add(PageCounter::kRefills);
  return true;
}

void PageAllocator::Drain(PageWorker& worker, uint32_t node_index) {
  PageList& list = worker.lists[node_index];
  const uint32_t batch = list.batch();
  // The coldest pages go; the list keeps what was freed last.
  nodes_[node_index].GivePages(list.pages, batch);
  list.count -= batch;
  std::memmove(list.pages, list.pages + batch, list.count * sizeof(PageId));
  worker.counters->Add(PageCounter::kDrains);
}

void PageAllocator::PutSlowly(PageWorker& worker, PageId page) {
  const uint32_t word = page_words_[page].load(std::memory_order_acquire);
  if ((word & kPageReferences) != 1 && !DropReference(page)) return;
  ReleasePage(worker, page, (word & ~kPageReferences) | 1);
  const uint32_t index = word >> kPageNodeShift & 0xff;
  PageList& list = worker.lists[index];
  if (list.count >= list.high) Drain(worker, index);
  list.pages[list.count++] = page;
  worker.counters->Add(PageCounter::kFreed);
}

void PageAllocator::ReleasePage(PageWorker& worker, PageId page, uint32_t word) {
  if ((word & kPageUnaccounted) != 0) {
    page_words_[page].store(word & ~kPageUnaccounted, std::memory_order_relaxed);
  } else {
    controller_.Uncharge(*worker.stock, page_bytes_);
  }
  if (source_ == PageSource::kOnDemand) GiveBack(worker, page, 0);
}

bool PageAllocator::DropReference(PageId page) {
  // Release: what this holder did to the page comes before the last holder frees it; acquire for
  // the last one.
  const uint32_t word = page_words_[page].fetch_sub(1, std::memory_order_acq_rel);
  if ((word & kPageReferences) != 1) return false;
  page_words_[page].store(word, std::memory_order_relaxed);
  return true;
}

void PageAllocator::FreeBlock(PageWorker& worker, PageId first, unsigned order) {
  if (order == 0) {
    Put(worker, first);
    return;
  }
  const uint32_t word = page_words_[first].load(std::memory_order_relaxed);
  if ((word & kPageUnaccounted) != 0) {
    page_words_[first].store(word & ~kPageUnaccounted, std::memory_order_relaxed);
  } else {
    controller_.Uncharge(*worker.stock, page_bytes_ << order);
  }
  if (source_ == PageSource::kOnDemand) GiveBack(worker, first, order);
  nodes_[word >> kPageNodeShift & 0xff].GiveBlock(first, order);
  worker.counters->Add(PageCounter::kFreed, uint64_t{1} << order);
}

bool PageAllocator::ChargeSlowly(PageWorker& worker, int64_t bytes) {
  worker.counters->Add(PageCounter::kChargeRefills);
  for (int i = 0; i < kMaxReclaims; ++i) {
    if (controller_.ChargeSlowly(*worker.stock, bytes)) return true;
    if (Reclaim(worker, static_cast<uint64_t>(bytes / page_bytes_) + 1) == 0) break;
  }
  if (controller_.Charge(*worker.stock, bytes)) return true;
  worker.counters->Add(PageCounter::kChargesRefused);
  return false;
}

uint64_t PageAllocator::DrainLists(PageWorker& worker) {
  uint64_t num_drained = 0;
  for (uint32_t i = 0; i < num_nodes_; ++i) {
    PageList& list = worker.lists[i];
    if (list.count == 0) continue;
    num_drained += nodes_[i].GivePages(list.pages, list.count);
    list.count = 0;
    worker.counters->Add(PageCounter::kDrains);
  }
  return num_drained;
}

uint64_t PageAllocator::Reclaim(PageWorker& worker, uint64_t wanted) {
  worker.counters->Add(PageCounter::kReclaimRuns);
  uint64_t num_reclaimed = DrainLists(worker);
  for (Shrinker* shrinker : shrinkers_) {
    if (num_reclaimed >= wanted) break;
    num_reclaimed += shrinker->Shrink(worker, wanted - num_reclaimed);
  }
  worker.counters->Add(PageCounter::kReclaimedPages, num_reclaimed);
  return num_reclaimed;
}

void PageAllocator::MakePresent(PageWorker& worker, PageId first, unsigned order) {
  worker.counters->Add(PageCounter::kDemandFaults,
                       TouchPages(Address(first), static_cast<uint64_t>(page_bytes_) << order));
}

void PageAllocator::GiveBack(PageWorker& worker, PageId first, unsigned order) {
  const int error = GiveBackToKernel(Address(first), static_cast<uint64_t>(page_bytes_) << order);
  worker.counters->Add(error == 0 ? PageCounter::kGivenBack : PageCounter::kGiveBackFailures,
                       uint64_t{1} << order);
}

}  // namespace pipeyard::memory
