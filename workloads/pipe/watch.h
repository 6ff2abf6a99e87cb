// WatchSet: an epoll instance of one worker: pipes that are watched for as long as the set lives,
// by level or by edge (EPOLLET).
//
// An edge-triggered watch reports when it was woken since it last reported, provided that the event
// still holds; a level-triggered one reports as long as the event holds. Which writes wake is the
// pipe's rule (EngineConfig::poll_wakeup, H6).
//
// A watch ends with its pipe: the last close of both ends takes it off the pipe's queue, Wait()
// reports it no more, and Remove() gives its place back and says ENOENT. That close must not
// overlap with a call on the set, whose end included: the worker makes it itself or is told of it.
// So whether a watch is queued still may be read without the mutex, which is gone with the pipe.
//
// Thread safety: used by its worker alone. Ownership: borrows the worker; takes its places from the
// worker's kMaxWatches.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/units.h"
#include "workloads/pipe/pipe.h"
#include "workloads/pipe/poll.h"
#include "workloads/pipe/worker.h"

namespace pipeyard::pipe {

enum class WatchTrigger { kLevel, kEdge };

class WatchSet {
 public:
  explicit WatchSet(Worker& worker) : worker_(worker) {}
  WatchSet(const WatchSet&) = delete;
  WatchSet& operator=(const WatchSet&) = delete;
  ~WatchSet();

  // An event that holds already is reported by the next Wait(). `tag` comes back with the events.
  // Returns 0, EEXIST, ENOSPC (the worker has kMaxWatches), or EOWNERDEAD.
  int Add(const Pipe& pipe, PipeEnd end, uint16_t events, WatchTrigger trigger, uint64_t tag);
  // Returns 0, ENOENT (also where the watch has ended with its pipe), or EOWNERDEAD (it is removed
  // all the same).
  int Remove(const Pipe& pipe, PipeEnd end);

  struct Event {
    uint64_t tag = 0;
    uint16_t events = 0;  // PollEvent
  };
  // Waits until a watch reports, at most `timeout`; 0: only looks, below 0: without limit. Returns
  // how many events were put into `out` (not empty), 0 when the time ran out, or a negative errno:
  // -EINTR, -EOWNERDEAD.
  int Wait(std::span<Event> out, Nanos timeout);

 private:
  struct Watch {
    Pipe pipe;
    PipeEnd end = PipeEnd::kRead;
    uint16_t events = 0;
    WatchTrigger trigger = WatchTrigger::kLevel;
    uint64_t tag = 0;
  };

  // Whether the pipe of that watch has not ended.
  bool IsAlive(uint32_t position) { return PlaceAt(position).is_queued != 0; }
  // The position of that watch, or kMaxWatches.
  uint32_t Find(const Pipe& pipe, PipeEnd end) const;
  int RemoveAt(uint32_t position);
  // Reports of watches that were woken; a negative errno.
  int Collect(std::span<Event> out);
  memory::WaitEntry& PlaceAt(uint32_t position) { return worker_.entries().watches[position]; }

  Worker& worker_;
  uint64_t used_ = 0;  // by position, which is that of the worker's entry, too
  std::array<Watch, kMaxWatches> watches_;
  uint32_t first_ = 0;  // where the next look begins, so that none starves
};

}  // namespace pipeyard::pipe
