#include "workloads/pipe/differential/actor_run.h"

#include <algorithm>
#include <cstring>

#include "workloads/memory/monotonic.h"
#include "workloads/pipe/differential/stream.h"

namespace pipeyard::pipe::differential {
namespace {

// How long both sides may take to become quiet, on a machine that does other things: far more than
// they ever need.
constexpr int64_t kPatienceNs = int64_t{30} * 1'000'000'000;
// Longest transfer of these programs; each actor holds as much on both sides.
constexpr uint32_t kMaxBytes = 256 << 10;

bool IsWrite(Action action) { return action == Action::kWrite || action == Action::kWriteQuietly; }

}  // namespace

ActorRun::ActorRun(KernelSystem& kernel, EngineSystem& system, Engine& engine, int num_actors,
                   bool has_polls)
    : kernel_(kernel),
      system_(system),
      engine_(engine),
      observer_(num_actors),
      has_polls_(has_polls),
      actors_(static_cast<size_t>(num_actors)) {
  for (int i = 0; i < num_actors; ++i) {
    Actor& actor = actors_[static_cast<size_t>(i)];
    actor.kernel.bytes.resize(kMaxBytes);
    actor.engine.bytes.resize(kMaxBytes);
    actor.kernel_thread = std::make_unique<ActorThread>();
    actor.engine_thread = std::make_unique<ActorThread>();
    actor.watch = std::make_unique<ThreadWatch>(actor.kernel_thread->thread_id());
    kernel_.RegisterActor(i, actor.kernel_thread->thread_id());
  }
}

ActorRun::~ActorRun() = default;

bool ActorRun::IsUsable() const {
  return std::all_of(actors_.begin(), actors_.end(),
                     [](const Actor& actor) { return actor.watch->IsUsable(); });
}

std::optional<Divergence> ActorRun::Run(std::span<const Operation> operations) {
  table_ = FileTable();
  written_.clear();
  what_.clear();
  std::optional<Divergence> found;
  for (size_t i = 0; i < operations.size() && !found; ++i) {
    if (!IsApplicable(operations[i])) continue;
    ++num_applied_;
    Begin(operations[i]);
    Settle();
    if (what_.empty()) CheckPipes();
    if (!what_.empty()) found = Divergence{i, FormatOperation(operations[i]) + ": " + what_};
  }
  EndAll();
  if (!found && !what_.empty()) found = Divergence{operations.size(), "at the end: " + what_};
  kernel_.Reset();
  system_.Reset();
  return found;
}

int ActorRun::CountInside(Action action) const {
  return static_cast<int>(std::count_if(actors_.begin(), actors_.end(), [&](const Actor& actor) {
    return actor.is_inside && (actor.operation.action == action ||
                               (IsWrite(action) && IsWrite(actor.operation.action)));
  }));
}

bool ActorRun::IsInUse(int file) const {
  return std::any_of(actors_.begin(), actors_.end(), [&](const Actor& actor) {
    if (!actor.is_inside) return false;
    if (actor.operation.action == Action::kWaitPoll) {
      return (actor.operation.value >> file & 1) != 0;
    }
    return actor.operation.file == file;
  });
}

bool ActorRun::MayWait(const Operation& operation) const {
  if (operation.action == Action::kWaitPoll) return true;
  const FileTable::File& file = table_.file(operation.file);
  if (file.flags.is_nonblocking || operation.value == 0) return false;
  if (operation.action == Action::kRead) {
    return table_.CountEnds(file.pipe, PipeEnd::kWrite) != 0 &&
           system_.PipeOf(operation.file).Occupancy() == 0;
  }
  return IsWrite(operation.action);
}

bool ActorRun::IsApplicable(const Operation& operation) const {
  if (operation.actor >= actors_.size()) return false;
  const Actor& actor = actors_[operation.actor];
  if (operation.action == Action::kInterrupt) return actor.is_inside;
  if (actor.is_inside || !table_.Allows(operation)) return false;
  const int readers_inside = CountInside(Action::kRead);
  const int writers_inside = CountInside(Action::kWrite);
  switch (operation.action) {
    case Action::kRead:
    case Action::kWrite:
    case Action::kWriteQuietly:
      if (operation.value > kMaxBytes) return false;
      if (!MayWait(operation)) return true;
      if (CountInside(Action::kWaitPoll) != 0) return false;
      // Into an empty pipe goes all that it can hold.
      return operation.action == Action::kRead || readers_inside < 2 ||
             operation.value <= system_.PipeOf(operation.file).capacity_bytes();
    case Action::kWaitPoll:
      return has_polls_ && readers_inside + writers_inside == 0;
    case Action::kPoll:
      return has_polls_;
    case Action::kClose:
    case Action::kSetNonblocking:
    case Action::kSetPacket:
      return !IsInUse(operation.file);
    case Action::kWatch:
    case Action::kTakeReady:
    case Action::kInterrupt:
      return false;
    case Action::kCreate:
    case Action::kOpenReader:
    case Action::kOpenWriter:
    case Action::kResize:
    case Action::kCapacity:
    case Action::kQueuedBytes:
      return true;
  }
  return false;
}

void ActorRun::Begin(const Operation& operation) {
  Actor& actor = actors_[operation.actor];
  if (operation.action == Action::kInterrupt) {
    kernel_.Interrupt(operation.actor);
    system_.Interrupt(operation.actor);
    return;
  }
  actor.operation = operation;
  actor.is_inside = true;
  actor.flags = table_.file(operation.file).flags;
  if (operation.action == Action::kPoll) actor.operation.value &= table_.OpenFiles();
  if (IsWrite(operation.action)) {
    // What a short write leaves out is a gap in the stream, on both sides.
    uint64_t& written = written_[static_cast<size_t>(table_.file(operation.file).pipe)];
    actor.data = StreamAt(written);
    written += operation.value;
  }
  actor.kernel_thread->Start([this, &actor] { Call(kernel_, actor, actor.kernel); });
  actor.engine_thread->Start([this, &actor] { Call(system_, actor, actor.engine); });
}

void ActorRun::Call(PipeSystem& system, const Actor& actor, Side& side) const {
  const Operation& operation = actor.operation;
  const int self = operation.actor;
  const int file = operation.file;
  FileFlags flags = actor.flags;
  switch (operation.action) {
    case Action::kCreate:
      side.outcome = system.Create(self, file, file + 1, {.is_nonblocking = operation.value != 0});
      break;
    case Action::kOpenReader:
    case Action::kOpenWriter:
      side.outcome = system.Open(
          self, file, operation.action == Action::kOpenReader ? PipeEnd::kRead : PipeEnd::kWrite,
          static_cast<int>(operation.value));
      break;
    case Action::kClose:
      side.outcome = system.Close(self, file);
      break;
    case Action::kWrite:
    case Action::kWriteQuietly:
      side.outcome = system.Write(self, file, actor.data, operation.value,
                                  operation.action == Action::kWriteQuietly);
      break;
    case Action::kRead:
      side.outcome = system.Read(self, file, side.bytes.data(), operation.value);
      break;
    case Action::kSetNonblocking:
      flags.is_nonblocking = operation.value != 0;
      side.outcome = system.SetFlags(self, file, flags);
      break;
    case Action::kSetPacket:
      flags.is_packet = operation.value != 0;
      side.outcome = system.SetFlags(self, file, flags);
      break;
    case Action::kResize:
      side.outcome = system.Resize(self, file, operation.value);
      break;
    case Action::kCapacity:
      side.outcome = system.Capacity(self, file);
      break;
    case Action::kQueuedBytes:
      side.outcome = system.QueuedBytes(self, file);
      break;
    case Action::kPoll:
    case Action::kWaitPoll:
      side.outcome =
          system.Poll(self, operation.value, operation.action == Action::kWaitPoll, side.masks);
      break;
    case Action::kWatch:
    case Action::kTakeReady:
    case Action::kInterrupt:
      break;
  }
}

bool ActorRun::IsEngineQuiet() const {
  const uint64_t moves = EngineMoves();
  for (size_t i = 0; i < actors_.size(); ++i) {
    if (actors_[i].engine_thread->IsIdle()) continue;
    const uint32_t state = engine_.worker(static_cast<int>(i)).sleeper().state.load();
    if (state != memory::Sleeper::kSleeping) return false;
  }
  // Whoever was woken after the look takes a pipe's mutex before it sleeps again.
  return EngineMoves() == moves;
}

bool ActorRun::IsKernelQuiet() const {
  std::vector<uint64_t> turns(actors_.size());
  for (const bool is_first : {true, false}) {
    for (size_t i = 0; i < actors_.size(); ++i) {
      if (actors_[i].kernel_thread->IsIdle()) continue;
      const std::optional<uint64_t> now = actors_[i].watch->TurnsWhenAsleep();
      if (!now || (!is_first && *now != turns[i])) return false;
      turns[i] = *now;
    }
  }
  return true;
}

void ActorRun::Settle() {
  const int64_t deadline = memory::MonotonicNanos() + kPatienceNs;
  while (!IsEngineQuiet() || !IsKernelQuiet()) {
    std::this_thread::yield();
    if (memory::MonotonicNanos() > deadline) {
      return Differ("a side did not come to rest");
    }
  }
  for (size_t i = 0; i < actors_.size(); ++i) {
    Actor& actor = actors_[i];
    if (!actor.is_inside) continue;
    const bool has_kernel_returned = actor.kernel_thread->IsIdle();
    const bool has_engine_returned = actor.engine_thread->IsIdle();
    const std::string name =
        "a" + std::to_string(i) + " (" + FormatOperation(actor.operation) + ")";
    if (has_kernel_returned != has_engine_returned) {
      const Side& side = has_kernel_returned ? actor.kernel : actor.engine;
      Differ(name + ": the " + (has_kernel_returned ? "kernel's" : "engine's") + " returned " +
             DescribeOutcome(side.outcome) + ", the " +
             (has_kernel_returned ? "engine's" : "kernel's") + " waits");
    } else if (has_kernel_returned) {
      CompareReturned(actor);
    } else {
      ++num_waits_;
    }
  }
}

void ActorRun::CompareReturned(Actor& actor) {
  actor.is_inside = false;
  const Operation& operation = actor.operation;
  const std::string name =
      "a" + std::to_string(operation.actor) + " (" + FormatOperation(operation) + ")";
  if (!(actor.kernel.outcome == actor.engine.outcome)) {
    return Differ(name + ": the kernel says " + DescribeOutcome(actor.kernel.outcome) +
                  ", the engine " + DescribeOutcome(actor.engine.outcome));
  }
  const int64_t value = actor.kernel.outcome.value;
  if (operation.action == Action::kRead && value > 0 &&
      std::memcmp(actor.kernel.bytes.data(), actor.engine.bytes.data(),
                  static_cast<size_t>(value)) != 0) {
    return Differ(name + ": other bytes");
  }
  const bool is_poll = operation.action == Action::kPoll || operation.action == Action::kWaitPoll;
  if (is_poll && value >= 0 && actor.kernel.masks != actor.engine.masks) {
    return Differ(name + ": another readiness");
  }
  Note(operation, value);
}

void ActorRun::Note(const Operation& operation, int64_t value) {
  if (value < 0) return;
  FileFlags flags = table_.file(operation.file).flags;
  switch (operation.action) {
    case Action::kCreate:
      table_.Create(operation.file, {.is_nonblocking = operation.value != 0});
      written_.push_back(0);
      break;
    case Action::kOpenReader:
      table_.Open(operation.file, PipeEnd::kRead, static_cast<int>(operation.value));
      break;
    case Action::kOpenWriter:
      table_.Open(operation.file, PipeEnd::kWrite, static_cast<int>(operation.value));
      break;
    case Action::kClose:
      table_.Close(operation.file);
      break;
    case Action::kSetNonblocking:
      flags.is_nonblocking = operation.value != 0;
      table_.SetFlags(operation.file, flags);
      break;
    case Action::kSetPacket:
      flags.is_packet = operation.value != 0;
      table_.SetFlags(operation.file, flags);
      break;
    case Action::kWrite:
    case Action::kWriteQuietly:
    case Action::kRead:
    case Action::kResize:
    case Action::kCapacity:
    case Action::kQueuedBytes:
    case Action::kPoll:
    case Action::kWaitPoll:
    case Action::kWatch:
    case Action::kTakeReady:
    case Action::kInterrupt:
      break;
  }
}

void ActorRun::CheckPipes() {
  for (int file = 0; file < kMaxFiles; ++file) {
    if (!table_.IsOpen(file)) continue;
    const Outcome kernel = kernel_.QueuedBytes(0, file);
    const Outcome engine = system_.QueuedBytes(observer_, file);
    if (!(kernel == engine)) {
      Differ("then queued bytes: the kernel says " + DescribeOutcome(kernel) + ", the engine " +
             DescribeOutcome(engine));
    }
  }
  const FileSet open = table_.OpenFiles();
  if (!has_polls_ || open == 0) return;
  PollMasks kernel{};
  PollMasks engine{};
  kernel_.Poll(0, open, false, kernel);
  system_.Poll(observer_, open, false, engine);
  if (kernel != engine) Differ("then the readiness differs");
}

void ActorRun::EndAll() {
  // A call may take more than one signal to end: where one side returned by itself, the other did
  // not, or the wait has not begun.
  const int64_t deadline = memory::MonotonicNanos() + kPatienceNs;
  const auto is_over = [](const Actor& actor) {
    return actor.kernel_thread->IsIdle() && actor.engine_thread->IsIdle();
  };
  if (what_.empty()) {
    for (size_t i = 0; i < actors_.size(); ++i) {
      if (!actors_[i].is_inside) continue;
      kernel_.Interrupt(static_cast<int>(i));
      system_.Interrupt(static_cast<int>(i));
      Settle();
    }
  }
  while (!std::all_of(actors_.begin(), actors_.end(), is_over)) {
    for (size_t i = 0; i < actors_.size(); ++i) {
      if (!actors_[i].kernel_thread->IsIdle()) kernel_.Interrupt(static_cast<int>(i));
      if (!actors_[i].engine_thread->IsIdle()) system_.Interrupt(static_cast<int>(i));
    }
    std::this_thread::yield();
    if (memory::MonotonicNanos() > deadline) {
      // Threads that cannot be ended leave nothing to go on with.
      std::fprintf(stderr, "differential: an actor cannot be ended: %s\n", what_.c_str());
      std::abort();
    }
  }
  for (size_t i = 0; i < actors_.size(); ++i) {
    actors_[i].is_inside = false;
    memory::TakeInterruption(engine_.worker(static_cast<int>(i)).sleeper());
  }
}

}  // namespace pipeyard::pipe::differential
