// The loop of the workload `fault`, the same for every target, for threads and for processes
// (kernel-mechanisms.md E4): pass after pass, all tasks at once touch their share of a region that
// nobody has touched.
//
//   make absent ─ all wait ─► touch: timed ─ all wait ─► the last adds up the pass ─► make absent
//   ...
//
// `Memory` is what the tasks touch:
//
//   using Task = ...;
//   Task Attach(int task_index)            in the task's thread or process
//   int Prepare(Task&)                     the share is as if nobody had touched it; an errno
//   int Touch(Task&, TaskProgress)         touches every page of it; an errno
//   void CountPages(Task&)                 after that, untimed: what ReadCounts() tells of it
//   BufferPlacement Prove(Task&)           after the last pass: where its pages lie
//   void Finish(Task&)                     gives back what the task holds
//   Counts ReadCounts() const              while all tasks wait
//
// Private to workloads/load. Thread safety: RunFaultLoop is called by one thread.
#pragma once

#include <time.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "workloads/load/buffer_placement.h"
#include "workloads/load/fault_numbers.h"
#include "workloads/load/judgement.h"
#include "workloads/load/load_workers.h"
#include "workloads/load/pass_barrier.h"
#include "workloads/load/phase.h"
#include "workloads/load/supervisor.h"
#include "workloads/load/thread_usage.h"
#include "workloads/memory/monotonic.h"
#include "workloads/memory/region.h"

