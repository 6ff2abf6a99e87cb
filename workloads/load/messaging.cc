#include "workloads/load/messaging.h"

#include <fmt/format.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include "workloads/load/engine_pipes.h"
#include "workloads/load/kernel_pipes.h"
#include "workloads/load/messaging_loop.h"
#include "workloads/load/resolved_size.h"
#include "workloads/load/result_fields.h"
#include "workloads/load/task_limit.h"
#include "workloads/load/topology_watch.h"

namespace pipeyard::load {
namespace {

template <typename Pipes>
Judgement RunOn(const MessagingParameters& parameters, const std::shared_ptr<Pipes>& pipes,
                const Surroundings& surroundings, v1::WorkerResult& result) {
  AddResolvedPipeSize(parameters.pipe_bytes, pipes->size_bytes(), result);
  pipes->Describe(result);
  TopologyWatch topology(surroundings, {[&](numa::NodeId node) { pipes->OnlineNode(node); },
                                        [&] { return pipes->FastpathPages(); }});
  MessagingNumbers numbers;
  std::vector<BufferPlacement> placements;
  if (Judgement ran =
          RunMessagingLoops(parameters, pipes, numbers, placements, {}, topology.AsWatch());
      !ran.ok()) {
    return ran;
  }
  topology.Look();
  AddBufferPlacement(placements, result);
  const Status filled = FillMessagingResult(numbers, result);
  FillCounters(topology.counts(), result);
  const Judgement concluded = pipes->Conclude(result);
  if (!filled.ok()) return Failed("internal", filled.message());
  return concluded.ok() ? topology.Judge() : concluded;
}

}  // namespace

std::string NameOfWorker(const MessagingParameters& parameters, int worker_index) {
  const MessagingRole role = RoleOf(parameters, worker_index);
  const int member = worker_index % parameters.fds;
  return fmt::format("{} {} of group {}", role.is_sender ? "sender" : "receiver", member,
                     role.group);
}

// EPIPE and EINTR only say that the other side, or the owner, ended the call.
Judgement JudgeErrors(const MessagingParameters& parameters,
                      std::span<const MessagingAccount> accounts) {
  Judgement first;
  for (size_t i = 0; i < accounts.size(); ++i) {
    const int error = accounts[i].error;
    if (error == 0) continue;
    const bool is_cause = error != EPIPE && error != EINTR;
    if (!is_cause && !first.ok()) continue;
    const bool is_sender = RoleOf(parameters, static_cast<int>(i)).is_sender;
    first = Failed(is_sender ? "write_failed" : "read_failed",
                   NameOfWorker(parameters, static_cast<int>(i)) + ": " + ErrnoText(error));
    if (is_cause) break;
  }
  return first;
}

void SumAccounts(const MessagingParameters& parameters, std::span<const MessagingAccount> accounts,
                 MessagingNumbers& numbers) {
  ThreadUsage usage = {};
  uint64_t short_writes = 0;
  uint64_t short_reads = 0;
  for (size_t i = 0; i < accounts.size(); ++i) {
    const MessagingAccount& account = accounts[i];
    const uint64_t messages = account.messages.load(std::memory_order_relaxed);
    const bool is_sender = RoleOf(parameters, static_cast<int>(i)).is_sender;
    (is_sender ? numbers.messages_sent : numbers.messages_received) += messages;
    (is_sender ? numbers.bytes_sent : numbers.bytes_received) += account.bytes;
    (is_sender ? short_writes : short_reads) += account.short_calls;
    usage += account.usage;
  }
  const auto count = [](const char* name, const char* unit, uint64_t value) {
    return Count{name, unit, static_cast<int64_t>(value)};
  };
  numbers.counts = {count("messages", "count", numbers.messages_received),
                    count("bytes_written", "B", numbers.bytes_sent),
                    count("bytes_read", "B", numbers.bytes_received),
                    count("short_writes", "count", short_writes),
                    count("short_reads", "count", short_reads)};
  for (const Count& more : ToCounts(usage)) numbers.counts.push_back(more);
}

MessagingParameters MessagingParametersOf(const settings::Variant& variant) {
  MessagingParameters parameters;
  parameters.groups = static_cast<int>(variant.Integer("groups"));
  parameters.fds = static_cast<int>(variant.Integer("fds"));
  parameters.message_bytes = variant.Integer("message_bytes");
  parameters.pipe_bytes = variant.Integer("pipe_bytes");
  parameters.loops = variant.Integer("loops");
  parameters.duration = Nanos(variant.Integer("duration"));
  parameters.workers = WorkerKindOf(variant.Text("workers"));
  return parameters;
}

Judgement RunMessaging(const settings::Variant& variant, const Surroundings& surroundings,
                       v1::WorkerResult& result) {
  const MessagingParameters parameters = MessagingParametersOf(variant);
  if (Judgement fits = JudgeTasks(ReadTaskLimits(), parameters.num_workers()); !fits.ok()) {
    return fits;
  }
  if (variant.target == "kernel") {
    std::shared_ptr<KernelPipes> pipes;
    const Judgement created =
        KernelPipes::Create(parameters.num_pipes(), parameters.pipe_bytes, pipes);
    return created.ok() ? RunOn(parameters, pipes, surroundings, result) : created;
  }
  if (variant.target == "engine") {
    std::shared_ptr<EnginePipes> pipes;
    const Judgement created = EnginePipes::Create(
        variant, parameters.num_workers(), parameters.num_pipes(), parameters.pipe_bytes, pipes);
    return created.ok() ? RunOn(parameters, pipes, surroundings, result) : created;
  }
  return Failed("not_supported", "target " + variant.target + " is not supported yet");
}

}  // namespace pipeyard::load
