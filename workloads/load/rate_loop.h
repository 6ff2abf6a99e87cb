// The load loop of workloads whose tasks repeat one operation: each task runs it without pause
// through warm-up and window.
//
// `Tasks` is what the tasks drive:
//
//   using Task = ...;
//   Task Attach(int task_index)             in the task's thread or process
//   StepResult Step(Task&)                  one operation
//   void Finish(Task&)                      gives back what the task holds
//   void Interrupt()                        by the owner, at any time: a waiting task returns EINTR
//   Counts ReadCounts() const               what is not the tasks' own
//   using Tally = ...;                      SHARED, zero is empty: what a task's operations did
//   void ReadTally(const Task&, Tally&)     since the task's start; in its thread or process
//   Counts CountsOf(std::span<const Tally>) by task: what each counted in the window
//
// Private to workloads/load. Thread safety: RunRateLoops is called by one thread.
#pragma once

#include <atomic>
#include <cerrno>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/status.h"
#include "workloads/load/histogram.h"
#include "workloads/load/judgement.h"
#include "workloads/load/load_workers.h"
#include "workloads/load/phase.h"
#include "workloads/load/rate_numbers.h"
#include "workloads/load/supervisor.h"
#include "workloads/load/thread_usage.h"
#include "workloads/memory/monotonic.h"
#include "workloads/memory/region.h"

namespace pipeyard::load {

// Of one operation.
struct StepResult {
  int error = 0;           // an errno ends the attempt
  uint64_t units = 0;      // what it did
  int64_t elapsed_ns = 0;  // of the part that is timed
};

// SHARED. One task's account; `units` is read meanwhile, the rest after its end.
struct alignas(kFalseSharingRange) TaskAccount {
  std::atomic<uint64_t> units;
  uint64_t operations;  // between those at which the task saw the window open and close
  uint64_t latency_sum;
  uint64_t timed_units;
  int32_t error;
  ThreadUsage usage;
};
PIPEYARD_CHECK_SHARED(TaskAccount);

// Everything that the tasks use: it lives until the last of them has ended, even one that its owner
// gave up.
template <typename Tasks>
struct RateState {
  using Tally = typename Tasks::Tally;

  // Errors: kResourceExhausted.
  static Result<std::shared_ptr<RateState>> Make(const RateParameters& parameters,
                                                 std::shared_ptr<Tasks> tasks) {
    const auto count = static_cast<size_t>(parameters.tasks);
    memory::RegionLayout layout;
    const uint64_t gate = layout.Add(sizeof(PhaseGate), kFalseSharingRange);
    const uint64_t accounts = layout.Add(sizeof(TaskAccount) * count, kFalseSharingRange);
    const uint64_t latencies = layout.Add(sizeof(HistogramImage) * count, kFalseSharingRange);
    const uint64_t tallies = layout.Add(sizeof(Tally) * count, kFalseSharingRange);
    auto state = std::make_shared<RateState>();
    state->tasks = std::move(tasks);
    PIPEYARD_ASSIGN_OR_RETURN(state->region, memory::Region::Create(layout));
    state->gate = state->region->template At<PhaseGate>(gate);
    state->accounts = {state->region->template At<TaskAccount>(accounts), count};
    state->latencies = {state->region->template At<HistogramImage>(latencies), count};
    state->tallies = {state->region->template At<Tally>(tallies), count};
    return state;
  }

  std::shared_ptr<Tasks> tasks;
  std::unique_ptr<memory::Region> region;
  // In the region, by task index.
  PhaseGate* gate = nullptr;
  std::span<TaskAccount> accounts;
  std::span<HistogramImage> latencies;
  std::span<Tally> tallies;
};

// A task's operations and tally between the operations at which it saw the window open and close,
// as UsageWindow: so that all of them agree to the last one.
template <typename Tasks>
class TallyWindow {
 public:
  // Borrows all three; `tally` and `operations` get the difference.
  TallyWindow(Tasks& tasks, typename Tasks::Tally& tally, uint64_t& operations)
      : tasks_(tasks), tally_(tally), operations_(operations) {}

  // Called after each operation; `operations` since the task's start.
  void See(Phase phase, const typename Tasks::Task& task, uint64_t operations) {
    if (phase == last_) [[likely]]
      return;
    last_ = phase;
    if (is_open_) {
      is_open_ = false;
      tasks_.ReadTally(task, tally_);
      tally_ -= at_begin_;
      operations_ = operations - operations_at_begin_;
    } else if (phase == Phase::kMeasure) {
      is_open_ = true;
      tasks_.ReadTally(task, at_begin_);
      operations_at_begin_ = operations;
    }
  }