namespace pipeyard::load {

// SHARED. One task's account: `progress` grows while it touches; the rest is written after that,
// before it waits.
struct alignas(kFalseSharingRange) FaultAccount {
  std::atomic<uint64_t> progress;
  // Of the present pass.
  int64_t began_ns;
  int64_t ended_ns;
  int64_t cpu_ns;
  // Of all kept passes.
  ThreadUsage usage;
  int32_t error;
  BufferPlacement placement;
};
PIPEYARD_CHECK_SHARED(FaultAccount);

// SHARED. Sums over the kept passes, by the task that comes last; and until when passes begin.
struct alignas(kFalseSharingRange) FaultTotals {
  std::atomic<int64_t> deadline_ns;
  uint64_t passes;
  uint64_t wall_ns;
  uint64_t busy_ns;
  uint64_t cpu_ns;
};
PIPEYARD_CHECK_SHARED(FaultTotals);

// For the owner to see that a task gets on; not with every page.
class TaskProgress {
 public:
  explicit TaskProgress(std::atomic<uint64_t>& progress) : progress_(progress) {}
  // `page`: of the pass, from 0.
  void See(int64_t page) {
    if (page % kPagesBetween != 0) return;
    progress_.store(progress_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

 private:
  static constexpr int64_t kPagesBetween = 64;
  std::atomic<uint64_t>& progress_;
};

inline int64_t ThreadCpuNanos() {
  timespec time = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// Everything that the tasks use: it lives until the last of them has ended, even one that its owner
// gave up.
template <typename Memory>
struct FaultState {
  // Errors: kResourceExhausted.
  static Result<std::shared_ptr<FaultState>> Make(const FaultParameters& parameters,
                                                  std::shared_ptr<Memory> memory) {
    const auto count = static_cast<size_t>(parameters.tasks);
    memory::RegionLayout layout;
    const uint64_t gate = layout.Add(sizeof(PhaseGate), kFalseSharingRange);
    const uint64_t barrier = layout.Add(sizeof(PassBarrier), kFalseSharingRange);
    const uint64_t totals = layout.Add(sizeof(FaultTotals), kFalseSharingRange);
    const uint64_t accounts = layout.Add(sizeof(FaultAccount) * count, kFalseSharingRange);
    auto state = std::make_shared<FaultState>(parameters, std::move(memory));
    PIPEYARD_ASSIGN_OR_RETURN(state->region, memory::Region::Create(layout));
    state->gate = state->region->template At<PhaseGate>(gate);
    state->barrier = state->region->template At<PassBarrier>(barrier);
    state->totals = state->region->template At<FaultTotals>(totals);
    state->accounts = {state->region->template At<FaultAccount>(accounts), count};
    return state;
  }

  FaultState(const FaultParameters& given, std::shared_ptr<Memory> driven)
      : parameters(given), memory(std::move(driven)) {}

  const FaultParameters parameters;
  const std::shared_ptr<Memory> memory;
  std::unique_ptr<memory::Region> region;
  // In the region.
  PhaseGate* gate = nullptr;
  PassBarrier* barrier = nullptr;
  FaultTotals* totals = nullptr;
  std::span<FaultAccount> accounts;  // by task index
};

// By the task that comes last, while all others wait: adds the pass up, and decides whether another
// begins. False: the owner decides.
inline bool EndPass(PhaseGate& gate, std::span<const FaultAccount> accounts, FaultTotals& totals) {
  if (gate.Current() == Phase::kMeasure) {
    int64_t began = accounts.front().began_ns;
    int64_t ended = accounts.front().ended_ns;
    for (const FaultAccount& account : accounts) {
      began = std::min(began, account.began_ns);
      ended = std::max(ended, account.ended_ns);
      totals.busy_ns += static_cast<uint64_t>(account.ended_ns - account.began_ns);
      totals.cpu_ns += static_cast<uint64_t>(account.cpu_ns);
    }
    totals.wall_ns += static_cast<uint64_t>(ended - began);
    ++totals.passes;
  }
  if (memory::MonotonicNanos() < totals.deadline_ns.load(std::memory_order_relaxed)) return true;
  gate.Arrive();
  return false;
}

// One pass of one task. Returns false where the passes are over, or something went wrong.
template <typename Memory>
bool RunPass(FaultState<Memory>& state, typename Memory::Task& task, FaultAccount& account) {
  PhaseGate& gate = *state.gate;
  const int tasks = state.parameters.tasks;
  const auto fail = [&](int error) {
    account.error = error;
    gate.Enter(Phase::kAbort);
    return false;
  };
  if (const int error = state.memory->Prepare(task); error != 0) return fail(error);
  if (!state.barrier->Await(tasks, gate, [] { return true; })) return false;
  const bool is_kept = gate.Current() == Phase::kMeasure;
  const ThreadUsage usage_before = ReadThreadUsage();
  const int64_t cpu_before = ThreadCpuNanos();
  account.began_ns = memory::MonotonicNanos();
  const int error = state.memory->Touch(task, TaskProgress(account.progress));
  account.ended_ns = memory::MonotonicNanos();
  account.cpu_ns = ThreadCpuNanos() - cpu_before;
  ThreadUsage usage = ReadThreadUsage();
  if (error != 0) return fail(error);
  state.memory->CountPages(task);
  usage -= usage_before;
  if (is_kept) account.usage += usage;
  const bool goes_on = state.barrier->Await(
      tasks, gate, [&] { return EndPass(gate, state.accounts, *state.totals); });
  return goes_on && gate.Current() < Phase::kStop;
}

template <typename Memory>
void RunFaultTask(FaultState<Memory>& state, int task_index) {
  FaultAccount& account = state.accounts[static_cast<size_t>(task_index)];
  typename Memory::Task task = state.memory->Attach(task_index);
  state.gate->ArriveAndWait();
  if (state.gate->Current() < Phase::kStop) {
    while (RunPass(state, task, account)) {
    }
  }
  if (state.gate->Current() == Phase::kStop) account.placement = state.memory->Prove(task);
  state.memory->Finish(task);
}

// The first error of a task. Defined in fault.cc.
Judgement JudgeFaultErrors(std::span<const FaultAccount> accounts);

// Waits until the tasks have left it to the owner to go on for the `times`-th time. False where
// none of them got on for `patience`, one failed, or one died.
template <typename Memory>
bool AwaitPasses(const FaultState<Memory>& state, int times, Nanos patience,
                 Supervisor& supervisor) {
  uint64_t last = UINT64_MAX;
  while (true) {
    uint64_t progress = 0;
    for (const FaultAccount& account : state.accounts) {
      progress += account.progress.load(std::memory_order_relaxed);
    }
    if (progress == last) return false;
    last = progress;
    if (supervisor.AwaitArrivals(state.parameters.tasks + times, patience)) return true;
    if (state.gate->Current() == Phase::kAbort) return false;
  }
}

// Runs the load: tasks start, passes of the warm-up, kept passes, stop. `numbers` and `placements`
// (by task) are complete where the judgement is ok.
template <typename Memory>
Judgement RunFaultLoop(const FaultParameters& parameters, std::shared_ptr<Memory> memory,
                       FaultNumbers& numbers, std::vector<BufferPlacement>& placements,
                       const LoopTimeouts& timeouts = {}, Watch watch = {}) {
  Result<std::shared_ptr<FaultState<Memory>>> made =
      FaultState<Memory>::Make(parameters, std::move(memory));
  if (!made.ok()) return Failed("no_memory", made.status().message());
  const std::shared_ptr<FaultState<Memory>> state = std::move(*made);
  const std::unique_ptr<LoadWorkers> workers = LoadWorkers::Make(parameters.workers);
  Supervisor supervisor(*state->gate, *workers, std::move(watch));
  // Ends what runs, then says why: a worker's death explains everything else, an error of a task
  // the rest.
  const auto give_up = [&](Judgement judgement) {
    static_cast<void>(supervisor.ForceEnd(timeouts.abort, [&] { state->barrier->WakeAll(); }));
    if (Judgement checked = workers->Check(); !checked.ok()) return checked;
    Judgement cause = JudgeFaultErrors(state->accounts);
    return cause.ok() ? std::move(judgement) : cause;
  };
  const auto hung = [&] {
    return give_up(Failed("hung", "no page was touched for " + FormatDuration(timeouts.drain)));
  };
  for (int i = 0; i < parameters.tasks; ++i) {
    Judgement started = JudgeStart(
        workers->kind(),
        workers->Start("task " + std::to_string(i), [state, i] { RunFaultTask(*state, i); }));
    if (!started.ok()) return give_up(std::move(started));
  }
  if (!supervisor.AwaitArrivals(parameters.tasks, timeouts.start)) {
    return give_up(Failed("start_timeout",
                          "the tasks did not start within " + FormatDuration(timeouts.start)));
  }

  const auto set_deadline = [&](Nanos from_now) {
    state->totals->deadline_ns.store(memory::DeadlineAfter(from_now), std::memory_order_relaxed);
  };
  int times = 0;
  if (parameters.warmup > Nanos(0)) {
    set_deadline(parameters.warmup);
    state->gate->Enter(Phase::kWarmUp);
    if (!AwaitPasses(*state, ++times, timeouts.drain, supervisor)) return hung();
  }
  const Counts before = state->memory->ReadCounts();
  set_deadline(parameters.duration);
  state->gate->Enter(Phase::kMeasure);
  if (times != 0) state->barrier->Release();
  if (!AwaitPasses(*state, ++times, timeouts.drain, supervisor)) return hung();
  numbers.counts = Difference(before, state->memory->ReadCounts());
  state->gate->Enter(Phase::kStop);
  state->barrier->Release();
  if (!supervisor.AwaitEnd(timeouts.drain)) {
    return give_up(Failed(
        "hung_shutdown",
        "tasks did not end within " + FormatDuration(timeouts.drain) + " after they were told to"));
  }
  if (Judgement checked = workers->Check(); !checked.ok()) return checked;
  if (Judgement judged = JudgeFaultErrors(state->accounts); !judged.ok()) return judged;

  numbers.passes = state->totals->passes;
  numbers.pages = numbers.passes * parameters.pages_per_pass();
  numbers.wall_ns = state->totals->wall_ns;
  numbers.busy_ns = state->totals->busy_ns;
  numbers.cpu_ns = state->totals->cpu_ns;
  for (const FaultAccount& account : state->accounts) {
    numbers.usage += account.usage;
    placements.push_back(account.placement);
  }
  return {};
}

}  // namespace pipeyard::load
