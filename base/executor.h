// SerialExecutor: runs posted functions one at a time on one thread, in the order in which they
// became due: a post when it was posted, a timer when its delay has passed.
//
// Each daemon has one for its decisions; whatever blocks (SQLite commits, fsync, waiting for
// processes) has its own and posts the outcome back. State confined to an executor is
// GUARDED_BY(executor.role) and needs no lock.
//
// Thread safety: Post, PostAfter, Cancel and Stop may be called from any thread, also from posted
// functions.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"

namespace pipeyard {

using Task = std::function<void()>;
using TimerId = uint64_t;

class Executor {
 public:
  virtual ~Executor() = default;
  // Runs `task` later, never inside this call. After Stop() it is dropped.
  virtual void Post(Task task) = 0;
  // Runs `task` once `delay` has passed (monotonic). Cancel() returns false when it has already run
  // or begun.
  virtual TimerId PostAfter(Nanos delay, Task task) = 0;
  virtual bool Cancel(TimerId id) = 0;

  // Held by whatever runs on this executor.
  ThreadRole role;
};

// Owns one thread. A task that throws ends the process: tasks are noexcept by contract.
class SerialExecutor final : public Executor {
 public:
  explicit SerialExecutor(std::string name);
  // Stop(), then joins.
  ~SerialExecutor() override;

  void Post(Task task) override EXCLUDES(mutex_);
  TimerId PostAfter(Nanos delay, Task task) override EXCLUDES(mutex_);
  bool Cancel(TimerId id) override EXCLUDES(mutex_);

  // Runs what was posted before this call (timers are dropped), then ends the thread and waits for
  // it. Idempotent; not to be called from a task of this executor.
  void Stop() EXCLUDES(mutex_);

 private:
  struct Entry {
    Task task;
    bool is_timer = false;
  };
  // By due time, then order of posting.
  using Entries = std::map<std::pair<MonotonicTime, uint64_t>, Entry>;

  void Run() EXCLUDES(mutex_);

  const std::string name_;
  Mutex mutex_;
  CondVar changed_;
  bool is_stopping_ GUARDED_BY(mutex_) = false;
  uint64_t next_sequence_ GUARDED_BY(mutex_) = 1;
  Entries entries_ GUARDED_BY(mutex_);
  std::thread thread_;
};

// Runs nothing by itself: a test calls RunUntilIdle() and moves the clock. Confined to one thread.
class FakeExecutor final : public Executor {
 public:
  // `clock` is borrowed and outlives this.
  explicit FakeExecutor(FakeClock& clock) : clock_(clock) {}

  void Post(Task task) override;
  TimerId PostAfter(Nanos delay, Task task) override;
  bool Cancel(TimerId id) override;

  // Runs every task that is due now, and what those post, until none is due. Returns how many ran.
  int RunUntilIdle();
  // Advances the clock by `by` in total, running each timer at its due time.
  void Advance(Nanos by);

 private:
  FakeClock& clock_;
  uint64_t next_sequence_ = 1;
  std::map<std::pair<MonotonicTime, uint64_t>, Task> tasks_;
};

}  // namespace pipeyard
