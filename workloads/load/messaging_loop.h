// The loops of the messaging workload, the same for every target, for threads and for processes
// (kernel-mechanisms.md E1): groups of `fds` senders and `fds` receivers, a pipe for each receiver,
// each sender writing one message to each pipe of its group a round.
//
// Pipes is the seam that transfer_loop.h describes. What a worker does for each message is the call
// and a store to a line of its own: no clock, no virtual call, nothing that two workers share.
//
// Private to workloads/load. Thread safety: RunMessagingLoops is called by one thread.
#pragma once

#include <atomic>
#include <cerrno>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "workloads/load/buffer_placement.h"
#include "workloads/load/judgement.h"
#include "workloads/load/load_workers.h"
#include "workloads/load/message_buffer.h"
#include "workloads/load/messaging_numbers.h"
#include "workloads/load/phase.h"
#include "workloads/load/pipe_ends.h"
#include "workloads/load/supervisor.h"
#include "workloads/load/thread_usage.h"
#include "workloads/memory/region.h"

namespace pipeyard::load {

// SHARED. One worker's account: `messages` and `short_calls` are its progress, written with each of
// them; the rest is written at its end.
struct alignas(kFalseSharingRange) MessagingAccount {
  std::atomic<uint64_t> messages;  // whole ones, sent or received
  uint64_t bytes;
  std::atomic<uint64_t> short_calls;  // calls that moved a part of a message
  // The errno that ended the worker; 0 for a regular end.
  int32_t error;
  ThreadUsage usage;
  BufferPlacement placement;

