// The loops of the transfer workload, the same for every target (kernel-mechanisms.md E3).
//
// Pipe is the seam: a class with
//   Worker Attach(int worker_index)                     called by the worker's thread, writers
//   first: 0 .. writers + readers - 1 int64_t Write(Worker&, const std::byte*, size_t)    bytes, or
//   a negative errno; blocks int64_t Read(Worker&, std::byte*, size_t)           bytes, 0 for end
//   of file, or a negative errno; blocks void CloseWriteEnd(), CloseReadEnd()                by the
//   last writer, by the last reader void Interrupt()                                    lets no
//   call sleep for ever; calls may return -EINTR Counts ReadCounts() const what the mechanism did
//   so far, over all workers
//
// Private to workloads/load. Thread safety: RunTransferLoops is called by one thread.
#pragma once

#include <time.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "workloads/load/judgement.h"
#include "workloads/load/load_threads.h"
#include "workloads/load/message_buffer.h"
#include "workloads/load/phase.h"
#include "workloads/load/process_usage.h"
#include "workloads/load/transfer_numbers.h"

namespace pipeyard::load {

// Between two contended fields, so that they share no cache line nor the pair that prefetching
// fetches.
inline constexpr size_t kFalseSharingRange = 128;

// How long threads may take to start, to end after the writers were told to stop, and to end by
// force. The defaults are far above what a loaded machine needs; a trial's timeout (at least 30 s)
// lies above all of them together.
struct LoopTimeouts {
  Nanos start = Seconds(15);
  Nanos drain = Seconds(10);
  Nanos abort = Seconds(2);
};

// One worker's account. The worker alone writes it; the owner reads the atomics meanwhile and the
// rest after the worker's end.
struct alignas(kFalseSharingRange) WorkerAccount {
  std::atomic<uint64_t> bytes{0};
  std::atomic<uint64_t> reads{0};
  std::atomic<uint64_t> short_calls{0};
  Histogram latency;
  uint64_t latency_sum = 0;
  // The errno that ended the worker; 0 for a regular end.
  int error = 0;

  // Memory order: relaxed; the worker is the only one to add, and readers want no more than a
  // recent value.
  static void Add(std::atomic<uint64_t>& counter, uint64_t amount) {
    counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
};

// Everything that the workers use: it lives until the last of them has ended, even one that its
// owner gave up.
template <typename Pipe>
struct TransferState {
  TransferState(const TransferParameters& given, std::shared_ptr<Pipe> driven)
      : parameters(given),
        pipe(std::move(driven)),
        accounts(static_cast<size_t>(given.writers + given.readers)),
        live_writers(given.writers),
        live_readers(given.readers) {}

  const TransferParameters parameters;
  const std::shared_ptr<Pipe> pipe;
  PhaseGate gate;
  // Writers first, as the worker indexes.
  std::vector<WorkerAccount> accounts;
  std::vector<MessageBuffer> buffers;
  std::atomic<int> live_writers;
  std::atomic<int> live_readers;

