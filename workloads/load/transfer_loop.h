// The loops of the transfer workload, the same for every target, for threads and for processes
// (kernel-mechanisms.md E3).
//
// Pipes is the seam, a class with
//   Worker Attach(int worker_index)
//       called by the worker; writers first: 0 .. writers + readers - 1
//   int64_t Write(Worker&, int pipe, const std::byte*, size_t)
//       bytes, or a negative errno; blocks
//   int64_t Read(Worker&, int pipe, std::byte*, size_t)
//       bytes, 0 for end of file, or a negative errno; blocks
//   void CloseWriteEnd(Worker&, int pipe), CloseReadEnd(Worker&, int pipe)
//       by the last writer, last reader
//   void KeepInChild(const PipeEnds&)
//       in a worker process, before Attach
//   void ReleaseInParent()
//       in the owner, once all worker processes run
//   void Interrupt()
//       lets no call sleep for ever; calls may return -EINTR
//   Counts ReadCounts() const
//       what the mechanism did so far, over all workers
//
// Private to workloads/load. Thread safety: RunTransferLoops is called by one thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "workloads/load/buffer_placement.h"
#include "workloads/load/judgement.h"
#include "workloads/load/load_workers.h"
#include "workloads/load/message_buffer.h"
#include "workloads/load/phase.h"
#include "workloads/load/pipe_ends.h"
#include "workloads/load/supervisor.h"
#include "workloads/load/thread_usage.h"
#include "workloads/load/transfer_numbers.h"
#include "workloads/memory/monotonic.h"
#include "workloads/memory/region.h"

namespace pipeyard::load {

// SHARED. One worker's account. The worker alone writes it; the owner reads the atomics meanwhile
// and the rest after the worker's end.
struct alignas(kFalseSharingRange) WorkerAccount {
  std::atomic<uint64_t> bytes;
  std::atomic<uint64_t> reads;
  std::atomic<uint64_t> short_calls;
  // ns, over what the worker's histogram counts.
  uint64_t latency_sum;
  // The errno that ended the worker; 0 for a regular end.
  int32_t error;
  ThreadUsage usage;
  BufferPlacement placement;

  // Memory order: relaxed; the worker is the only one to add, and readers want no more than a
  // recent value.
  static void Add(std::atomic<uint64_t>& counter, uint64_t amount) {
    counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
};
PIPEYARD_CHECK_SHARED(WorkerAccount);

// SHARED. What all workers of a transfer share; accounts and histograms lie behind it.
struct TransferShared {
  PhaseGate gate;
  alignas(kFalseSharingRange) std::atomic<int32_t> live_writers;
  alignas(kFalseSharingRange) std::atomic<int32_t> live_readers;
};
PIPEYARD_CHECK_SHARED(TransferShared);

// Everything that the workers use: it lives until the last of them has ended, even one that its
// owner gave up.
template <typename Pipes>
struct TransferState {
  // Errors: kResourceExhausted.
  static Result<std::shared_ptr<TransferState>> Make(const TransferParameters& parameters,
                                                     std::shared_ptr<Pipes> pipes) {
    const auto writers = static_cast<size_t>(parameters.writers);
    const size_t workers = writers + static_cast<size_t>(parameters.readers);
    memory::RegionLayout layout;
    const uint64_t shared = layout.Add(sizeof(TransferShared), kFalseSharingRange);
    const uint64_t accounts = layout.Add(sizeof(WorkerAccount) * workers, kFalseSharingRange);
    const uint64_t latencies = layout.Add(sizeof(HistogramImage) * writers, kFalseSharingRange);
    auto state = std::make_shared<TransferState>(parameters, std::move(pipes));
    PIPEYARD_ASSIGN_OR_RETURN(state->region, memory::Region::Create(layout));
    state->shared = state->region->template At<TransferShared>(shared);
    state->accounts = {state->region->template At<WorkerAccount>(accounts), workers};
    state->latencies = {state->region->template At<HistogramImage>(latencies), writers};
    state->shared->live_writers.store(parameters.writers, std::memory_order_relaxed);
    state->shared->live_readers.store(parameters.readers, std::memory_order_relaxed);
    for (size_t i = 0; i < workers; ++i) {
      PIPEYARD_ASSIGN_OR_RETURN(MessageBuffer buffer,
                                MessageBuffer::Map(static_cast<size_t>(parameters.message_bytes)));
      state->buffers.push_back(std::move(buffer));
    }
    return state;
  }

