// Pipe: the kernel's pipe in user space, with its semantics (kernel-mechanisms.md A): a ring of
// page slots under one mutex, merging of short writes, atomic writes up to PIPE_BUF, packets,
// exclusive and chained wake-ups, sizes and limits.
//
// This is a handle: it says where a pipe lies. It has no file descriptors and raises no signal:
// what an open file would say (nonblocking, O_DIRECT) is said at each call, and IoResult says where
// the kernel would have sent SIGPIPE.
//
//   IoResult result = pipe.Write(worker, buffer, size);
//   if (result.error != 0) ...
//
// Thread safety: any number of workers at once, each worker in one call at a time; in threads or
// processes. Ownership: the pipe belongs to its open ends: the last close frees it, and handles
// must not be used from then on. Buffers are borrowed for the call.
#pragma once

#include <cstddef>
#include <cstdint>

#include "workloads/pipe/environment.h"
#include "workloads/pipe/pipe_info.h"
#include "workloads/pipe/worker.h"

namespace pipeyard::pipe {

// POSIX's and Linux's, whatever the page size.
inline constexpr size_t kPipeBuf = 4096;

// What a call returned. Errors are errno values: EAGAIN, EPIPE, ENOMEM, ENOBUFS, EINTR (interrupted
// before anything was moved), EOWNERDEAD (a worker died inside this pipe, or inside an allocator
// that this call found empty, or elsewhere in the engine while this call waited; every later call
// on a pipe that somebody died in says so too).
struct IoResult {
  int64_t bytes = 0;  // moved; 0 where error != 0, and at end of file
  int error = 0;
  bool is_sigpipe = false;  // the kernel would have sent SIGPIPE; bytes may be above 0 all the same

  bool ok() const { return error == 0; }
};

// What the file and the request say, for one call.
using IoFlags = uint32_t;
enum IoFlag : uint32_t {
  kIoBlocking = 0,
  kIoNonblocking = 1,  // O_NONBLOCK
  kIoPacket = 2,       // O_DIRECT: this write makes packets
  kIoNoSignal = 4,     // no SIGPIPE
};
enum class IoMode : uint32_t { kBlocking = kIoBlocking, kNonblocking = kIoNonblocking };

// The two files of a pipe.
enum class PipeEnd : uint8_t { kRead, kWrite };

class PipeLock;

class Pipe {
 public:
  // Nothing may be called on an empty handle but IsValid().
  Pipe() = default;
  // The pipe at `offset` of the region, as offset() gave it; in any process of the engine.
  Pipe(const PipeEnvironment& environment, uint64_t offset)
      : env_(&environment), info_(&environment.InfoAt(offset)) {}

  bool IsValid() const { return info_ != nullptr; }
  // Names the pipe in every process.
  uint64_t offset() const {
    return static_cast<uint64_t>(reinterpret_cast<std::byte*>(info_) - env_->region);
  }
  friend bool operator==(const Pipe& a, const Pipe& b) { return a.info_ == b.info_; }

  IoResult Write(Worker& worker, const void* data, size_t size, IoFlags flags = kIoBlocking);
  // Returns as soon as anything was read; 0 bytes without error is the end of file.
  IoResult Read(Worker& worker, void* data, size_t size, IoFlags flags = kIoBlocking);
  IoResult Write(Worker& worker, const void* data, size_t size, IoMode mode) {
    return Write(worker, data, size, static_cast<IoFlags>(mode));
  }
  IoResult Read(Worker& worker, void* data, size_t size, IoMode mode) {
    return Read(worker, data, size, static_cast<IoFlags>(mode));
  }

  // A pipe begins with one reader and one writer. The last close of one side wakes everybody; the
  // last of both frees the pipe. Preconditions: of the closes, that this end is open; of the opens,
  // that either end is. Returns 0, or EOWNERDEAD.
  int OpenReader(Worker& worker);
  int OpenWriter(Worker& worker);
  int CloseReader(Worker& worker);
  int CloseWriter(Worker& worker);

  // F_SETPIPE_SZ: returns the new capacity in bytes, or a negative errno: -EINVAL, -EPERM, -ENOMEM,
  // -EBUSY, in the kernel's order (A6), or -EOWNERDEAD.
  int64_t Resize(Worker& worker, uint64_t bytes);
  // FIONREAD: bytes in the pipe, or -EOWNERDEAD.
  int64_t QueuedBytes(Worker& worker);

  // F_GETPIPE_SZ.
  uint64_t capacity_bytes() const;
  uint32_t ring_slots() const;
  // Without the mutex: slots in use at this moment.
  uint32_t Occupancy() const;
  // How many workers are queued to sleep, poll or watch, or -EOWNERDEAD; for tests and displays.
  int CountWaitingReaders() const { return CountWaiting(PipeEnd::kRead); }
  int CountWaitingWriters() const { return CountWaiting(PipeEnd::kWrite); }
  // The locked state itself; for the engine's accounts and for tests.
  PipeInfo& info() const { return *info_; }

 private:
  friend class Engine;
  friend class Poller;
  friend class WatchSet;

