#include "workloads/load/transfer.h"

#include <fmt/format.h>

#include <cerrno>
#include <utility>

#include "workloads/load/kernel_pipe.h"
#include "workloads/load/transfer_loop.h"

namespace pipeyard::load {
namespace {

void AddBufferPlacement(const std::vector<MessageBuffer>& buffers, v1::WorkerResult& result) {
  const Result<std::map<int32_t, int64_t>> pages = PagesPerNode(buffers);
  // A kernel that does not tell leaves the proof out; nobody may read that as proved.
  if (!pages.ok()) return;
  v1::Placement& placement = *result.add_placements();
  placement.set_memory("message-buffers");
  placement.set_evidence("move_pages");
  for (const auto& [node, count] : *pages) (*placement.mutable_pages_per_node())[node] = count;
}

Judgement Complete(const TransferParameters& parameters, const TransferNumbers& numbers,
                   const std::vector<MessageBuffer>& buffers, v1::WorkerResult& result) {
  AddBufferPlacement(buffers, result);
  if (numbers.latency.count() == 0) {
    return Failed("no_operations", fmt::format("no write ended within the measured {}",
                                               FormatDuration(parameters.duration)));
  }
  const Status filled = FillTransferResult(parameters, numbers, result);
  return filled.ok() ? Judgement{} : Failed("internal", filled.message());
}

void AddResolvedSize(const TransferParameters& parameters, int64_t size_bytes,
                     v1::WorkerResult& result) {
  if (size_bytes == parameters.pipe_bytes) return;
  v1::ResolvedValue& resolved = *result.add_resolved();
  resolved.set_name("pipe_bytes");
  resolved.set_as_written(FormatBytes(parameters.pipe_bytes));
  resolved.set_resolved(FormatBytes(size_bytes));
}

Judgement RunOnKernel(TransferParameters parameters, v1::WorkerResult& result) {
  std::unique_ptr<KernelPipe> pipe;
  if (Judgement created = KernelPipe::Create(parameters.pipe_bytes, pipe); !created.ok()) {
    return created;
  }
  AddResolvedSize(parameters, pipe->size_bytes(), result);
  parameters.pipe_bytes = pipe->size_bytes();
  TransferNumbers numbers;
  std::vector<MessageBuffer> buffers;
  Judgement judged = RunTransferLoops(parameters, std::move(pipe), numbers, buffers);
  return judged.ok() ? Complete(parameters, numbers, buffers, result) : judged;
}

}  // namespace

// An error that only says that the other side, or the owner, ended the call is not the cause.
Judgement JudgeAccounts(const TransferParameters& parameters,
                        const std::vector<WorkerAccount>& accounts) {
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
  return parameters;
}

Judgement RunTransfer(const settings::Variant& variant, v1::WorkerResult& result) {
  const TransferParameters parameters = TransferParametersOf(variant);
  if (variant.target == "kernel") return RunOnKernel(parameters, result);
  return Failed("not_supported", "target " + variant.target + " is not supported yet");
}

}  // namespace pipeyard::load
