#include "workloads/pipe/differential/engine_system.h"

#include <errno.h>

#include "workloads/pipe/poll.h"

namespace pipeyard::pipe::differential {
namespace {

Outcome OutcomeOf(const IoResult& result) {
  return {result.ok() ? result.bytes : -result.error, result.is_sigpipe};
}

IoFlags FlagsOf(FileFlags flags) {
  return (flags.is_nonblocking ? kIoNonblocking : kIoBlocking) |
         (flags.is_packet ? kIoPacket : kIoBlocking);
}

}  // namespace

Outcome EngineSystem::Create(int actor, int read_file, int write_file, FileFlags flags) {
  const CreatedPipe created = engine_.CreatePipe(engine_.worker(actor));
  if (!created.ok()) return {-created.error, false};
  At(read_file) = {created.pipe, PipeEnd::kRead, flags};
  At(write_file) = {created.pipe, PipeEnd::kWrite, flags};
  return {};
}

Outcome EngineSystem::Open(int actor, int file, PipeEnd end, int new_file) {
  Pipe pipe = At(file).pipe;
  Worker& worker = engine_.worker(actor);
  const int error = end == PipeEnd::kRead ? pipe.OpenReader(worker) : pipe.OpenWriter(worker);
  if (error == 0) At(new_file) = {pipe, end, kFlagsOfOpen};
  return {-error, false};
}

Outcome EngineSystem::Close(int actor, int file) {
  Unwatch(file);
  const File closed = std::exchange(At(file), File());
  Pipe pipe = closed.pipe;
  Worker& worker = engine_.worker(actor);
  const int error =
      closed.end == PipeEnd::kRead ? pipe.CloseReader(worker) : pipe.CloseWriter(worker);
  return {-error, false};
}

Outcome EngineSystem::Write(int actor, int file, const char* data, size_t size, bool is_quiet) {
  const IoFlags flags = FlagsOf(At(file).flags) | (is_quiet ? kIoNoSignal : kIoBlocking);
  return OutcomeOf(At(file).pipe.Write(engine_.worker(actor), data, size, flags));
}

Outcome EngineSystem::Read(int actor, int file, char* data, size_t size) {
  return OutcomeOf(At(file).pipe.Read(engine_.worker(actor), data, size, FlagsOf(At(file).flags)));
}

Outcome EngineSystem::SetFlags(int, int file, FileFlags flags) {
  At(file).flags = flags;
  return {};
}

Outcome EngineSystem::Resize(int actor, int file, uint32_t bytes) {
  return {At(file).pipe.Resize(engine_.worker(actor), bytes), false};
}

Outcome EngineSystem::Capacity(int, int file) {
  return {static_cast<int64_t>(At(file).pipe.capacity_bytes()), false};
}

Outcome EngineSystem::QueuedBytes(int actor, int file) {
  return {At(file).pipe.QueuedBytes(engine_.worker(actor)), false};
}

Outcome EngineSystem::Poll(int actor, FileSet files, bool is_waiting, PollMasks& masks) {
  PollEntry entries[kMaxFiles];
  size_t count = 0;
  masks.fill(0);
  for (int file = 0; file < kMaxFiles; ++file) {
    if ((files >> file & 1) != 0) {
      entries[count++] = {At(file).pipe, At(file).end, kPollIn | kPollOut, 0};
    }
  }
  const int result =
      pipe::Poll(engine_.worker(actor), {entries, count}, Nanos(is_waiting ? -1 : 0));
  if (result < 0) return {result, false};
  count = 0;
  for (size_t file = 0; file < kMaxFiles; ++file) {
    if ((files >> file & 1) != 0) masks[file] = entries[count++].revents;
  }
  return {result, false};
}

Outcome EngineSystem::Watch(int actor, int file) {
  std::unique_ptr<WatchSet>& set = watches_[static_cast<size_t>(actor)];
  if (set == nullptr) set = std::make_unique<WatchSet>(engine_.worker(actor));
  const int error = set->Add(At(file).pipe, At(file).end, kPollIn | kPollOut, WatchTrigger::kEdge,
                             static_cast<uint64_t>(file));
  if (error == 0) watched_[static_cast<size_t>(actor)] |= FileSet{1} << file;
  return {-error, false};
}

Outcome EngineSystem::TakeReady(int actor, PollMasks& masks) {
  masks.fill(0);
  WatchSet* const set = watches_[static_cast<size_t>(actor)].get();
  if (set == nullptr) return {};
  WatchSet::Event events[kMaxFiles];
  const int count = set->Wait(events, Nanos(0));
  for (int i = 0; i < count; ++i) masks[events[i].tag] = events[i].events;
  return {count, false};
}

// epoll forgets a file when it is closed.
void EngineSystem::Unwatch(int file) {
  for (size_t actor = 0; actor < kMaxActors; ++actor) {
    if ((watched_[actor] >> file & 1) == 0) continue;
    watched_[actor] &= ~(FileSet{1} << file);
    watches_[actor]->Remove(At(file).pipe, At(file).end);
  }
}

void EngineSystem::Reset() {
  for (int file = 0; file < kMaxFiles; ++file) {
    if (At(file).pipe.IsValid()) Close(0, file);
  }
  for (auto& set : watches_) set.reset();
}

}  // namespace pipeyard::pipe::differential
