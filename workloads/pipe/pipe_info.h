// The pipe as it lies in shared memory: its slots, its ends, its cached pages.
//
// Thread safety: fields are guarded by PipeInfo::mutex; the atomics may also be read without it.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/thread_annotations.h"
#include "workloads/memory/page_allocator.h"
#include "workloads/memory/shared_mutex.h"
#include "workloads/memory/wait_queue.h"

namespace pipeyard::pipe {

// What may be done with a slot. Values: kernel-mechanisms.md A1.
enum SlotFlag : uint32_t {
  kSlotCanMerge = 0x10,  // later writes may put bytes behind these
};

// What a slot's page is. The kernel has a table of operations here.
enum class SlotKind : uint64_t { kNone = 0, kAnonymousPage = 1 };

// SHARED. One ring entry; 40 bytes as in the kernel, so that rings have the kernel's size classes
// (A8). Every field is written each time a slot is used again (H9: a stale flag let writers change
// pages that were not theirs).
struct Slot {
  uint64_t page;  // memory::PageId
  uint32_t offset;
  uint32_t length;
  SlotKind kind;
  uint32_t flags;  // SlotFlag
  uint32_t reserved;
  uint64_t private_data;
};
PIPEYARD_CHECK_SHARED(Slot);
static_assert(sizeof(Slot) == 40);

// Both ends of the ring at one moment. Counters run freely and wrap; they are masked only to index
// (A1).
struct HeadTail {
  uint32_t head = 0;  // slots ever filled
  uint32_t tail = 0;  // slots ever emptied

  uint32_t Occupancy() const { return head - tail; }
  bool IsEmpty() const { return head == tail; }
  bool IsFull(uint32_t max_usage) const { return Occupancy() >= max_usage; }

  uint64_t Pack() const { return uint64_t{tail} << 32 | head; }
  static HeadTail Unpack(uint64_t word) {
    return {static_cast<uint32_t>(word), static_cast<uint32_t>(word >> 32)};
  }
};

// The pipe's cached pages; empty places hold kNoPage. Guarded by the pipe's mutex.
struct CachedPages {
  static constexpr int kCapacity = 2;
  memory::PageId pages[kCapacity];
};

// SHARED
struct alignas(memory::kCacheLine) PipeInfo {
  memory::SharedMutex mutex;
  memory::WaitQueue readers_waiting GUARDED_BY(mutex);
  memory::WaitQueue writers_waiting GUARDED_BY(mutex);
  // HeadTail::Pack(): one word, so that whoever reads it without the mutex sees both of one moment
  // (H1). Written under the mutex.
  std::atomic<uint64_t> head_tail;
  // Slots that may be in use, and slots that the ring has. Written under the mutex.
  std::atomic<uint32_t> max_usage;
  std::atomic<uint32_t> ring_slots;
  // Open ends. Written under the mutex.
  std::atomic<uint32_t> readers;
  std::atomic<uint32_t> writers;
  // Open files of either end; at 0 the pages go back.
  uint32_t files GUARDED_BY(mutex);
  CachedPages cache GUARDED_BY(mutex);
  // Where the Slot[ring_slots] lies in the region.
  uint64_t slots_offset GUARDED_BY(mutex);
};
PIPEYARD_CHECK_SHARED(PipeInfo);
// The kernel's object is 168 bytes, of the 192-byte class (A8).
static_assert(sizeof(PipeInfo) <= 192);

}  // namespace pipeyard::pipe
