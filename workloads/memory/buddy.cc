#include "workloads/memory/buddy.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

namespace pipeyard::memory {

void Buddy::Init() {
  std::fill(std::begin(state_->heads), std::end(state_->heads), kNoPage);
  std::fill(std::begin(state_->num_blocks), std::end(state_->num_blocks), 0u);
  std::memset(orders_ + first_, kNotFree, end_ - first_);
}

void Buddy::GiveRange(PageId first, uint32_t count) {
  // From the top, so that low blocks end up at the heads.
  for (PageId end = first + count; end > first;) {
    unsigned order = std::min({kMaxOrder, static_cast<unsigned>(std::countr_zero(end)),
                               static_cast<unsigned>(std::bit_width(end - first)) - 1});
    end -= PageId{1} << order;
    Push(end, order);
  }
}

PageId Buddy::Take(unsigned order) {
  assert(order <= kMaxOrder);
  for (unsigned larger = order; larger < kNumOrders; ++larger) {
    const PageId block = state_->heads[larger];
    if (block == kNoPage) continue;
    Remove(block, larger);
    while (larger > order) {
      --larger;
      Push(block + (PageId{1} << larger), larger);
    }
    return block;
  }
  return kNoPage;
}

void Buddy::Give(PageId first, unsigned order) {
  assert(IsInside(first, order) && first % (PageId{1} << order) == 0);
  while (order < kMaxOrder) {
    const PageId other = first ^ (PageId{1} << order);
    if (!IsInside(other, order) || orders_[other] != order) break;
    Remove(other, order);
    first = std::min(first, other);
    ++order;
  }
  Push(first, order);
}

uint32_t Buddy::TakePages(PageId* pages, uint32_t count) {
  uint32_t num_left = count;
  while (num_left != 0) {
    // The largest part of the rest that is in one block: a block costs more than a page number.
    unsigned order = std::min(kMaxOrder, static_cast<unsigned>(std::bit_width(num_left)) - 1);
    PageId block = Take(order);
    while (block == kNoPage && order != 0) block = Take(--order);
    if (block == kNoPage) break;
    for (PageId page = block; page < block + (PageId{1} << order); ++page) {
      pages[--num_left] = page;
    }
  }
  if (num_left != 0) std::memmove(pages, pages + num_left, (count - num_left) * sizeof(PageId));
  return count - num_left;
}

void Buddy::Push(PageId block, unsigned order) {
  const PageId next = state_->heads[order];
  links_[block] = {next, kNoPage};
  if (next != kNoPage) links_[next].previous = block;
  state_->heads[order] = block;
  ++state_->num_blocks[order];
  orders_[block] = static_cast<uint8_t>(order);
}

void Buddy::Remove(PageId block, unsigned order) {
  const BuddyLink link = links_[block];
  if (link.previous != kNoPage) {
    links_[link.previous].next = link.next;
  } else {
    state_->heads[order] = link.next;
  }
  if (link.next != kNoPage) links_[link.next].previous = link.previous;
  --state_->num_blocks[order];
  orders_[block] = kNotFree;
}

}  // namespace pipeyard::memory
