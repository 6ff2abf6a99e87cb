#include <errno.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "workloads/pipe/page_cache.h"
#include "workloads/pipe/pipe.h"
#include "workloads/pipe/pipe_lock.h"

namespace pipeyard::pipe {

IoResult Pipe::Read(Worker& worker, void* data, size_t size, IoFlags flags) {
  if (size == 0) return {};
  auto* bytes = static_cast<std::byte*>(data);
  if (env_->toll != nullptr) [[unlikely]]
    return ReadAny<true>(worker, bytes, size, flags);
  return ReadAny<false>(worker, bytes, size, flags);
}

template <bool kHasToll>
IoResult Pipe::ReadAny(Worker& worker, std::byte* data, size_t size, IoFlags flags) {
  switch (env_->page_cache) {
    case PageCache::kTwoPage:
    case PageCache::kPreallocV1:
    case PageCache::kPrealloc:
      return ReadWith<TwoPageCache, kHasToll>(worker, data, size, flags);
    case PageCache::kOnePage:
      return ReadWith<OnePageCache, kHasToll>(worker, data, size, flags);
    case PageCache::kPool:
      return ReadWith<PoolCache, kHasToll>(worker, data, size, flags);
  }
  return {0, EINVAL};
}

// Source: kernel-mechanisms.md A3.
template <typename Cache, bool kHasToll>
IoResult Pipe::ReadWith(Worker& worker, std::byte* data, size_t size, IoFlags flags) {
  const PipeEnvironment& env = *env_;
  memory::PageAllocator& pages = *env.pages;
  PipeLock lock(*info_, worker);
  if constexpr (kHasToll) PayForInfo(worker);
  memory::PendingWakes wakes;
  typename Cache::Trimmed trimmed;
  IoResult result;
  size_t done = 0;
  bool wake_writer = env.wakeup == Wakeup::kAlways;
  bool wake_next_reader = false;

  while (!lock.is_owner_dead()) {
    HeadTail ends = Ends();
    if (!ends.IsEmpty()) {
      if constexpr (kHasToll) PayForSlot(worker, ends.tail);
      Slot& slot = SlotAt(ends.tail);
      const auto page = static_cast<memory::PageId>(slot.page);
      const size_t length = std::min<size_t>(slot.length, size - done);
      if ((slot.flags & (kSlotPacket | kSlotWhole)) != 0) [[unlikely]] {
        if ((slot.flags & kSlotWhole) != 0 && length < slot.length) {
          if (done == 0) result.error = ENOBUFS;
          break;
        }
        if ((slot.flags & kSlotPacket) != 0) {
          // What the caller has no room for is lost, and nothing of the next packet is read.
          slot.length = static_cast<uint32_t>(length);
          size = done + length;
        }
      }
      std::memcpy(data + done, pages.Address(page) + slot.offset, length);
      slot.offset += static_cast<uint32_t>(length);
      slot.length -= static_cast<uint32_t>(length);
      done += length;
      if (slot.length == 0) {
        // The rule of 2025: a writer waits only when the pipe was full, so only then is one woken.
        wake_writer |= ends.IsFull(info_->max_usage.load(std::memory_order_relaxed));
        slot.kind = SlotKind::kNone;
        Cache::Put(env, worker, info_->cache, page);
        ++ends.tail;
        Publish(ends);
      }
      if (done == size) break;
      continue;
    }
    if (done != 0 || info_->writers.load(std::memory_order_relaxed) == 0) break;
    if ((flags & kIoNonblocking) != 0) {
      result.error = EAGAIN;
      break;
    }
    if (const int error = TakeInterruption(worker); error != 0) {
      result.error = error;
      break;
    }
    Sleep(lock, PipeEnd::kRead, worker, wakes);
    wake_next_reader = true;
  }

  if (lock.is_owner_dead()) return {0, lock.GiveUp(*env_)};
  Cache::Trim(info_->cache, trimmed);
  if (wake_writer && done != 0)
    worker.Count(Counter::kWriterWakeups, info_->writers_waiting.WakeOne(env.region, wakes));
  if (wake_next_reader && !Ends().IsEmpty()) {
    worker.Count(Counter::kReaderWakeups, info_->readers_waiting.WakeOne(env.region, wakes));
  }
  lock.ReleaseThenWake(wakes);
  Cache::FreeTrimmed(env, worker, trimmed);
  if (done != 0) {
    worker.Count(Counter::kReads);
    worker.Count(Counter::kBytesRead, done);
    result.bytes = static_cast<int64_t>(done);
  }
  return result;
}

}  // namespace pipeyard::pipe
