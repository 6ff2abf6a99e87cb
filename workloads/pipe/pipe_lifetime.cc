// Creation, resizing and the end of a pipe: everything that allocates or frees metadata.
// Sources: kernel-mechanisms.md A6, A8, B2.

#include <errno.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "workloads/memory/metadata_placement.h"
#include "workloads/pipe/pipe.h"
#include "workloads/pipe/pipe_lock.h"

namespace pipeyard::pipe {
namespace {

constexpr uint32_t kPoolInfoBytes = 232;
static_assert(offsetof(PipeInfo, list) + sizeof(PipeInfo::list) <= memory::kPipeInfoBytes);
static_assert(sizeof(Slot) == memory::kSlotBytes);

constexpr uint32_t RingBytes(uint32_t slots) { return slots * static_cast<uint32_t>(sizeof(Slot)); }

// By single writer; no read-modify-write.
void Count(std::atomic<uint64_t>& counter) {
  counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

// Zeroed, as the kernel's are; 0 where there is no memory. Counts it in `by_node`.
uint64_t AllocateZeroed(const PipeEnvironment& env, Worker& worker, uint32_t bytes,
                        const memory::ObjectRequest& request, std::atomic<uint64_t>* by_node) {
  if (request.is_policy_queried) worker.Count(Counter::kPolicyQueries);
  const memory::ObjectRef object = env.objects->Allocate(worker.objects(), bytes, request.node);
  if (object == memory::kNoObject) return 0;
  const numa::NodeId node = env.objects->NodeOf(object);
  Count(by_node[node]);
  worker.Count(node == worker.pages().local.preferred ? Counter::kMetadataLocal
                                                      : Counter::kMetadataRemote);
  if (env.toll != nullptr) [[unlikely]]
    env.toll->Take(worker, object, bytes);
  std::memset(env.region + object, 0, bytes);
  return object;
}

// False where a worker died inside the list.
bool AddToList(const PipeEnvironment& env, PipeInfo& info, uint64_t offset) {
  PipeList& list = env.lists[info.list];
  const bool is_owner_dead = list.mutex.Lock().is_owner_dead;
  info.next_alive = list.first;
  if (list.first != 0) env.InfoAt(list.first).previous_alive = offset;
  list.first = offset;
  ++list.num_alive;
  list.mutex.Unlock();
  return !is_owner_dead;
}

bool RemoveFromList(const PipeEnvironment& env, PipeInfo& info) {
  PipeList& list = env.lists[info.list];
  const bool is_owner_dead = list.mutex.Lock().is_owner_dead;
  if (info.previous_alive != 0) {
    env.InfoAt(info.previous_alive).next_alive = info.next_alive;
  } else {
    list.first = info.next_alive;
  }
  if (info.next_alive != 0) env.InfoAt(info.next_alive).previous_alive = info.previous_alive;
  --list.num_alive;
  list.mutex.Unlock();
  return !is_owner_dead;
}

}  // namespace

uint32_t InfoBytes(PageCache page_cache) {
  return page_cache == PageCache::kPool ? kPoolInfoBytes
                                        : static_cast<uint32_t>(memory::kPipeInfoBytes);
}

CreatedPipe CreatePipe(const PipeEnvironment& env, Worker& worker, const PipeOptions& options) {
  const uint64_t page_bytes = env.pages->page_bytes();
  const PipeIdentity& identity = worker.identity();
  const uint32_t wanted = SlotsAtCreation(env.limits, identity.capabilities, page_bytes);
  const memory::CreationRequest request =
      memory::PlanCreation(env.metadata_placement, wanted, page_bytes, worker.pages().policy,
                           env.pages->ContextOf(worker.pages()));
  const uint64_t offset = AllocateZeroed(env, worker, InfoBytes(env.page_cache), request.info,
                                         worker.metadata_by_node().infos);
  if (offset == 0) return {{}, NoMemory(env, ENFILE)};
  PipeUser& user = env.users[identity.user];
  const uint32_t slots = ChargeNewPipe(env.limits, identity.capabilities, user, wanted);
  // One query serves both.
  const uint64_t ring = slots == 0 ? 0
                                   : AllocateZeroed(env, worker, RingBytes(slots),
                                                    {request.ring.source, request.ring.node, false},
                                                    worker.metadata_by_node().rings);
  if (ring == 0) {
    if (slots != 0) user.Charge(slots, 0);
    env.objects->Free(worker.objects(), offset, InfoBytes(env.page_cache));
    return {{}, NoMemory(env, ENFILE)};
  }

  Pipe pipe(env, offset);
  PipeInfo& info = pipe.info();
  // Nobody else knows of the pipe yet; the mutex is taken for the sake of the rule.
  static_cast<void>(info.mutex.Lock());
  const HeadTail ends{options.first_position, options.first_position};
  info.head_tail.store(ends.Pack(), std::memory_order_relaxed);
  info.max_usage.store(slots, std::memory_order_relaxed);
  info.ring_slots.store(slots, std::memory_order_relaxed);
  info.readers.store(1, std::memory_order_relaxed);
  info.writers.store(1, std::memory_order_relaxed);
  info.files = 2;
  info.slots_offset = ring;
  info.accounted_slots = slots;
  info.user = identity.user;
  info.list = static_cast<uint32_t>(worker.index());
  std::fill(std::begin(info.cache.pages), std::end(info.cache.pages), memory::kNoPage);
  info.mutex.Unlock();
  if (!AddToList(env, info, offset)) {
    SpreadOwnerDeath(env);
    return {{}, EOWNERDEAD};
  }
  worker.Count(Counter::kPipesCreated);

  // Not to the size that it has: that would be a second ring and a second question of the policy.
  if (options.bytes != 0 && SlotsForSize(options.bytes, page_bytes) != slots) {
    const int64_t resized = pipe.Resize(worker, options.bytes);
    if (resized < 0) {
      pipe.CloseReader(worker);
      pipe.CloseWriter(worker);
      return {{}, static_cast<int>(-resized)};
    }
  }
  return {pipe, 0};
}

int64_t Pipe::Resize(Worker& worker, uint64_t bytes) {
  const uint64_t page_bytes = env_->pages->page_bytes();
  const uint32_t slots = SlotsForSize(bytes, page_bytes);
  PipeLock lock(*info_, worker);
  if (lock.is_owner_dead()) return -lock.GiveUp(*env_);
  PayForInfo(worker);
  if (slots == 0) return -EINVAL;
  PipeUser& user = env_->users[info_->user];
  const uint32_t accounted = info_->accounted_slots;
  int error =
      ChargeResize(env_->limits, worker.identity().capabilities, user,
                   info_->max_usage.load(std::memory_order_relaxed), accounted, slots, page_bytes);
  memory::PendingWakes wakes;
  if (error == 0) {
    error = ReplaceRing(worker, slots, wakes);
    if (error != 0) user.Charge(slots, accounted);
  }
  lock.ReleaseThenWake(wakes);
  if (error != 0) {
    worker.Count(Counter::kResizesRefused);
    return -error;
  }
  worker.Count(Counter::kResizes);
  return static_cast<int64_t>(slots * page_bytes);
}

int Pipe::ReplaceRing(Worker& worker, uint32_t slots, memory::PendingWakes& wakes) {
  if (ExceedsIndex<PipeIndex>(slots)) return EINVAL;
  const memory::ObjectRequest request =
      memory::PlanResize(env_->metadata_placement, slots, env_->pages->page_bytes(),
                         worker.pages().policy, env_->pages->ContextOf(worker.pages()));
  const uint64_t ring =
      AllocateZeroed(*env_, worker, RingBytes(slots), request, worker.metadata_by_node().rings);
  if (ring == 0) return NoMemory(*env_, ENOMEM);
  HeadTail ends = Ends();
  const uint32_t used = ends.Occupancy();
  if (used > slots) {
    env_->objects->Free(worker.objects(), ring, RingBytes(slots));
    return EBUSY;
  }
  auto* to = reinterpret_cast<Slot*>(env_->region + ring);
  for (uint32_t i = 0; i < used; ++i) {
    if (env_->toll != nullptr) [[unlikely]]
      PayForSlot(worker, ends.tail + i);
    to[i] = SlotAt(ends.tail + i);
  }
  const uint64_t old_ring = std::exchange(info_->slots_offset, ring);
  const uint32_t old_slots = info_->ring_slots.load(std::memory_order_relaxed);
  info_->ring_slots.store(slots, std::memory_order_relaxed);
  // Both before anybody is woken: a writer that looked first would see a full pipe and sleep again
  // (H5).
  info_->max_usage.store(slots, std::memory_order_relaxed);
  Publish(HeadTail{used, 0});
  info_->accounted_slots = slots;
  env_->objects->Free(worker.objects(), old_ring, RingBytes(old_slots));
  worker.Count(Counter::kWriterWakeups, info_->writers_waiting.WakeOne(env_->region, wakes));
  return 0;
}

int Pipe::OpenReader(Worker& worker) { return ChangeEnds(worker, 1, 0); }
int Pipe::OpenWriter(Worker& worker) { return ChangeEnds(worker, 0, 1); }
int Pipe::CloseReader(Worker& worker) { return ChangeEnds(worker, -1, 0); }
int Pipe::CloseWriter(Worker& worker) { return ChangeEnds(worker, 0, -1); }

int Pipe::ChangeEnds(Worker& worker, int reader_change, int writer_change) {
  PipeLock lock(*info_, worker);
  if (lock.is_owner_dead()) return lock.GiveUp(*env_);
  PayForInfo(worker);
  const uint32_t readers =
      info_->readers.load(std::memory_order_relaxed) + static_cast<uint32_t>(reader_change);
  const uint32_t writers =
      info_->writers.load(std::memory_order_relaxed) + static_cast<uint32_t>(writer_change);
  info_->readers.store(readers, std::memory_order_relaxed);
  info_->writers.store(writers, std::memory_order_relaxed);
  info_->files += static_cast<uint32_t>(reader_change + writer_change);
  const bool is_close = reader_change + writer_change < 0;
  // Everybody, not the first one only: each of them has to see the end of file or the broken pipe
  // by itself (H3).
  if (is_close && (readers == 0) != (writers == 0)) {
    worker.Count(Counter::kReaderWakeups, info_->readers_waiting.WakeAll(env_->region));
    worker.Count(Counter::kWriterWakeups, info_->writers_waiting.WakeAll(env_->region));
  }
  // The kernel wakes whoever waits for the other end of a FIFO, and with them all of this queue:
  // watches of a read end report when an end that had no file gets one.
  if ((reader_change > 0 && readers == 1) || (writer_change > 0 && writers == 1)) {
    worker.Count(Counter::kReaderWakeups, info_->readers_waiting.WakeAll(env_->region));
  }
  if (info_->files != 0) return 0;

  ReleasePages(worker);
  info_->readers_waiting.DismissAll(env_->region);
  info_->writers_waiting.DismissAll(env_->region);
  const uint64_t ring = info_->slots_offset;
  const uint32_t ring_slots = info_->ring_slots.load(std::memory_order_relaxed);
  env_->users[info_->user].Charge(info_->accounted_slots, 0);
  lock.Release();
  if (!RemoveFromList(*env_, *info_)) {
    SpreadOwnerDeath(*env_);
    return EOWNERDEAD;
  }
  env_->objects->Free(worker.objects(), ring, RingBytes(ring_slots));
  env_->objects->Free(worker.objects(), offset(), InfoBytes(env_->page_cache));
  worker.Count(Counter::kPipesFreed);
  return 0;
}

void Pipe::ReleasePages(Worker& worker) {
  HeadTail ends = Ends();
  for (; !ends.IsEmpty(); ++ends.tail) {
    Slot& slot = SlotAt(ends.tail);
    slot.kind = SlotKind::kNone;
    env_->pages->Put(worker.pages(), static_cast<memory::PageId>(slot.page));
  }
  Publish(ends);
  for (memory::PageId& page : info_->cache.pages) {
    if (page != memory::kNoPage)
      env_->pages->Put(worker.pages(), std::exchange(page, memory::kNoPage));
  }
  info_->cache.count.store(0, std::memory_order_relaxed);
}

}  // namespace pipeyard::pipe
