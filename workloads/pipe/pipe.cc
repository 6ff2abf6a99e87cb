#include "workloads/pipe/pipe.h"

#include <errno.h>
#include <sched.h>

#include <utility>

#include "workloads/memory/monotonic.h"
#include "workloads/pipe/pipe_lock.h"
#include "workloads/pipe/poll.h"

namespace pipeyard::pipe {
namespace {

// Longer than emptying or filling any slab-sized ring takes, shorter than a time slice.
constexpr int64_t kLongYieldNanos = 100'000;

}  // namespace

Slot& Pipe::SlotAt(uint32_t position) const {
  const uint32_t mask = info_->ring_slots.load(std::memory_order_relaxed) - 1;
  return reinterpret_cast<Slot*>(env_->region + info_->slots_offset)[position & mask];
}

bool Pipe::SpinUntilReady(PipeEnd end, Worker& worker) const {
  if (!worker.MaySpin()) return false;
  int64_t now = memory::MonotonicNanos();
  const int64_t deadline = now + env_->wait_spin.count();
  const auto is_over = [&] {
    return ReadyEvents(end) != 0 || memory::IsInterrupted(worker.sleeper());
  };
  do {
    for (int i = 0; i < 16; ++i) {
      if (is_over()) return true;
      memory::SpinPause();
    }
    // Whoever is waited for may need this very CPU: spinning on would keep it from there.
    const int64_t left = memory::MonotonicNanos();
    ::sched_yield();
    now = memory::MonotonicNanos();
    if (now - left > kLongYieldNanos && !is_over()) {
      // A stranger had the CPU instead. It would take it at each yield, for milliseconds, and
      // spinning without yielding would keep whoever is waited for from it.
      worker.StopSpinning();
      return false;
    }
  } while (now < deadline);
  return false;
}

void Pipe::Sleep(PipeLock& lock, PipeEnd end, Worker& worker,
                 memory::PendingWakes& wakes) NO_THREAD_SAFETY_ANALYSIS {
  if (env_->wait_spin > Nanos(0)) {
    lock.ReleaseThenWake(wakes);
    const bool is_over = SpinUntilReady(end, worker);
    lock.Retake();
    PayForInfo(worker);
    // What was missed since the last look is seen under the mutex.
    if (is_over || lock.is_owner_dead() || ReadyEvents(end) != 0) return;
  }
  memory::WaitQueue& queue = QueueOf(end);
  worker.sleeper().Prepare();
  queue.Join(env_->region, worker.sleeper(), worker.wait_node().entry,
             memory::WaitKind::kExclusive);
  worker.Count(end == PipeEnd::kRead ? Counter::kReaderSleeps : Counter::kWriterSleeps);
  lock.ReleaseThenWake(wakes);
  AwaitHolders(worker.sleeper());
  memory::SleepUntilWoken(worker.sleeper());
  lock.Retake();
  PayForInfo(worker);
  // A dead owner may have left the queue half written.
  if (!lock.is_owner_dead()) queue.Leave(env_->region, worker.wait_node().entry);
}

// The kernel's waiter looks at the ring once more on its way to sleep, without the mutex, and stays
// awake where a holder has put a page there meanwhile. This one waits for that holder to be done,
// so that the wake-up finds it awake; bounded as a spin for the mutex itself is.
void Pipe::AwaitHolders(const memory::Sleeper& sleeper) const {
  info_->mutex.SpinWhileWanted(
      [&] { return sleeper.state.load(std::memory_order_relaxed) != memory::Sleeper::kQueued; });
}

int Pipe::TakeInterruption(Worker& worker) {
  switch (memory::TakeInterruption(worker.sleeper())) {
    case memory::Interruption::kNone:
      return 0;
    case memory::Interruption::kOnce:
    case memory::Interruption::kForGood:
      return EINTR;
    case memory::Interruption::kOwnerDied:
      break;
  }
  return EOWNERDEAD;
}

void SpreadOwnerDeath(const PipeEnvironment& env) {
  for (int i = 0; i < env.num_workers; ++i) {
    memory::Interrupt(env.wait_nodes[i].sleeper, memory::Interruption::kOwnerDied);
  }
}

int NoMemory(const PipeEnvironment& env, int error) {
  if (!env.pages->is_broken() && !env.objects->is_broken()) return error;
  SpreadOwnerDeath(env);
  return EOWNERDEAD;
}

uint16_t Pipe::ReadyEvents(PipeEnd end) const {
  const HeadTail ends = Ends();
  uint16_t events = 0;
  if (end == PipeEnd::kRead) {
    if (!ends.IsEmpty()) events |= kPollIn;
    if (info_->writers.load(std::memory_order_relaxed) == 0) events |= kPollHup;
  } else {
    if (!ends.IsFull(info_->max_usage.load(std::memory_order_relaxed))) events |= kPollOut;
    if (info_->readers.load(std::memory_order_relaxed) == 0) events |= kPollErr;
  }
  return events;
}

int64_t Pipe::QueuedBytes(Worker& worker) {
  PipeLock lock(*info_, worker);
  if (lock.is_owner_dead()) return -lock.GiveUp(*env_);
  PayForInfo(worker);
  int64_t bytes = 0;
  for (HeadTail ends = Ends(); !ends.IsEmpty(); ++ends.tail) {
    if (env_->toll != nullptr) [[unlikely]]
      PayForSlot(worker, ends.tail);
    bytes += SlotAt(ends.tail).length;
  }
  return bytes;
}

uint64_t Pipe::capacity_bytes() const {
  return info_->max_usage.load(std::memory_order_relaxed) * env_->pages->page_bytes();
}

uint32_t Pipe::ring_slots() const { return info_->ring_slots.load(std::memory_order_relaxed); }

uint32_t Pipe::Occupancy() const { return Ends().Occupancy(); }

int Pipe::CountWaiting(PipeEnd end) const {
  const bool is_owner_dead = info_->mutex.Lock().is_owner_dead;
  // A dead owner may have left the queue half written, so it must not be walked.
  const int count = is_owner_dead ? -EOWNERDEAD : QueueOf(end).CountWaiters(env_->region);
  info_->mutex.Unlock();
  if (is_owner_dead) SpreadOwnerDeath(*env_);
  return count;
}

}  // namespace pipeyard::pipe