  // Chosen once per call: the generation of the cache, and whether metadata has a toll.
  template <bool kHasToll>
  IoResult WriteAny(Worker& worker, const std::byte* data, size_t size, IoFlags flags);
  template <typename Cache, bool kHasToll>
  IoResult WriteWith(Worker& worker, const std::byte* data, size_t size, IoFlags flags);
  template <bool kHasToll>
  IoResult ReadAny(Worker& worker, std::byte* data, size_t size, IoFlags flags);
  template <typename Cache, bool kHasToll>
  IoResult ReadWith(Worker& worker, std::byte* data, size_t size, IoFlags flags);
  // For a guess at how many pages it holds (A7, pool).
  const CachedPages& CacheUnlocked() const NO_THREAD_SAFETY_ANALYSIS { return info_->cache; }
  // Puts the first bytes behind those of the last slot where the rule allows; returns how many.
  size_t Merge(const std::byte* data, size_t size, HeadTail ends) REQUIRES(info_->mutex);
  // Looks until `end` has an event or `worker` is interrupted; true where that was enough. Without
  // the mutex.
  bool SpinUntilReady(PipeEnd end, Worker& worker) const;
  // Takes the lines that every holder of the mutex writes, where they have a toll.
  void PayForInfo(Worker& worker) const {
    if (env_->toll != nullptr) [[unlikely]]
      env_->toll->Take(worker, offset(), 2 * memory::kCacheLine);
  }
  void PayForSlot(Worker& worker, uint32_t position) const REQUIRES(info_->mutex) {
    env_->toll->Take(worker, info_->slots_offset + sizeof(Slot) * (position & (ring_slots() - 1)),
                     sizeof(Slot));
  }
  // Sleeps in the queue; the mutex is free meanwhile.
  void Sleep(PipeLock& lock, PipeEnd end, Worker& worker, memory::PendingWakes& wakes)
      REQUIRES(info_->mutex);
  // EINTR, EOWNERDEAD, or 0 where nobody interrupted `worker`.
  static int TakeInterruption(Worker& worker);
  // Before a sleep: gives whoever has the mutex, or spins for it, the time to wake `sleeper`
  // without a system call on either side.
  void AwaitHolders(const memory::Sleeper& sleeper) const;
  int CountWaiting(PipeEnd end) const;
  int ChangeEnds(Worker& worker, int readers, int writers);
  // Replaces the ring and wakes a writer for the room.
  int ReplaceRing(Worker& worker, uint32_t slots, memory::PendingWakes& wakes)
      REQUIRES(info_->mutex);
  void ReleasePages(Worker& worker) REQUIRES(info_->mutex);
  // poll's mask for one end (PollEvent); a call on that end must wait while it is 0. Exact under
  // the mutex.
  uint16_t ReadyEvents(PipeEnd end) const;
  memory::WaitQueue& QueueOf(PipeEnd end) const REQUIRES(info_->mutex) {
    return end == PipeEnd::kRead ? info_->readers_waiting : info_->writers_waiting;
  }
  // The two things that may make every write wake readers (EngineConfig::poll_wakeup).
  void NotePolled() REQUIRES(info_->mutex) {
    if (env_->poll_wakeup == PollWakeup::kPollUsage) info_->wakes_every_write = 1;
  }
  void CountEdgeWatch(int change) REQUIRES(info_->mutex) {
    info_->edge_watches += static_cast<uint32_t>(change);
    if (env_->poll_wakeup == PollWakeup::kEdgeConsumers) {
      info_->wakes_every_write = info_->edge_watches != 0 ? 1 : 0;
    }
  }

  HeadTail Ends() const {
    return HeadTail::Unpack(info_->head_tail.load(std::memory_order_acquire));
  }
  // Release pairs with the acquire in Ends() of those who look without the mutex.
  void Publish(HeadTail ends) { info_->head_tail.store(ends.Pack(), std::memory_order_release); }
  Slot& SlotAt(uint32_t position) const REQUIRES(info_->mutex);

  const PipeEnvironment* env_ = nullptr;
  PipeInfo* info_ = nullptr;
};

// A new pipe, or why there is none: an errno as pipe(2) and F_SETPIPE_SZ give them (ENFILE: no
// memory, or over the user's hard limit), or EOWNERDEAD.
struct CreatedPipe {
  Pipe pipe;
  int error = 0;

  bool ok() const { return error == 0; }
};

struct PipeOptions {
  // Rounded up to a power of two pages, as F_SETPIPE_SZ does, which follows the creation. 0: as
  // pipe(2) makes it, 16 slots.
  uint64_t bytes = 0;
  // Where head and tail begin; for tests of the wrap at 2^32.
  uint32_t first_position = 0;
};

// pipe(2) and F_SETPIPE_SZ, by `worker`: its CPU, policy and user decide.
CreatedPipe CreatePipe(const PipeEnvironment& environment, Worker& worker,
                       const PipeOptions& options);

// What the info object is asked for with: as large as the kernel's, so that it is of the same size
// class (A8; the pool of eight pages moves it to that of 256).
uint32_t InfoBytes(PageCache page_cache);

}  // namespace pipeyard::pipe
