#include <errno.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "workloads/pipe/page_cache.h"
#include "workloads/pipe/pipe.h"
#include "workloads/pipe/pipe_lock.h"

namespace pipeyard::pipe {

IoResult Pipe::Read(Worker& worker, void* data, size_t size, IoMode mode) {
  if (size == 0) return {};
  auto* bytes = static_cast<std::byte*>(data);
  switch (env_.page_cache) {
    case PageCache::kTwoPage:
      return ReadWith<TwoPageCache>(worker, bytes, size, mode);
    case PageCache::kPrealloc:
      return ReadWith<PreallocCache>(worker, bytes, size, mode);
  }
  return {0, EINVAL};
}

// Source: kernel-mechanisms.md A3.
template <typename Cache>
IoResult Pipe::ReadWith(Worker& worker, std::byte* data, size_t size, IoMode mode) {
  memory::PageAllocator& pages = *env_.pages;
  PipeLock lock(*info_, worker);
  const uint32_t max_usage = info_->max_usage.load(std::memory_order_relaxed);
  memory::PendingWakes wakes;
  IoResult result;
  size_t done = 0;
  bool wake_writer = false;
  bool wake_next_reader = false;

  while (!lock.is_owner_dead()) {
    HeadTail ends = Ends();
    if (!ends.IsEmpty()) {
      Slot& slot = SlotAt(ends.tail);
      const auto page = static_cast<memory::PageId>(slot.page);
      const size_t length = std::min<size_t>(slot.length, size - done);
      std::memcpy(data + done, pages.Address(page) + slot.offset, length);
      slot.offset += static_cast<uint32_t>(length);
      slot.length -= static_cast<uint32_t>(length);
      done += length;
      if (slot.length == 0) {
        // The rule of 2025: a writer waits only when the pipe was full, so only then is one woken.
        wake_writer |= ends.IsFull(max_usage);
        slot.kind = SlotKind::kNone;
        Cache::Put(pages, worker, info_->cache, page);
        ++ends.tail;
        Publish(ends);
      }
      if (done == size) break;
      continue;
    }
    if (done != 0 || info_->writers.load(std::memory_order_relaxed) == 0) break;
    if (mode == IoMode::kNonblocking) {
      result.error = EAGAIN;
      break;
    }
    if (memory::TakeInterruption(worker.wait_node())) {
      result.error = EINTR;
      break;
    }
    Sleep(lock, /*is_reader=*/true, worker, wakes);
    wake_next_reader = true;
  }

  if (lock.is_owner_dead()) {
    lock.Release();
    SpreadOwnerDeath();
    return {0, EOWNERDEAD};
  }
  if (wake_writer)
    worker.Count(Counter::kWriterWakeups, info_->writers_waiting.WakeOne(env_.region, wakes));
  if (wake_next_reader && !Ends().IsEmpty()) {
    worker.Count(Counter::kReaderWakeups, info_->readers_waiting.WakeOne(env_.region, wakes));
  }
  lock.Release();
  if (const int calls = wakes.Flush(); calls != 0) worker.Count(Counter::kWakeCalls, calls);
  if (done != 0) {
    worker.Count(Counter::kReads);
    worker.Count(Counter::kBytesRead, done);
    result.bytes = static_cast<int64_t>(done);
  }
  return result;
}

}  // namespace pipeyard::pipe
