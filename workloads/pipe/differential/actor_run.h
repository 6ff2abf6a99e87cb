// ActorRun: as SequentialRun, but several actors, a thread each on both sides, whose calls may
// wait.
//
// One operation is begun at a time; then both sides are left alone until every actor has either
// returned or waits. Who returned, with what, and who waits, must agree. Operations that would let
// two actors race, so that even the kernel has no one answer, are passed over:
//   - a write that may wait while two readers wait (the second reader races with the writer that
//     the first one woke), and anything that may wait while a poll does;
//   - changes of a file that a waiting call uses.
// No clock decides: the engine's actors wait when their sleepers say so and nothing moved between
// two looks; the kernel's when /proc says that they sleep in the call and have not run since.
// Thread safety: thread-compatible. Ownership: borrows both sides, owns the threads.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "workloads/pipe/differential/actor_thread.h"
#include "workloads/pipe/differential/engine_system.h"
#include "workloads/pipe/differential/file_table.h"
#include "workloads/pipe/differential/kernel_system.h"
#include "workloads/pipe/differential/sequential_run.h"

namespace pipeyard::pipe::differential {

class ActorRun {
 public:
  // The engine has one worker more than there are actors, for looking at it.
  ActorRun(KernelSystem& kernel, EngineSystem& system, Engine& engine, int num_actors,
           bool has_polls);
  ~ActorRun();

  // Whether /proc can be read as needed.
  bool IsUsable() const;
  std::optional<Divergence> Run(std::span<const Operation> operations);
  uint64_t num_applied() const { return num_applied_; }
  uint64_t num_waits() const { return num_waits_; }

 private:
  // What an actor's call on one side gave.
  struct Side {
    Outcome outcome;
    std::vector<char> bytes;
    PollMasks masks{};
  };
  struct Actor {
    Side kernel;
    Side engine;
    std::unique_ptr<ActorThread> kernel_thread;
    std::unique_ptr<ActorThread> engine_thread;
    std::unique_ptr<ThreadWatch> watch;
    bool is_inside = false;  // of `operation`, since it was begun
    Operation operation;
    FileFlags flags;             // of the operation's file when it was begun
    const char* data = nullptr;  // of a write
  };

  bool IsApplicable(const Operation& operation) const;
  bool IsInUse(int file) const;
  // Whether the actor may have to wait inside the call.
  bool MayWait(const Operation& operation) const;
  int CountInside(Action action) const;
  void Begin(const Operation& operation);
  void Call(PipeSystem& system, const Actor& actor, Side& side) const;
  // Waits until all is quiet; then takes note of those that returned.
  void Settle();
  bool IsEngineQuiet() const;
  bool IsKernelQuiet() const;
  uint64_t EngineMoves() const { return engine_.Count(Counter::kMutexAcquisitions); }
  void CompareReturned(Actor& actor);
  void Note(const Operation& operation, int64_t value);
  void CheckPipes();
  void EndAll();
  void Differ(std::string text) {
    if (what_.empty()) what_ = std::move(text);
  }

  KernelSystem& kernel_;
  EngineSystem& system_;
  Engine& engine_;
  const int observer_;  // the engine's worker that looks
  const bool has_polls_;
  std::vector<Actor> actors_;
  FileTable table_;
  std::vector<uint64_t> written_;  // by pipe
  std::string what_;
  uint64_t num_applied_ = 0;
  uint64_t num_waits_ = 0;
};

}  // namespace pipeyard::pipe::differential