  TransferState(const TransferParameters& given, std::shared_ptr<Pipes> driven)
      : parameters(given), pipes(std::move(driven)) {}

  PhaseGate& gate() const { return shared->gate; }
  size_t num_writers() const { return static_cast<size_t>(parameters.writers); }

  const TransferParameters parameters;
  const std::shared_ptr<Pipes> pipes;
  std::unique_ptr<memory::Region> region;
  // In the region. Workers in the order of their indexes: writers first.
  TransferShared* shared = nullptr;
  std::span<WorkerAccount> accounts;
  std::span<HistogramImage> latencies;
  // Private pages: a worker process touches its own copies.
  std::vector<MessageBuffer> buffers;
};

// Writes the whole message, however many calls that takes. Returns 0 or an errno.
template <typename Pipes>
int WriteMessage(TransferState<Pipes>& state, typename Pipes::Worker& worker,
                 WorkerAccount& account, const MessageBuffer& buffer) {
  size_t done = 0;
  while (done < buffer.size()) {
    const int64_t written =
        state.pipes->Write(worker, 0, buffer.data() + done, buffer.size() - done);
    if (written < 0) {
      if (written == -EINTR && state.gate().Current() != Phase::kAbort) continue;
      return static_cast<int>(-written);
    }
    done += static_cast<size_t>(written);
    WorkerAccount::Add(account.bytes, static_cast<uint64_t>(written));
    if (done < buffer.size()) WorkerAccount::Add(account.short_calls, 1);
  }
  return 0;
}

template <typename Pipes>
void RunWriter(TransferState<Pipes>& state, int worker_index) {
  WorkerAccount& account = state.accounts[static_cast<size_t>(worker_index)];
  MessageBuffer& buffer = state.buffers[static_cast<size_t>(worker_index)];
  typename Pipes::Worker worker = state.pipes->Attach(worker_index);
  Histogram latency;
  uint64_t latency_sum = 0;
  UsageWindow usage(account.usage);
  buffer.Touch(std::byte{0x5a});
  state.gate().ArriveAndWait();
  Phase phase = state.gate().Current();
  while (phase < Phase::kStop) {
    const int64_t began = memory::MonotonicNanos();
    account.error = WriteMessage(state, worker, account, buffer);
    const int64_t elapsed = memory::MonotonicNanos() - began;
    if (account.error != 0) break;
    phase = state.gate().Current();
    usage.See(phase);
    if (phase == Phase::kMeasure) {
      latency.Record(elapsed);
      latency_sum += static_cast<uint64_t>(elapsed);
    }
  }
  if (account.error != 0) state.gate().Enter(Phase::kAbort);
  usage.See(Phase::kStop);
  if (state.shared->live_writers.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    state.pipes->CloseWriteEnd(worker, 0);
  }
  account.latency_sum = latency_sum;
  latency.Publish(state.latencies[static_cast<size_t>(worker_index)]);
  account.placement = AskPlacement(buffer);
}

template <typename Pipes>
void RunReader(TransferState<Pipes>& state, int worker_index) {
  WorkerAccount& account = state.accounts[static_cast<size_t>(worker_index)];
  MessageBuffer& buffer = state.buffers[static_cast<size_t>(worker_index)];
  typename Pipes::Worker worker = state.pipes->Attach(worker_index);
  UsageWindow usage(account.usage);
  buffer.Touch(std::byte{0});
  state.gate().Arrive();
  while (true) {
    const int64_t read = state.pipes->Read(worker, 0, buffer.data(), buffer.size());
    if (read == 0) break;
    const Phase phase = state.gate().Current();
    if (read < 0) {
      if (read == -EINTR && phase != Phase::kAbort) continue;
      account.error = static_cast<int32_t>(-read);
      break;
    }
    WorkerAccount::Add(account.bytes, static_cast<uint64_t>(read));
    WorkerAccount::Add(account.reads, 1);
    if (static_cast<size_t>(read) < buffer.size()) WorkerAccount::Add(account.short_calls, 1);
    usage.See(phase);
  }
  if (account.error != 0) state.gate().Enter(Phase::kAbort);
  usage.See(Phase::kStop);
  if (state.shared->live_readers.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    state.pipes->CloseReadEnd(worker, 0);
  }
  account.placement = AskPlacement(buffer);
}

// What worker `index` runs, in its thread or process.
template <typename Pipes>
void RunTransferWorker(TransferState<Pipes>& state, WorkerKind kind, int index) {
  const bool is_writer = index < state.parameters.writers;
  if (kind == WorkerKind::kProcesses) state.pipes->KeepInChild({.is_writer = is_writer});
  if (is_writer) {
    RunWriter(state, index);
  } else {
    RunReader(state, index);
  }
}

// What the owner reads at both ends of the window.
struct Reading {
  int64_t time = 0;
  uint64_t bytes_read = 0;
  Counts counts;
};

template <typename Pipes>
uint64_t BytesRead(const TransferState<Pipes>& state) {
  uint64_t bytes = 0;
  for (size_t i = state.num_writers(); i < state.accounts.size(); ++i) {
    bytes += state.accounts[i].bytes.load(std::memory_order_relaxed);
  }
  return bytes;
}

template <typename Pipes>
Counts ReadLoopCounts(const TransferState<Pipes>& state) {
  const auto sum = [&](bool of_writers, std::atomic<uint64_t> WorkerAccount::*field) {
    uint64_t total = 0;
    for (size_t i = 0; i < state.accounts.size(); ++i) {
      if ((i < state.num_writers()) == of_writers) {
        total += (state.accounts[i].*field).load(std::memory_order_relaxed);
      }
    }
    return static_cast<int64_t>(total);
  };
  return {{"bytes_written", "B", sum(true, &WorkerAccount::bytes)},
          {"bytes_read", "B", sum(false, &WorkerAccount::bytes)},
          {"reads", "count", sum(false, &WorkerAccount::reads)},
          {"short_writes", "count", sum(true, &WorkerAccount::short_calls)},
          {"short_reads", "count", sum(false, &WorkerAccount::short_calls)}};
}

template <typename Pipes>
Counts ReadAllCounts(const TransferState<Pipes>& state) {
  Counts counts = ReadLoopCounts(state);
  const Counts more = state.pipes->ReadCounts();
  counts.insert(counts.end(), more.begin(), more.end());
  return counts;
}

// "writer 0", "reader 3". Defined in transfer.cc, as the next one.
std::string NameOfWorker(const TransferParameters& parameters, int worker_index);
// Whether every worker ended without an error and every byte written was read.
Judgement JudgeAccounts(const TransferParameters& parameters,
                        std::span<const WorkerAccount> accounts);

template <typename Pipes>
Judgement StartWorkers(const std::shared_ptr<TransferState<Pipes>>& state, Nanos timeout,
                       LoadWorkers& workers, Supervisor& supervisor) {
  const WorkerKind kind = workers.kind();
  const int writers = state->parameters.writers;
  const int total = writers + state->parameters.readers;
  const auto start = [&](int first, int end) -> Judgement {
    for (int i = first; i < end; ++i) {
      Judgement started =
          JudgeStart(kind, workers.Start(NameOfWorker(state->parameters, i),
                                         [state, kind, i] { RunTransferWorker(*state, kind, i); }));
      if (!started.ok()) return started;
    }
    return {};
  };
  if (Judgement started = start(writers, total); !started.ok()) return started;
  if (!supervisor.AwaitArrivals(state->parameters.readers, timeout)) {
    return Failed("start_timeout", "the readers did not start within " + FormatDuration(timeout));
  }
  if (Judgement started = start(0, writers); !started.ok()) return started;
  if (kind == WorkerKind::kProcesses) state->pipes->ReleaseInParent();
  if (!supervisor.AwaitArrivals(total, timeout)) {
    return Failed("start_timeout", "the writers did not start within " + FormatDuration(timeout));
  }
  return {};
}

// Ends what runs, then says why: a worker's death explains everything else.
template <typename Pipes>
Judgement GiveUp(TransferState<Pipes>& state, Judgement judgement, Nanos timeout,
                 LoadWorkers& workers, Supervisor& supervisor) {
  static_cast<void>(supervisor.ForceEnd(timeout, [&] { state.pipes->Interrupt(); }));
  Judgement checked = workers.Check();
  return checked.ok() ? judgement : checked;
}

// Runs the load: readers, then writers, warm-up, window, stop, drain. `numbers` is complete where
// the judgement is ok; `placements` are the workers' answers.
template <typename Pipes>
Judgement RunTransferLoops(const TransferParameters& parameters, std::shared_ptr<Pipes> pipes,
                           TransferNumbers& numbers, std::vector<BufferPlacement>& placements,
                           const LoopTimeouts& timeouts = {}, Watch watch = {}) {
  Result<std::shared_ptr<TransferState<Pipes>>> made =
      TransferState<Pipes>::Make(parameters, std::move(pipes));
  if (!made.ok()) return Failed("no_memory", made.status().message());
  const std::shared_ptr<TransferState<Pipes>> state = std::move(*made);
  const std::unique_ptr<LoadWorkers> workers = LoadWorkers::Make(parameters.workers);
  Supervisor supervisor(state->gate(), *workers, std::move(watch));
  if (Judgement started = StartWorkers(state, timeouts.start, *workers, supervisor);
      !started.ok()) {
    return GiveUp(*state, std::move(started), timeouts.abort, *workers, supervisor);
  }

  state->gate().Enter(Phase::kWarmUp);
  bool is_aborted = supervisor.IsAbortedBefore(Nanos(memory::MonotonicNanos()) + parameters.warmup);

  Reading before;
  before.counts = ReadAllCounts(*state);
  before.bytes_read = BytesRead(*state);
  before.time = memory::MonotonicNanos();
  state->gate().Enter(Phase::kMeasure);
  is_aborted = is_aborted || supervisor.IsAbortedBefore(Nanos(before.time) + parameters.duration);
  Reading after;
  after.time = memory::MonotonicNanos();
  after.bytes_read = BytesRead(*state);
  state->gate().Enter(Phase::kStop);
  after.counts = ReadAllCounts(*state);

  const bool has_ended =
      is_aborted ? supervisor.ForceEnd(timeouts.abort, [&] { state->pipes->Interrupt(); })
                 : supervisor.AwaitEnd(timeouts.drain);
  if (!has_ended) {
    return GiveUp(
        *state,
        Failed("hung_shutdown", "workers did not end within " + FormatDuration(timeouts.drain) +
                                    " after they were told to"),
        timeouts.abort, *workers, supervisor);
  }
  if (Judgement checked = workers->Check(); !checked.ok()) return checked;
  if (Judgement judged = JudgeAccounts(parameters, state->accounts); !judged.ok()) return judged;
  if (is_aborted) return Failed("internal", "the attempt was aborted, but by nobody");

  numbers.window = Nanos(after.time - before.time);
  numbers.window_bytes = after.bytes_read - before.bytes_read;
  numbers.counts = Difference(before.counts, after.counts);
  ThreadUsage usage = {};
  for (const WorkerAccount& account : state->accounts) {
    usage += account.usage;
    placements.push_back(account.placement);
  }
  for (const Count& count : ToCounts(usage)) numbers.counts.push_back(count);
  for (size_t i = 0; i < state->num_writers(); ++i) {
    numbers.latency.MergeImage(state->latencies[i]);
    numbers.latency_sum += state->accounts[i].latency_sum;
  }
  numbers.counts.push_back(
      {"messages_written", "count", static_cast<int64_t>(numbers.latency.count())});
  return {};
}

}  // namespace pipeyard::load
