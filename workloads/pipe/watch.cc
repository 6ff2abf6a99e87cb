#include "workloads/pipe/watch.h"

#include <errno.h>

#include <bit>

#include "workloads/memory/monotonic.h"
#include "workloads/pipe/pipe_lock.h"

namespace pipeyard::pipe {

static_assert(kMaxWatches == 64, "positions are bits of a word");

WatchSet::~WatchSet() {
  for (uint32_t position = 0; position < kMaxWatches; ++position) {
    if ((used_ >> position & 1) != 0) RemoveAt(position);
  }
}

int WatchSet::Add(const Pipe& pipe, PipeEnd end, uint16_t events, WatchTrigger trigger,
                  uint64_t tag) {
  if (const uint32_t known = Find(pipe, end); known != kMaxWatches) {
    if (IsAlive(known)) return EEXIST;
    // Of a pipe that has ended; this one lies where it lay.
    RemoveAt(known);
  }
  const auto position = static_cast<uint32_t>(std::countr_one(worker_.watches_in_use()));
  if (position == kMaxWatches) return ENOSPC;
  Watch& watch = watches_[position];
  watch = {pipe, end, static_cast<uint16_t>(events | kPollErr | kPollHup), trigger, tag};
  PipeLock lock(*watch.pipe.info_, worker_);
  if (lock.is_owner_dead()) return lock.GiveUp(*pipe.env_);
  watch.pipe.PayForInfo(worker_);
  watch.pipe.NotePolled();
  if (trigger == WatchTrigger::kEdge) watch.pipe.CountEdgeWatch(1);
  memory::WaitEntry& place = PlaceAt(position);
  watch.pipe.QueueOf(end).Join(pipe.env_->region, worker_.sleeper(), place,
                               memory::WaitKind::kWatch);
  place.is_ready.store((pipe.ReadyEvents(end) & watch.events) != 0 ? 1 : 0,
                       std::memory_order_relaxed);
  used_ |= uint64_t{1} << position;
  worker_.set_watches_in_use(worker_.watches_in_use() | uint64_t{1} << position);
  return 0;
}

int WatchSet::Remove(const Pipe& pipe, PipeEnd end) {
  const uint32_t position = Find(pipe, end);
  if (position == kMaxWatches) return ENOENT;
  const bool is_alive = IsAlive(position);
  const int error = RemoveAt(position);
  return is_alive ? error : ENOENT;
}

uint32_t WatchSet::Find(const Pipe& pipe, PipeEnd end) const {
  for (uint32_t position = 0; position < kMaxWatches; ++position) {
    if ((used_ >> position & 1) == 0) continue;
    if (watches_[position].pipe == pipe && watches_[position].end == end) return position;
  }
  return kMaxWatches;
}

int WatchSet::RemoveAt(uint32_t position) {
  const uint64_t bit = uint64_t{1} << position;
  used_ &= ~bit;
  worker_.set_watches_in_use(worker_.watches_in_use() & ~bit);
  Watch& watch = watches_[position];
  if (!IsAlive(position)) return 0;
  memory::WaitEntry& place = PlaceAt(position);
  PipeLock lock(*watch.pipe.info_, worker_);
  if (lock.is_owner_dead()) {
    // The queue may be half written; nobody walks it any more.
    place.is_queued = 0;
    return lock.GiveUp(*watch.pipe.env_);
  }
  watch.pipe.QueueOf(watch.end).Leave(watch.pipe.env_->region, place);
  if (watch.trigger == WatchTrigger::kEdge) watch.pipe.CountEdgeWatch(-1);
  return 0;
}

int WatchSet::Collect(std::span<Event> out) {
  size_t num_events = 0;
  const uint32_t start = first_;
  for (uint32_t i = 0; i < kMaxWatches && num_events < out.size(); ++i) {
    const uint32_t position = (start + i) % kMaxWatches;
    if ((used_ >> position & 1) == 0 || !IsAlive(position)) continue;
    memory::WaitEntry& place = PlaceAt(position);
    if (place.is_ready.exchange(0, std::memory_order_acq_rel) == 0) continue;
    Watch& watch = watches_[position];
    PipeLock lock(*watch.pipe.info_, worker_);
    if (lock.is_owner_dead()) return -lock.GiveUp(*watch.pipe.env_);
    watch.pipe.PayForInfo(worker_);
    const auto events = static_cast<uint16_t>(watch.pipe.ReadyEvents(watch.end) & watch.events);
    if (events == 0) continue;
    // A level stays until somebody finds it gone.
    if (watch.trigger == WatchTrigger::kLevel) place.is_ready.store(1, std::memory_order_relaxed);
    out[num_events++] = {watch.tag, events};
    first_ = position + 1;
  }
  return static_cast<int>(num_events);
}

int WatchSet::Wait(std::span<Event> out, Nanos timeout) {
  worker_.Count(Counter::kWatchWaits);
  const int64_t deadline_ns = memory::DeadlineAfter(timeout);
  for (;;) {
    worker_.sleeper().Prepare();
    const int result = Collect(out);
    if (result != 0 || timeout == Nanos(0)) return result;
    if (const int error = Pipe::TakeInterruption(worker_); error != 0) return -error;
    if (memory::MonotonicNanos() >= deadline_ns) return 0;
    worker_.Count(Counter::kWatchSleeps);
    memory::SleepUntilWokenOr(worker_.sleeper(), deadline_ns);
  }
}

}  // namespace pipeyard::pipe
