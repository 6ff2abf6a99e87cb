#include "workloads/load/transfer.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "workloads/load/pipe_attempt.h"
#include "workloads/load/pressure.h"
#include "workloads/load/transfer_loop.h"

namespace pipeyard::load {
namespace {

class TransferLoad {
 public:
  // `surroundings` and `result` outlive it.
  TransferLoad(const TransferParameters& parameters, std::string pressure,
               const Surroundings& surroundings, v1::WorkerResult& result)
      : parameters_(parameters),
        pressure_(std::move(pressure)),
        surroundings_(surroundings),
        result_(result) {}

  int num_workers() const { return parameters_.writers + parameters_.readers; }
  int num_pipes() const { return 1; }
  int64_t message_bytes() const { return parameters_.message_bytes; }
  int64_t& pipe_bytes() { return parameters_.pipe_bytes; }

  template <typename Pipes>
  Judgement Run(const std::shared_ptr<Pipes>& pipes, Watch watch) {
    std::unique_ptr<Pressure> pressure;
    const Judgement pressed =
        Pressure::Start(pressure_, SearchPath(), surroundings_, pressure, result_);
    if (!pressed.ok()) return pressed;
    Judgement ran =
        RunTransferLoops(parameters_, pipes, numbers_, placements_, {}, std::move(watch));
    if (pressure == nullptr) return ran;
    Judgement lasted = pressure->Stop();
    return ran.ok() ? lasted : ran;
  }
  Judgement Fill(v1::WorkerResult& result) const {
    AddBufferPlacement(placements_, result);
    if (numbers_.latency.count() == 0 || numbers_.window_bytes == 0) {
      return Failed("no_operations", fmt::format("no message arrived within the measured {}",
                                                 FormatDuration(parameters_.duration)));
    }
    const Status filled = FillTransferResult(parameters_, numbers_, result);
    return filled.ok() ? Judgement{} : Failed("internal", filled.message());
  }

 private:
  static std::string SearchPath() {
    const char* const path = std::getenv("PATH");
    return path == nullptr ? "" : path;
  }

  TransferParameters parameters_;
  const std::string pressure_;
  const Surroundings& surroundings_;
  v1::WorkerResult& result_;
  TransferNumbers numbers_;
  std::vector<BufferPlacement> placements_;
};

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
  return RunPipeAttempt(
      TransferLoad(TransferParametersOf(variant), variant.Text("pressure"), surroundings, result),
      variant, surroundings, result);
}

}  // namespace pipeyard::load
