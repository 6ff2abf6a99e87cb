// PageNode: the pages of one node that no worker's list holds.
//
//   batches ◄──► stack of single pages, last in first out ◄──overflow, underflow──► buddy ◄──►
//   blocks
//
// The stack keeps what circulates between workers in the caches and makes a batch a copy under the
// lock; the buddy below it joins what has cooled down.
//
// Watermarks as the kernel's: an allocation leaves `mark` pages free, the caller says which mark.
// Pages on workers' lists count as taken, as they do in the kernel.
// Thread safety: thread-safe. Ownership: state lives in the region; this handle is valid in every
// process. A worker that died inside the lock leaves lists that nobody may use: is_broken() says
// so, nothing can be taken from then on, and what is given is lost.
#pragma once

#include <atomic>
#include <cstdint>

#include "workloads/memory/buddy.h"
#include "workloads/memory/page_types.h"
#include "workloads/memory/region.h"
#include "workloads/memory/shared_mutex.h"

namespace pipeyard::memory {

struct Watermarks {
  uint32_t min = 0;
  uint32_t low = 0;
  uint32_t high = 0;
};
// The kernel's for a node of that many bytes: min = 4 * sqrt(KiB) KiB (min_free_kbytes), at most
// 256 MiB; low and high are one and two steps above, a step being the larger of min/4 and 1/1000 of
// the node (watermark_scale_factor 10). The kernel's floor of 128 KiB is left out, and nodes below
// 4 MiB have none at all: the reserve would be a good part of them.
// Source: mm/page_alloc.c, calculate_min_free_kbytes and __setup_per_zone_wmarks.
Watermarks KernelWatermarks(uint64_t num_pages, uint64_t page_bytes);

enum class Mark { kNone, kMin, kLow };

// SHARED
struct alignas(kCacheLine) NodePages {
  SharedMutex mutex;
  std::atomic<uint32_t> num_free;  // on the stack and in the buddy; changed under the mutex
  uint32_t stack_count GUARDED_BY(mutex);
  BuddyState buddy;  // under the mutex, through PageNode's Buddy
};
PIPEYARD_CHECK_SHARED(NodePages);

class PageNode {
 public:
  // How many pages the stack holds at most: enough for the batches that some workers have under
  // way.
  static uint32_t StackCapacity(uint32_t num_pages);

  // Where its parts are in the region.
  struct Parts {
    NodePages* shared = nullptr;
    PageId* stack = nullptr;     // StackCapacity() entries
    BuddyLink* links = nullptr;  // by page number
    uint8_t* orders = nullptr;   // by page number
  };
  PageNode(const Parts& parts, PageId first_page, uint32_t num_pages, const Watermarks& marks)
      : shared_(parts.shared),
        stack_(parts.stack),
        buddy_(&parts.shared->buddy, parts.links, parts.orders, first_page, num_pages),
        first_page_(first_page),
        num_pages_(num_pages),
        stack_capacity_(StackCapacity(num_pages)),
        marks_(marks) {}

  // Nothing is free. Once, before anybody uses the node.
  void Init();
  // All pages of the node become free.
  void AddPages();

  // Moves at most `count` pages to `pages`, the warmest last, as far as `mark` allows. Returns how
  // many.
  uint32_t TakePages(PageId* pages, uint32_t count, Mark mark);
  // Returns how many it took: all, or none where it is broken.
  uint32_t GivePages(const PageId* pages, uint32_t count);
  // kNoPage where there is none or `mark` forbids it.
  PageId TakeBlock(unsigned order, Mark mark);
  void GiveBlock(PageId first, unsigned order);

  bool is_broken() const { return shared_->mutex.HasDeadOwner(); }
  SharedMutex& lock_for_test() const { return shared_->mutex; }

  uint32_t num_free() const { return shared_->num_free.load(std::memory_order_relaxed); }
  uint32_t LimitOf(Mark mark) const {
    return mark == Mark::kNone ? 0 : mark == Mark::kMin ? marks_.min : marks_.low;
  }
  // Whether `count` pages can be taken and the mark still holds; a look without the lock.
  bool IsAbove(Mark mark, uint32_t count) const { return num_free() >= LimitOf(mark) + count; }
  const Watermarks& watermarks() const { return marks_; }
  PageId first_page() const { return first_page_; }
  uint32_t num_pages() const { return num_pages_; }

  // Calls visit(page) for each free page. Errors: kInternal when an owner of the lock died or the
  // lists are broken, also where visit returns false.
  template <typename Visit>
  Status ForEachFree(Visit&& visit);

 private:
  // False, without the lock, where a worker died holding it.
  bool Lock() TRY_ACQUIRE(true, shared_->mutex);
  // The bottom of the stack goes to the buddy, `count` pages.
  void Spill(uint32_t count) REQUIRES(shared_->mutex);
  void AddFree(uint32_t count) {
    shared_->num_free.store(num_free() + count, std::memory_order_relaxed);
  }
  void SubtractFree(uint32_t count) {
    shared_->num_free.store(num_free() - count, std::memory_order_relaxed);
  }

  NodePages* shared_;
  PageId* stack_;
  Buddy buddy_;
  PageId first_page_;
  uint32_t num_pages_;
  uint32_t stack_capacity_;
  Watermarks marks_;
};

template <typename Visit>
Status PageNode::ForEachFree(Visit&& visit) {
  const bool is_owner_dead = shared_->mutex.Lock().is_owner_dead;
  uint64_t count = 0;
  bool is_sound = shared_->stack_count <= stack_capacity_;
  for (uint32_t i = 0; is_sound && i < shared_->stack_count; ++i, ++count) {
    is_sound = visit(stack_[i]);
  }
  is_sound = is_sound && buddy_.ForEach([&](PageId first, unsigned order) {
    for (PageId page = first; page < first + (PageId{1} << order); ++page, ++count) {
      if (!visit(page)) return false;
    }
    return true;
  });
  const bool is_counted = count == num_free();
  shared_->mutex.Unlock();
  if (is_owner_dead) return Internal("page census: a worker died holding the lock of a node");
  if (!is_sound) return Internal("page census: a page is free twice");
  if (!is_counted) return Internal("page census: a node's count of free pages is wrong");
  return Status::Ok();
}

}  // namespace pipeyard::memory
