// The pipe as it lies in shared memory: its slots, its ends, its cached pages.
//
// Thread safety: fields are guarded by PipeInfo::mutex; the atomics may also be read without it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/thread_annotations.h"
#include "workloads/memory/page_allocator.h"
#include "workloads/memory/shared_mutex.h"
#include "workloads/memory/wait_queue.h"

namespace pipeyard::pipe {

// What may be done with a slot. Values: kernel-mechanisms.md A1. (0x40, a loss of notifications,
// exists on notification pipes only.)
enum SlotFlag : uint32_t {
  kSlotPacket = 0x08,    // one read takes it, whatever it asked for
  kSlotCanMerge = 0x10,  // later writes may put bytes behind these
  kSlotWhole = 0x20,     // read all of it or nothing (ENOBUFS)
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

// The type of head and tail (A1: 32 bits on 64-bit machines, 16 on others).
using PipeIndex = uint32_t;

// Whether a ring of `slots` is more than head and tail can tell apart; F_SETPIPE_SZ then says
// EINVAL (H8).
template <typename Index>
constexpr bool ExceedsIndex(uint64_t slots) {
  return slots > std::numeric_limits<Index>::max();
}

// Both ends of the ring at one moment. Counters run freely and wrap; they are masked only to index
// (A1).
struct HeadTail {
  PipeIndex head = 0;  // slots ever filled
  PipeIndex tail = 0;  // slots ever emptied

  PipeIndex Occupancy() const { return head - tail; }
  bool IsEmpty() const { return head == tail; }
  bool IsFull(uint32_t max_usage) const { return Occupancy() >= max_usage; }

  uint64_t Pack() const { return uint64_t{tail} << 32 | head; }
  static HeadTail Unpack(uint64_t word) {
    return {static_cast<uint32_t>(word), static_cast<uint32_t>(word >> 32)};
  }
};

// The pipe's cached pages; empty places hold kNoPage. Guarded by the pipe's mutex. How many places
// a generation of the cache uses is its own affair (page_cache.h).
struct CachedPages {
  static constexpr uint32_t kCapacity = 8;
  memory::PageId pages[kCapacity];
  // Of the generation that keeps them as a stack; also read without the mutex, then a guess.
  std::atomic<uint32_t> count;
};

// SHARED. What every call touches is on the first two lines, as in the kernel.
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
  // Open files of either end; at 0 everything goes back.
  uint32_t files GUARDED_BY(mutex);
  // Writes wake readers though the pipe was not empty (EngineConfig::poll_wakeup).
  uint32_t wakes_every_write GUARDED_BY(mutex);

  // Where the Slot[ring_slots] lies in the region.
  uint64_t slots_offset GUARDED_BY(mutex);
  CachedPages cache GUARDED_BY(mutex);
  // Edge-triggered watches of either end.
  uint32_t edge_watches GUARDED_BY(mutex);
  // Slots charged to `user`; equals max_usage.
  uint32_t accounted_slots GUARDED_BY(mutex);
  uint32_t user;  // index; constant after creation

  // Its place in the list of live pipes of the worker that created it; guarded by that list's
  // mutex.
  uint64_t next_alive;
  uint64_t previous_alive;
  uint32_t list;  // index; constant after creation
};
PIPEYARD_CHECK_SHARED(PipeInfo);
static_assert(offsetof(PipeInfo, slots_offset) == memory::kCacheLine);
static_assert(offsetof(PipeInfo, next_alive) <= 2 * memory::kCacheLine);
// The kernel's object is 168 bytes, of the 192-byte class (A8).
static_assert(sizeof(PipeInfo) <= 192);

}  // namespace pipeyard::pipe
