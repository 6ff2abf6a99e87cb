// Buddy: one node's free blocks of 2^0 to 2^10 pages. A block starts at a multiple of its size, in
// page numbers; a freed block joins its buddy while that is free and as large.
//
//   order 3   0....... ← free, the list's head
//   order 1   ..12     ← 12,13 free; their buddy 14,15 is not
//
// Lists are last in, first out. It takes no lock: the node's lock covers it.
// Thread safety: thread-compatible. Ownership: state and links live in the region; this handle is
// valid in every process.
#pragma once

#include <cstdint>

#include "workloads/memory/page_types.h"

namespace pipeyard::memory {

// SHARED. Zeroed is not its initial state: Buddy::Init().
struct BuddyState {
  PageId heads[kNumOrders];  // kNoPage: no free block of the order
  uint32_t num_blocks[kNumOrders];
};
PIPEYARD_CHECK_SHARED(BuddyState);

// SHARED. Of one page; says something where a free block starts.
struct BuddyLink {
  PageId next;
  PageId previous;  // kNoPage: the head
};
PIPEYARD_CHECK_SHARED(BuddyLink);

class Buddy {
 public:
  // `links` and `orders` are indexed by page number. Pages [first, first + count) are the node's.
  Buddy(BuddyState* state, BuddyLink* links, uint8_t* orders, PageId first, uint32_t count)
      : state_(state), links_(links), orders_(orders), first_(first), end_(first + count) {}

  // Nothing is free.
  void Init();
  // Frees pages that the node gets, in the largest blocks that fit; low pages are taken first.
  void GiveRange(PageId first, uint32_t count);

  // A free block; a larger one is split. kNoPage where there is none.
  PageId Take(unsigned order);
  void Give(PageId first, unsigned order);
  // Takes `count` single pages into `pages`, the lowest last; returns how many there were.
  uint32_t TakePages(PageId* pages, uint32_t count);

  // Blocks of exactly this order.
  uint32_t NumBlocks(unsigned order) const { return state_->num_blocks[order]; }
  // Calls visit(first, order) for every free block until it returns false. Returns false then, or
  // where the lists are broken.
  template <typename Visit>
  bool ForEach(Visit&& visit) const {
    for (unsigned order = 0; order < kNumOrders; ++order) {
      uint32_t num_left = state_->num_blocks[order];
      for (PageId block = state_->heads[order]; block != kNoPage; block = links_[block].next) {
        if (num_left-- == 0 || block < first_ || block >= end_ || !visit(block, order)) {
          return false;
        }
      }
      if (num_left != 0) return false;
    }
    return true;
  }

 private:
  // In orders_: no free block starts here.
  static constexpr uint8_t kNotFree = 0xff;

  void Push(PageId block, unsigned order);
  void Remove(PageId block, unsigned order);
  bool IsInside(PageId block, unsigned order) const {
    return block >= first_ && block + (PageId{1} << order) <= end_;
  }

  BuddyState* state_;
  BuddyLink* links_;
  uint8_t* orders_;
  PageId first_;
  PageId end_;
};

}  // namespace pipeyard::memory