  // By the worker itself.
  void CountShortCall() {
    short_calls.store(short_calls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
};
PIPEYARD_CHECK_SHARED(MessagingAccount);

// SHARED. Senders of one group that have not ended: the last one closes the group's write ends.
struct alignas(kFalseSharingRange) GroupState {
  std::atomic<int32_t> live_senders;
};
PIPEYARD_CHECK_SHARED(GroupState);

// What one worker is.
struct MessagingRole {
  bool is_sender = false;
  int group = 0;
  PipeEnds ends;
};

// Group by group, receivers first, as hackbench starts them.
inline MessagingRole RoleOf(const MessagingParameters& parameters, int worker_index) {
  const int group = worker_index / (2 * parameters.fds);
  const int member = worker_index % (2 * parameters.fds);
  const int first_pipe = group * parameters.fds;
  if (member < parameters.fds) {
    return {false, group, {.first_pipe = first_pipe + member, .num_pipes = 1, .is_writer = false}};
  }
  return {true, group, {.first_pipe = first_pipe, .num_pipes = parameters.fds, .is_writer = true}};
}

// Everything that the workers use: it lives until the last of them has ended, even one that its
// owner gave up.
template <typename Pipes>
struct MessagingState {
  // Errors: kResourceExhausted.
  static Result<std::shared_ptr<MessagingState>> Make(const MessagingParameters& parameters,
                                                      std::shared_ptr<Pipes> pipes) {
    const auto workers = static_cast<size_t>(parameters.num_workers());
    const auto num_groups = static_cast<size_t>(parameters.groups);
    memory::RegionLayout layout;
    const uint64_t gate = layout.Add(sizeof(PhaseGate), kFalseSharingRange);
    const uint64_t groups = layout.Add(sizeof(GroupState) * num_groups, kFalseSharingRange);
    const uint64_t accounts = layout.Add(sizeof(MessagingAccount) * workers, kFalseSharingRange);
    auto state = std::make_shared<MessagingState>(parameters, std::move(pipes));
    PIPEYARD_ASSIGN_OR_RETURN(state->region, memory::Region::Create(layout));
    state->gate = state->region->template At<PhaseGate>(gate);
    state->groups = {state->region->template At<GroupState>(groups), num_groups};
    state->accounts = {state->region->template At<MessagingAccount>(accounts), workers};
    for (GroupState& group : state->groups) {
      group.live_senders.store(parameters.fds, std::memory_order_relaxed);
    }
    for (size_t i = 0; i < workers; ++i) {
      PIPEYARD_ASSIGN_OR_RETURN(MessageBuffer buffer,
                                MessageBuffer::Map(static_cast<size_t>(parameters.message_bytes)));
      state->buffers.push_back(std::move(buffer));
    }
    return state;
  }

  MessagingState(const MessagingParameters& given, std::shared_ptr<Pipes> driven)
      : parameters(given), pipes(std::move(driven)) {}

  const MessagingParameters parameters;
  const std::shared_ptr<Pipes> pipes;
  std::unique_ptr<memory::Region> region;
  // In the region.
  PhaseGate* gate = nullptr;
  std::span<GroupState> groups;
  std::span<MessagingAccount> accounts;  // by worker index
  // Private pages: a worker process touches its own copies.
  std::vector<MessageBuffer> buffers;
};

// What a worker counts for itself while it runs.
struct MessagingTally {
  uint64_t bytes = 0;
  int error = 0;
};

// One message, whole, however many calls that takes. False where it could not be written.
template <typename Pipes>
inline bool SendMessage(Pipes& pipes, typename Pipes::Worker& worker, int pipe,
                        const PhaseGate& gate, const MessageBuffer& buffer,
                        MessagingAccount& account, MessagingTally& tally) {
  const size_t size = buffer.size();
  size_t done = 0;
  while (true) {
    const int64_t written = pipes.Write(worker, pipe, buffer.data() + done, size - done);
    if (written < 0) [[unlikely]] {
      if (written == -EINTR && gate.Current() != Phase::kAbort) continue;
      tally.error = static_cast<int>(-written);
      return false;
    }
    done += static_cast<size_t>(written);
    tally.bytes += static_cast<uint64_t>(written);
    if (done == size) [[likely]]
      return true;
    account.CountShortCall();
  }
}

template <typename Pipes>
void SendMessages(MessagingState<Pipes>& state, typename Pipes::Worker& worker,
                  const MessagingRole& role, const MessageBuffer& buffer, MessagingAccount& account,
                  MessagingTally& tally) {
  Pipes& pipes = *state.pipes;
  PhaseGate& gate = *state.gate;
  const bool is_timed = state.parameters.duration > Nanos(0);
  const uint64_t rounds = is_timed ? UINT64_MAX : static_cast<uint64_t>(state.parameters.loops);
  const int first = role.ends.first_pipe;
  const int end = first + role.ends.num_pipes;
  uint64_t messages = 0;
  for (uint64_t round = 0; round < rounds && gate.Current() < Phase::kStop; ++round) {
    for (int pipe = first; pipe < end; ++pipe) {
      if (!SendMessage(pipes, worker, pipe, gate, buffer, account, tally)) return;
      account.messages.store(++messages, std::memory_order_relaxed);
    }
  }
}

// Until as many as the loops make have come, or the end of the file.
template <typename Pipes>
void ReceiveMessages(MessagingState<Pipes>& state, typename Pipes::Worker& worker,
                     const MessagingRole& role, MessageBuffer& buffer, MessagingAccount& account,
                     MessagingTally& tally) {
  Pipes& pipes = *state.pipes;
  const PhaseGate& gate = *state.gate;
  const bool is_timed = state.parameters.duration > Nanos(0);
  const uint64_t expected = is_timed ? UINT64_MAX
                                     : static_cast<uint64_t>(state.parameters.loops) *
                                           static_cast<uint64_t>(state.parameters.fds);
  const int pipe = role.ends.first_pipe;
  const size_t size = buffer.size();
  size_t done = 0;
  uint64_t messages = 0;
  while (messages < expected) {
    const int64_t read = pipes.Read(worker, pipe, buffer.data() + done, size - done);
    if (read <= 0) [[unlikely]] {
      if (read == -EINTR && gate.Current() != Phase::kAbort) continue;
      tally.error = static_cast<int>(-read);
      return;
    }
    tally.bytes += static_cast<uint64_t>(read);
    done += static_cast<size_t>(read);
    if (done < size) [[unlikely]] {
      account.CountShortCall();
      continue;
    }
    done = 0;
    account.messages.store(++messages, std::memory_order_relaxed);
  }
}

// What worker `index` runs, in its thread or process.
template <typename Pipes>
void RunMessagingWorker(MessagingState<Pipes>& state, WorkerKind kind, int index) {
  const MessagingRole role = RoleOf(state.parameters, index);
  if (kind == WorkerKind::kProcesses) state.pipes->KeepInChild(role.ends);
  MessagingAccount& account = state.accounts[static_cast<size_t>(index)];
  MessageBuffer& buffer = state.buffers[static_cast<size_t>(index)];
  typename Pipes::Worker worker = state.pipes->Attach(index);
  buffer.Touch(std::byte{0x5a});
  account.placement = AskPlacement(buffer);
  UsageWindow usage(account.usage);
  MessagingTally tally;
  state.gate->ArriveAndWait();
  usage.See(state.gate->Current());
  if (role.is_sender) {
    SendMessages(state, worker, role, buffer, account, tally);
  } else {
    ReceiveMessages(state, worker, role, buffer, account, tally);
  }
  usage.See(Phase::kStop);
  account.bytes = tally.bytes;
  account.error = tally.error;
  if (tally.error != 0) state.gate->Enter(Phase::kAbort);
  if (!role.is_sender) {
    state.pipes->CloseReadEnd(worker, role.ends.first_pipe);
    return;
  }
  GroupState& group = state.groups[static_cast<size_t>(role.group)];
  if (group.live_senders.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  for (int i = 0; i < role.ends.num_pipes; ++i) {
    state.pipes->CloseWriteEnd(worker, role.ends.first_pipe + i);
  }
}

// "receiver 3 of group 2". Defined in messaging.cc, as the next two.
std::string NameOfWorker(const MessagingParameters& parameters, int worker_index);
// The first error that is a cause, not a consequence of another worker's end.
Judgement JudgeErrors(const MessagingParameters& parameters,
                      std::span<const MessagingAccount> accounts);
// What the loops counted, into `numbers`.
void SumAccounts(const MessagingParameters& parameters, std::span<const MessagingAccount> accounts,
                 MessagingNumbers& numbers);

// Waits until every worker has ended. False where none of them got on for `patience`, or one died.
template <typename Pipes>
bool AwaitMessages(const MessagingState<Pipes>& state, Nanos patience, Supervisor& supervisor) {
  uint64_t last = UINT64_MAX;
  while (true) {
    uint64_t progress = 0;
    for (const MessagingAccount& account : state.accounts) {
      progress += account.messages.load(std::memory_order_relaxed) +
                  account.short_calls.load(std::memory_order_relaxed);
    }
    if (progress == last) return false;
    last = progress;
    if (supervisor.AwaitEnd(patience)) return true;
    if (state.gate->Current() == Phase::kAbort) return false;
  }
}

// Runs the load: every worker starts and waits, the clock starts with the signal to go and stops
// when the last worker has ended. `numbers` is complete where the judgement is ok.
template <typename Pipes>
Judgement RunMessagingLoops(const MessagingParameters& parameters, std::shared_ptr<Pipes> pipes,
                            MessagingNumbers& numbers, std::vector<BufferPlacement>& placements,
                            const LoopTimeouts& timeouts = {}, Watch watch = {}) {
  Result<std::shared_ptr<MessagingState<Pipes>>> made =
      MessagingState<Pipes>::Make(parameters, std::move(pipes));
  if (!made.ok()) return Failed("no_memory", made.status().message());
  const std::shared_ptr<MessagingState<Pipes>> state = std::move(*made);
  const std::unique_ptr<LoadWorkers> workers = LoadWorkers::Make(parameters.workers);
  const WorkerKind kind = workers->kind();
  Supervisor supervisor(*state->gate, *workers, std::move(watch));
  const auto give_up = [&](Judgement judgement) {
    static_cast<void>(supervisor.ForceEnd(timeouts.abort, [&] { state->pipes->Interrupt(); }));
    Judgement checked = workers->Check();
    return checked.ok() ? std::move(judgement) : checked;
  };

  for (int i = 0; i < parameters.num_workers(); ++i) {
    Judgement started =
        JudgeStart(kind, workers->Start(NameOfWorker(parameters, i),
                                        [state, kind, i] { RunMessagingWorker(*state, kind, i); }));
    if (!started.ok()) return give_up(std::move(started));
  }
  if (kind == WorkerKind::kProcesses) state->pipes->ReleaseInParent();
  if (!supervisor.AwaitArrivals(parameters.num_workers(), timeouts.start)) {
    return give_up(Failed("start_timeout",
                          "the workers did not start within " + FormatDuration(timeouts.start)));
  }

  const Counts before = state->pipes->ReadCounts();
  const MonotonicTime began = SystemClock().Now();
  state->gate->Enter(Phase::kMeasure);
  if (parameters.duration > Nanos(0)) {
    static_cast<void>(supervisor.IsAbortedBefore(began + parameters.duration));
    state->gate->Enter(Phase::kStop);
  }
  if (!AwaitMessages(*state, timeouts.drain, supervisor)) {
    const bool is_aborted = state->gate->Current() == Phase::kAbort;
    Judgement given_up = give_up(
        Failed("hung", "no part of a message arrived for " + FormatDuration(timeouts.drain)));
    if (!is_aborted || given_up.reason_code == "worker_died") return given_up;
    const Judgement cause = JudgeErrors(parameters, state->accounts);
    return cause.ok() ? given_up : cause;
  }
  numbers.time = SystemClock().Now() - began;
  if (Judgement checked = workers->Check(); !checked.ok()) return checked;
  if (Judgement judged = JudgeErrors(parameters, state->accounts); !judged.ok()) return judged;

  SumAccounts(parameters, state->accounts, numbers);
  const Counts of_target = Difference(before, state->pipes->ReadCounts());
  numbers.counts.insert(numbers.counts.end(), of_target.begin(), of_target.end());
  for (const MessagingAccount& account : state->accounts) {
    placements.push_back(account.placement);
  }
  return JudgeMessages(parameters, numbers);
}

}  // namespace pipeyard::load
