#include "workloads/pipe/poll.h"

#include <errno.h>

#include "workloads/memory/monotonic.h"
#include "workloads/pipe/pipe_lock.h"

namespace pipeyard::pipe {

// The parts of a Poll() call that look into pipes.
class Poller {
 public:
  Poller(Worker& worker, std::span<PollEntry> entries) : worker_(worker), entries_(entries) {}

  // Looks at every entry; joins the queues of the first ones until one has an event, where
  // `may_join`. Returns how many have events, or -EOWNERDEAD.
  int Look(bool may_join) {
    int num_ready = 0;
    for (size_t i = 0; i < entries_.size(); ++i) {
      PollEntry& entry = entries_[i];
      entry.revents = 0;
      if (!entry.pipe.IsValid()) continue;
      PipeLock lock(*entry.pipe.info_, worker_);
      if (lock.is_owner_dead()) return -lock.GiveUp(*entry.pipe.env_);
      entry.pipe.PayForInfo(worker_);
      entry.pipe.NotePolled();
      entry.revents = static_cast<uint16_t>(entry.pipe.ReadyEvents(entry.end) &
                                            (entry.events | kPollErr | kPollHup));
      if (entry.revents != 0) ++num_ready;
      memory::WaitEntry& place = worker_.entries().poll[i];
      if (!may_join || num_ready != 0 || place.is_queued != 0) continue;
      entry.pipe.QueueOf(entry.end).Join(entry.pipe.env_->region, worker_.sleeper(), place,
                                         memory::WaitKind::kShared);
      joined_ |= uint64_t{1} << i;
    }
    return num_ready;
  }

  void LeaveAll() {
    for (size_t i = 0; i < entries_.size(); ++i) {
      if ((joined_ >> i & 1) == 0) continue;
      Pipe& pipe = entries_[i].pipe;
      PipeLock lock(*pipe.info_, worker_);
      // A dead owner may have left the queue half written.
      if (lock.is_owner_dead()) {
        worker_.entries().poll[i].is_queued = 0;
      } else {
        pipe.QueueOf(entries_[i].end).Leave(pipe.env_->region, worker_.entries().poll[i]);
      }
    }
  }

  static int TakeInterruption(Worker& worker) { return Pipe::TakeInterruption(worker); }

 private:
  Worker& worker_;
  const std::span<PollEntry> entries_;
  uint64_t joined_ = 0;  // by entry
};
static_assert(kMaxPollEntries <= 64);

int Poll(Worker& worker, std::span<PollEntry> entries, Nanos timeout) {
  if (entries.size() > kMaxPollEntries) return -EINVAL;
  worker.Count(Counter::kPolls);
  const bool may_sleep = timeout != Nanos(0);
  const int64_t deadline_ns = memory::DeadlineAfter(timeout);
  Poller poller(worker, entries);
  int result = 0;
  for (;;) {
    worker.sleeper().Prepare();
    result = poller.Look(may_sleep);
    if (result != 0 || !may_sleep) break;
    if (const int error = Poller::TakeInterruption(worker); error != 0) {
      result = -error;
      break;
    }
    if (memory::MonotonicNanos() >= deadline_ns) break;
    worker.Count(Counter::kPollSleeps);
    memory::SleepUntilWokenOr(worker.sleeper(), deadline_ns);
  }
  poller.LeaveAll();
  return result;
}

}  // namespace pipeyard::pipe