 private:
  Tasks& tasks_;
  typename Tasks::Tally& tally_;
  uint64_t& operations_;
  Phase last_ = Phase::kSetUp;
  bool is_open_ = false;
  uint64_t operations_at_begin_ = 0;
  typename Tasks::Tally at_begin_ = {};
};

template <typename Tasks>
void RunTask(RateState<Tasks>& state, int task_index) {
  TaskAccount& account = state.accounts[static_cast<size_t>(task_index)];
  PhaseGate& gate = *state.gate;
  typename Tasks::Task task = state.tasks->Attach(task_index);
  Histogram latency;
  UsageWindow usage(account.usage);
  TallyWindow<Tasks> tally(*state.tasks, state.tallies[static_cast<size_t>(task_index)],
                           account.operations);
  uint64_t units = 0;
  uint64_t operations = 0;
  gate.ArriveAndWait();
  for (Phase phase = gate.Current(); phase < Phase::kStop;) {
    const StepResult step = state.tasks->Step(task);
    phase = gate.Current();
    if (step.error != 0) {
      account.error = step.error;
      gate.Enter(Phase::kAbort);
      break;
    }
    account.units.store(units += step.units, std::memory_order_relaxed);
    ++operations;
    usage.See(phase);
    tally.See(phase, task, operations);
    if (phase != Phase::kMeasure) continue;
    latency.Record(step.elapsed_ns);
    account.latency_sum += static_cast<uint64_t>(step.elapsed_ns);
    account.timed_units += step.units;
  }
  usage.See(Phase::kStop);
  tally.See(Phase::kStop, task, operations);
  state.tasks->Finish(task);
  latency.Publish(state.latencies[static_cast<size_t>(task_index)]);
}

// So far, of all tasks.
template <typename Tasks>
uint64_t UnitsDone(const RateState<Tasks>& state) {
  uint64_t units = 0;
  for (const TaskAccount& account : state.accounts) {
    units += account.units.load(std::memory_order_relaxed);
  }
  return units;
}

// The first error of a task, of which an interruption is none. Defined in rate_loop.cc.
Judgement JudgeTaskErrors(std::span<const TaskAccount> accounts);

// Runs the load: start, warm-up, window, stop. `numbers` is complete where the judgement is ok.
template <typename Tasks>
Judgement RunRateLoops(const RateParameters& parameters, std::shared_ptr<Tasks> tasks,
                       RateNumbers& numbers, const LoopTimeouts& timeouts = {}, Watch watch = {}) {
  Result<std::shared_ptr<RateState<Tasks>>> made =
      RateState<Tasks>::Make(parameters, std::move(tasks));
  if (!made.ok()) return Failed("no_memory", made.status().message());
  const std::shared_ptr<RateState<Tasks>> state = std::move(*made);
  const std::unique_ptr<LoadWorkers> workers = LoadWorkers::Make(parameters.workers);
  Supervisor supervisor(*state->gate, *workers, std::move(watch));
  // Ends what runs, then says why: a worker's death explains everything else.
  const auto give_up = [&](Judgement judgement) {
    static_cast<void>(supervisor.ForceEnd(timeouts.abort, [&] { state->tasks->Interrupt(); }));
    Judgement checked = workers->Check();
    return checked.ok() ? std::move(judgement) : checked;
  };
  for (int i = 0; i < parameters.tasks; ++i) {
    Judgement started =
        JudgeStart(workers->kind(),
                   workers->Start("task " + std::to_string(i), [state, i] { RunTask(*state, i); }));
    if (!started.ok()) return give_up(std::move(started));
  }
  if (!supervisor.AwaitArrivals(parameters.tasks, timeouts.start)) {
    return give_up(Failed("start_timeout",
                          "the tasks did not start within " + FormatDuration(timeouts.start)));
  }

  state->gate->Enter(Phase::kWarmUp);
  bool is_aborted = supervisor.IsAbortedBefore(Nanos(memory::MonotonicNanos()) + parameters.warmup);
  const Counts counts_before = state->tasks->ReadCounts();
  const uint64_t units_before = UnitsDone(*state);
  const Nanos began(memory::MonotonicNanos());
  state->gate->Enter(Phase::kMeasure);
  is_aborted = is_aborted || supervisor.IsAbortedBefore(began + parameters.duration);
  numbers.window = Nanos(memory::MonotonicNanos()) - began;
  numbers.window_units = UnitsDone(*state) - units_before;
  state->gate->Enter(Phase::kStop);
  const Counts counts_after = state->tasks->ReadCounts();

  const bool has_ended =
      is_aborted ? supervisor.ForceEnd(timeouts.abort, [&] { state->tasks->Interrupt(); })
                 : supervisor.AwaitEnd(timeouts.drain);
  if (!has_ended) {
    return give_up(Failed(
        "hung_shutdown",
        "tasks did not end within " + FormatDuration(timeouts.drain) + " after they were told to"));
  }
  if (Judgement checked = workers->Check(); !checked.ok()) return checked;
  if (Judgement judged = JudgeTaskErrors(state->accounts); !judged.ok()) return judged;
  if (is_aborted) return Failed("internal", "the attempt was aborted, but by nobody");

  ThreadUsage usage = {};
  uint64_t operations = 0;
  for (size_t i = 0; i < state->accounts.size(); ++i) {
    usage += state->accounts[i].usage;
    operations += state->accounts[i].operations;
    numbers.latency.MergeImage(state->latencies[i]);
    numbers.latency_sum += state->accounts[i].latency_sum;
    numbers.timed_units += state->accounts[i].timed_units;
  }
  numbers.counts = {{"operations", "count", static_cast<int64_t>(operations)}};
  const auto add = [&](const Counts& more) {
    numbers.counts.insert(numbers.counts.end(), more.begin(), more.end());
  };
  add(state->tasks->CountsOf(state->tallies));
  add(Difference(counts_before, counts_after));
  add(ToCounts(usage));
  return {};
}

}  // namespace pipeyard::load