  size_t num_writers() const { return static_cast<size_t>(parameters.writers); }
};

inline int64_t MonotonicNanos() {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Writes the whole message, however many calls that takes. Returns 0 or an errno.
template <typename Pipe>
int WriteMessage(TransferState<Pipe>& state, typename Pipe::Worker& worker, WorkerAccount& account,
                 const MessageBuffer& buffer) {
  size_t done = 0;
  while (done < buffer.size()) {
    const int64_t written = state.pipe->Write(worker, buffer.data() + done, buffer.size() - done);
    if (written < 0) {
      if (written == -EINTR && state.gate.Current() != Phase::kAbort) continue;
      return static_cast<int>(-written);
    }
    done += static_cast<size_t>(written);
    WorkerAccount::Add(account.bytes, static_cast<uint64_t>(written));
    if (done < buffer.size()) WorkerAccount::Add(account.short_calls, 1);
  }
  return 0;
}

template <typename Pipe>
void RunWriter(TransferState<Pipe>& state, int worker_index) {
  WorkerAccount& account = state.accounts[static_cast<size_t>(worker_index)];
  MessageBuffer& buffer = state.buffers[static_cast<size_t>(worker_index)];
  typename Pipe::Worker worker = state.pipe->Attach(worker_index);
  buffer.Touch(std::byte{0x5a});
  state.gate.ArriveAndWait();
  Phase phase = state.gate.Current();
  while (phase < Phase::kStop) {
    const int64_t began = MonotonicNanos();
    account.error = WriteMessage(state, worker, account, buffer);
    const int64_t elapsed = MonotonicNanos() - began;
    if (account.error != 0) break;
    phase = state.gate.Current();
    if (phase == Phase::kMeasure) {
      account.latency.Record(elapsed);
      account.latency_sum += static_cast<uint64_t>(elapsed);
    }
  }
  if (account.error != 0) state.gate.Enter(Phase::kAbort);
  if (state.live_writers.fetch_sub(1, std::memory_order_acq_rel) == 1)
    state.pipe->CloseWriteEnd(worker);
}

template <typename Pipe>
void RunReader(TransferState<Pipe>& state, int worker_index) {
  WorkerAccount& account = state.accounts[static_cast<size_t>(worker_index)];
  MessageBuffer& buffer = state.buffers[static_cast<size_t>(worker_index)];
  typename Pipe::Worker worker = state.pipe->Attach(worker_index);
  buffer.Touch(std::byte{0});
  state.gate.Arrive();
  while (true) {
    const int64_t read = state.pipe->Read(worker, buffer.data(), buffer.size());
    if (read == 0) break;
    if (read < 0) {
      if (read == -EINTR && state.gate.Current() != Phase::kAbort) continue;
      account.error = static_cast<int>(-read);
      break;
    }
    WorkerAccount::Add(account.bytes, static_cast<uint64_t>(read));
    WorkerAccount::Add(account.reads, 1);
    if (static_cast<size_t>(read) < buffer.size()) WorkerAccount::Add(account.short_calls, 1);
  }
  if (account.error != 0) state.gate.Enter(Phase::kAbort);
  if (state.live_readers.fetch_sub(1, std::memory_order_acq_rel) == 1)
    state.pipe->CloseReadEnd(worker);
}

// What the owner reads at both ends of the window.
struct Reading {
  int64_t time = 0;
  uint64_t bytes_read = 0;
  Counts counts;
};

template <typename Pipe>
uint64_t BytesRead(const TransferState<Pipe>& state) {
  uint64_t bytes = 0;
  for (size_t i = state.num_writers(); i < state.accounts.size(); ++i) {
    bytes += state.accounts[i].bytes.load(std::memory_order_relaxed);
  }
  return bytes;
}

template <typename Pipe>
Counts ReadLoopCounts(const TransferState<Pipe>& state) {
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

template <typename Pipe>
Counts ReadAllCounts(const TransferState<Pipe>& state) {
  Counts counts = ReadLoopCounts(state);
  for (const Counts& more : {ReadProcessUsage(), state.pipe->ReadCounts()}) {
    counts.insert(counts.end(), more.begin(), more.end());
  }
  return counts;
}

// Whether every worker ended without an error and every byte written was read. Defined in
// transfer.cc.
Judgement JudgeAccounts(const TransferParameters& parameters,
                        const std::vector<WorkerAccount>& accounts);

template <typename Pipe>
Judgement StartWorkers(const std::shared_ptr<TransferState<Pipe>>& state, Nanos timeout,
                       LoadThreads& threads) {
  const int writers = state->parameters.writers;
  const int workers = writers + state->parameters.readers;
  for (int i = 0; i < workers; ++i) {
    Result<MessageBuffer> buffer =
        MessageBuffer::Map(static_cast<size_t>(state->parameters.message_bytes));
    if (!buffer.ok()) return Failed("no_memory", buffer.status().message());
    state->buffers.push_back(std::move(*buffer));
  }
  for (int i = writers; i < workers; ++i) {
    const Status started = threads.Start([state, i] { RunReader(*state, i); });
    if (!started.ok()) return Failed("no_thread", started.message());
  }
  if (!state->gate.AwaitArrivals(state->parameters.readers, timeout)) {
    return Failed("start_timeout", "the readers did not start within " + FormatDuration(timeout));
  }
  for (int i = 0; i < writers; ++i) {
    const Status started = threads.Start([state, i] { RunWriter(*state, i); });
    if (!started.ok()) return Failed("no_thread", started.message());
  }
  if (!state->gate.AwaitArrivals(workers, timeout)) {
    return Failed("start_timeout", "the writers did not start within " + FormatDuration(timeout));
  }
  return {};
}

// Ends workers that do not end by themselves. False where that failed: they are left behind.
template <typename Pipe>
bool ForceEnd(TransferState<Pipe>& state, Nanos timeout, LoadThreads& threads) {
  state.gate.Enter(Phase::kAbort);
  const int64_t give_up = MonotonicNanos() + timeout.count();
  do {
    state.pipe->Interrupt();
    threads.InterruptSystemCalls();
    if (threads.AwaitEnd(Milliseconds(20))) return true;
  } while (MonotonicNanos() < give_up);
  return false;
}

// Runs the load: readers, then writers, warm-up, window, stop, drain. `numbers` is complete where
// the judgement is ok; `buffers` are the workers' buffers after they ended, for the proof of
// placement.
template <typename Pipe>
Judgement RunTransferLoops(const TransferParameters& parameters, std::shared_ptr<Pipe> pipe,
                           TransferNumbers& numbers, std::vector<MessageBuffer>& buffers,
                           const LoopTimeouts& timeouts = {}) {
  const auto state = std::make_shared<TransferState<Pipe>>(parameters, std::move(pipe));
  LoadThreads threads;
  if (Judgement started = StartWorkers(state, timeouts.start, threads); !started.ok()) {
    static_cast<void>(ForceEnd(*state, timeouts.abort, threads));
    return started;
  }

  state->gate.Enter(Phase::kWarmUp);
  static_cast<void>(state->gate.IsAbortedBefore(Nanos(MonotonicNanos()) + parameters.warmup));

  Reading before;
  before.counts = ReadAllCounts(*state);
  before.bytes_read = BytesRead(*state);
  before.time = MonotonicNanos();
  state->gate.Enter(Phase::kMeasure);
  static_cast<void>(state->gate.IsAbortedBefore(Nanos(before.time) + parameters.duration));
  Reading after;
  after.time = MonotonicNanos();
  after.bytes_read = BytesRead(*state);
  state->gate.Enter(Phase::kStop);
  after.counts = ReadAllCounts(*state);

  if (!threads.AwaitEnd(timeouts.drain)) {
    const bool has_ended = ForceEnd(*state, timeouts.abort, threads);
    return Failed("hung_shutdown", has_ended ? "workers ended only when they were interrupted"
                                             : "workers did not end even when interrupted");
  }
  if (Judgement judged = JudgeAccounts(parameters, state->accounts); !judged.ok()) return judged;

  numbers.window = Nanos(after.time - before.time);
  numbers.window_bytes = after.bytes_read - before.bytes_read;
  numbers.counts = Difference(before.counts, after.counts);
  for (size_t i = 0; i < state->num_writers(); ++i) {
    numbers.latency.Merge(state->accounts[i].latency);
    numbers.latency_sum += state->accounts[i].latency_sum;
  }
  numbers.counts.push_back(
      {"messages_written", "count", static_cast<int64_t>(numbers.latency.count())});
  buffers = std::move(state->buffers);
  return {};
}

}  // namespace pipeyard::load
