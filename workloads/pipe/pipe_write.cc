#include <errno.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "workloads/pipe/page_cache.h"
#include "workloads/pipe/pipe.h"
#include "workloads/pipe/pipe_lock.h"

namespace pipeyard::pipe {

IoResult Pipe::Write(Worker& worker, const void* data, size_t size, IoFlags flags) {
  if (size == 0) return {};
  const auto* bytes = static_cast<const std::byte*>(data);
  if (env_->toll != nullptr) [[unlikely]]
    return WriteAny<true>(worker, bytes, size, flags);
  return WriteAny<false>(worker, bytes, size, flags);
}

template <bool kHasToll>
IoResult Pipe::WriteAny(Worker& worker, const std::byte* data, size_t size, IoFlags flags) {
  switch (env_->page_cache) {
    case PageCache::kTwoPage:
      return WriteWith<TwoPageCache, kHasToll>(worker, data, size, flags);
    case PageCache::kOnePage:
      return WriteWith<OnePageCache, kHasToll>(worker, data, size, flags);
    case PageCache::kPreallocV1:
      return WriteWith<PreallocV1Cache, kHasToll>(worker, data, size, flags);
    case PageCache::kPrealloc:
      return WriteWith<PreallocCache, kHasToll>(worker, data, size, flags);
    case PageCache::kPool:
      return WriteWith<PoolCache, kHasToll>(worker, data, size, flags);
  }
  return {0, EINVAL};
}

// The numbers are those of kernel-mechanisms.md A2.
template <typename Cache, bool kHasToll>
IoResult Pipe::WriteWith(Worker& worker, const std::byte* data, size_t size, IoFlags flags) {
  const PipeEnvironment& env = *env_;
  memory::PageAllocator& pages = *env.pages;
  typename Cache::Batch batch;
  Cache::Preallocate(env, worker, size, CacheUnlocked(), batch);  // 2

  PipeLock lock(*info_, worker);  // 3
  if constexpr (kHasToll) PayForInfo(worker);
  const size_t page_bytes = pages.page_bytes();
  const uint32_t slot_flags = (flags & kIoPacket) != 0 ? kSlotPacket : kSlotCanMerge;
  memory::PendingWakes wakes;
  IoResult result;
  size_t done = 0;
  bool was_empty = false;
  bool wake_next_writer = false;

  if (!lock.is_owner_dead()) {
    Cache::Adopt(worker, info_->cache, batch);
    if (info_->readers.load(std::memory_order_relaxed) != 0) {
      const HeadTail ends = Ends();
      was_empty = ends.IsEmpty();
      if constexpr (kHasToll) {
        if (!was_empty) PayForSlot(worker, ends.head - 1);
      }
      done = Merge(data, size, ends);  // 4
      if (done != 0) worker.Count(Counter::kMerges);
    }
  }
  while (!lock.is_owner_dead()) {  // 5
    if (info_->readers.load(std::memory_order_relaxed) == 0) {
      result.is_sigpipe = (flags & kIoNoSignal) == 0;
      result.error = EPIPE;
      break;
    }
    if (done == size) break;
    HeadTail ends = Ends();
    if (!ends.IsFull(info_->max_usage.load(std::memory_order_relaxed))) {
      const memory::PageId page = Cache::Get(env, worker, info_->cache, batch);
      if (page == memory::kNoPage) {
        result.error = NoMemory(env, ENOMEM);
        break;
      }
      const size_t length = std::min(size - done, page_bytes);
      // Copied before the slot can be seen, so that no slot is ever without its bytes.
      std::memcpy(pages.Address(page), data + done, length);
      if constexpr (kHasToll) PayForSlot(worker, ends.head);
      SlotAt(ends.head) =
          Slot{page, 0, static_cast<uint32_t>(length), SlotKind::kAnonymousPage, slot_flags, 0, 0};
      ++ends.head;
      Publish(ends);
      done += length;
      continue;
    }
    if ((flags & kIoNonblocking) != 0) {  // 6
      result.error = EAGAIN;
      break;
    }
    if (const int error = TakeInterruption(worker); error != 0) {
      result.error = error;
      break;
    }
    if (was_empty)
      worker.Count(Counter::kReaderWakeups, info_->readers_waiting.WakeOne(env.region, wakes));
    Sleep(lock, PipeEnd::kWrite, worker, wakes);
    if (lock.is_owner_dead()) break;
    was_empty = Ends().IsEmpty();
    wake_next_writer = true;
  }

  if (lock.is_owner_dead()) {
    result = {0, lock.GiveUp(env)};
    Cache::FreeRest(env, worker, batch);
    return result;
  }
  Cache::Recycle(env, worker, info_->cache, batch);  // 7
  if (was_empty || info_->wakes_every_write != 0)
    worker.Count(Counter::kReaderWakeups, info_->readers_waiting.WakeOne(env.region, wakes));
  if (wake_next_writer && !Ends().IsFull(info_->max_usage.load(std::memory_order_relaxed))) {
    worker.Count(Counter::kWriterWakeups, info_->writers_waiting.WakeOne(env.region, wakes));
  }
  lock.ReleaseThenWake(wakes);
  Cache::FreeRest(env, worker, batch);
  if (done != 0) {
    worker.Count(Counter::kWrites);
    worker.Count(Counter::kBytesWritten, done);
    result.bytes = static_cast<int64_t>(done);
    result.error = 0;
  }
  return result;
}

size_t Pipe::Merge(const std::byte* data, size_t size, HeadTail ends) {
  const size_t page_bytes = env_->pages->page_bytes();
  const size_t length = size & (page_bytes - 1);
  if (length == 0 || ends.IsEmpty()) return 0;
  Slot& last = SlotAt(ends.head - 1);
  const size_t end = last.offset + last.length;
  if ((last.flags & kSlotCanMerge) == 0 || end + length > page_bytes) return 0;
  std::memcpy(env_->pages->Address(static_cast<memory::PageId>(last.page)) + end, data, length);
  last.length += static_cast<uint32_t>(length);
  return length;
}

}  // namespace pipeyard::pipe
