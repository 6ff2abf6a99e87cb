#include "workloads/load/transfer.h"

#include <fmt/format.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include "workloads/load/engine_pipes.h"
#include "workloads/load/kernel_pipes.h"
#include "workloads/load/resolved_size.h"
#include "workloads/load/result_fields.h"
#include "workloads/load/task_limit.h"
#include "workloads/load/topology_watch.h"
#include "workloads/load/transfer_loop.h"

namespace pipeyard::load {
namespace {

Judgement Complete(const TransferParameters& parameters, const TransferNumbers& numbers,
                   const std::vector<BufferPlacement>& placements, v1::WorkerResult& result) {
  AddBufferPlacement(placements, result);
  if (numbers.latency.count() == 0 || numbers.window_bytes == 0) {
    return Failed("no_operations", fmt::format("no message arrived within the measured {}",
                                               FormatDuration(parameters.duration)));
  }
  const Status filled = FillTransferResult(parameters, numbers, result);
  return filled.ok() ? Judgement{} : Failed("internal", filled.message());
}

template <typename Pipes>
Judgement RunOn(TransferParameters parameters, const std::shared_ptr<Pipes>& pipes,
                const Surroundings& surroundings, v1::WorkerResult& result) {
  AddResolvedPipeSize(parameters.pipe_bytes, pipes->size_bytes(), result);
  parameters.pipe_bytes = pipes->size_bytes();
  pipes->Describe(result);
  TopologyWatch topology(surroundings, {[&](numa::NodeId node) { pipes->OnlineNode(node); },
                                        [&] { return pipes->FastpathPages(); }});
  TransferNumbers numbers;
  std::vector<BufferPlacement> placements;
  if (Judgement ran =
          RunTransferLoops(parameters, pipes, numbers, placements, {}, topology.AsWatch());
      !ran.ok()) {
    return ran;
  }
  topology.Look();
  const Judgement completed = Complete(parameters, numbers, placements, result);
  FillCounters(topology.counts(), result);
  const Judgement concluded = pipes->Conclude(result);
  if (!completed.ok()) return completed;
  return concluded.ok() ? topology.Judge() : concluded;
}

}  // namespace

std::string NameOfWorker(const TransferParameters& parameters, int worker_index) {
  const bool is_writer = worker_index < parameters.writers;
  return fmt::format("{} {}", is_writer ? "writer" : "reader",
                     is_writer ? worker_index : worker_index - parameters.writers);
}

// An error that only says that the other side, or the owner, ended the call is not the cause.
Judgement JudgeAccounts(const TransferParameters& parameters,
                        std::span<const WorkerAccount> accounts) {
  uint64_t written = 0;
  uint64_t read = 0;
  Judgement first;
  bool has_cause = false;
  for (size_t i = 0; i < accounts.size(); ++i) {
    const bool is_writer = i < static_cast<size_t>(parameters.writers);
    const WorkerAccount& account = accounts[i];
    (is_writer ? written : read) += account.bytes.load(std::memory_order_relaxed);
    if (account.error == 0 || has_cause) continue;
    has_cause = account.error != EPIPE && account.error != EINTR;
    if (has_cause || first.ok()) {
      first = Failed(is_writer ? "write_failed" : "read_failed",
                     (is_writer ? "write: " : "read: ") + ErrnoText(account.error));
    }
  }
  if (!first.ok()) return first;
  if (written != read) {
    return Failed("bytes_lost", fmt::format("{} bytes were written but {} read", written, read));
  }
  return {};
}

TransferParameters TransferParametersOf(const settings::Variant& variant) {
  TransferParameters parameters;
  parameters.writers = static_cast<int>(variant.Integer("writers"));
  parameters.readers = static_cast<int>(variant.Integer("readers"));
  parameters.message_bytes = variant.Integer("message_bytes");
  parameters.pipe_bytes = variant.Integer("pipe_bytes");
  parameters.duration = Nanos(variant.Integer("duration"));
  parameters.warmup = Nanos(variant.Integer("warmup"));
  parameters.workers = WorkerKindOf(variant.Text("workers"));
  return parameters;
}

Judgement RunTransfer(const settings::Variant& variant, const Surroundings& surroundings,
                      v1::WorkerResult& result) {
  const TransferParameters parameters = TransferParametersOf(variant);
  if (Judgement fits = JudgeTasks(ReadTaskLimits(), parameters.writers + parameters.readers);
      !fits.ok()) {
    return fits;
  }
  if (variant.target == "kernel") {
    std::shared_ptr<KernelPipes> pipes;
    const Judgement created = KernelPipes::Create(1, parameters.pipe_bytes, pipes);
    return created.ok() ? RunOn(parameters, pipes, surroundings, result) : created;
  }
  if (variant.target == "engine") {
    std::shared_ptr<EnginePipes> pipes;
    const Judgement created = EnginePipes::Create(variant, parameters.writers + parameters.readers,
                                                  1, parameters.pipe_bytes, pipes);
    return created.ok() ? RunOn(parameters, pipes, surroundings, result) : created;
  }
  return Failed("not_supported", "target " + variant.target + " is not supported yet");
}

}  // namespace pipeyard::load
