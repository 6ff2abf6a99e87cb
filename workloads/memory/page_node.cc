#include "workloads/memory/page_node.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace pipeyard::memory {
namespace {

// Sixteen batches: what eight writers and eight readers have under way.
constexpr uint32_t kStackPages = 16 * kListBatch;

constexpr uint64_t kMaxMinBytes = uint64_t{256} << 20;
constexpr uint64_t kSmallNodeBytes = uint64_t{4} << 20;

}  // namespace

Watermarks KernelWatermarks(uint64_t num_pages, uint64_t page_bytes) {
  const uint64_t bytes = num_pages * page_bytes;
  if (bytes < kSmallNodeBytes) return {};
  const auto min_kib = static_cast<uint64_t>(std::sqrt(static_cast<double>(bytes / 1024 * 16)));
  const uint64_t min = std::min(min_kib * 1024, kMaxMinBytes) / page_bytes;
  const uint64_t step = std::max(min / 4, num_pages / 1000);
  return {static_cast<uint32_t>(min), static_cast<uint32_t>(min + step),
          static_cast<uint32_t>(min + 2 * step)};
}

uint32_t PageNode::StackCapacity(uint32_t num_pages) {
  return std::min(std::max(num_pages, kListHigh), kStackPages);
}

void PageNode::Init() {
  static_cast<void>(shared_->mutex.Lock());
  buddy_.Init();
  shared_->mutex.Unlock();
}

void PageNode::AddPages() {
  if (!Lock()) return;
  buddy_.GiveRange(first_page_, num_pages_);
  AddFree(num_pages_);
  shared_->mutex.Unlock();
}

bool PageNode::Lock() {
  if (!shared_->mutex.Lock().is_owner_dead) [[likely]]
    return true;
  shared_->mutex.Unlock();
  return false;
}

uint32_t PageNode::TakePages(PageId* pages, uint32_t count, Mark mark) {
  if (!Lock()) return 0;
  const uint32_t limit = LimitOf(mark);
  const uint32_t num_allowed = num_free() > limit ? num_free() - limit : 0;
  count = std::min(count, num_allowed);
  const uint32_t from_stack = std::min(count, shared_->stack_count);
  const uint32_t from_buddy = buddy_.TakePages(pages, count - from_stack);
  shared_->stack_count -= from_stack;
  std::memcpy(pages + from_buddy, stack_ + shared_->stack_count, from_stack * sizeof(PageId));
  SubtractFree(from_stack + from_buddy);
  shared_->mutex.Unlock();
  return from_stack + from_buddy;
}

uint32_t PageNode::GivePages(const PageId* pages, uint32_t count) {
  if (!Lock()) return 0;
  if (shared_->stack_count + count > stack_capacity_) {
    // Half of it at once, so that it does not overflow with every batch.
    Spill(std::min(shared_->stack_count, std::max(stack_capacity_ / 2, count)));
  }
  std::memcpy(stack_ + shared_->stack_count, pages, count * sizeof(PageId));
  shared_->stack_count += count;
  AddFree(count);
  shared_->mutex.Unlock();
  return count;
}

PageId PageNode::TakeBlock(unsigned order, Mark mark) {
  if (!Lock()) return kNoPage;
  PageId block = kNoPage;
  const uint32_t size = uint32_t{1} << order;
  if (num_free() >= LimitOf(mark) + size) {
    block = buddy_.Take(order);
    if (block == kNoPage && shared_->stack_count != 0) {
      // The stack may hold what completes a block.
      Spill(shared_->stack_count);
      block = buddy_.Take(order);
    }
    if (block != kNoPage) SubtractFree(size);
  }
  shared_->mutex.Unlock();
  return block;
}

void PageNode::GiveBlock(PageId first, unsigned order) {
  if (!Lock()) return;
  buddy_.Give(first, order);
  AddFree(uint32_t{1} << order);
  shared_->mutex.Unlock();
}

void PageNode::Spill(uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) buddy_.Give(stack_[i], 0);
  shared_->stack_count -= count;
  std::memmove(stack_, stack_ + count, shared_->stack_count * sizeof(PageId));
}

}  // namespace pipeyard::memory
