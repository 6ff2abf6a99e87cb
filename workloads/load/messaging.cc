#include "workloads/load/messaging.h"

#include <fmt/format.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include "workloads/load/messaging_loop.h"
#include "workloads/load/pipe_attempt.h"

namespace pipeyard::load {
namespace {

class MessagingLoad {
 public:
  explicit MessagingLoad(const MessagingParameters& parameters) : parameters_(parameters) {}

  int num_workers() const { return parameters_.num_workers(); }
  int num_pipes() const { return parameters_.num_pipes(); }
  int64_t message_bytes() const { return parameters_.message_bytes; }
  int64_t& pipe_bytes() { return parameters_.pipe_bytes; }

  template <typename Pipes>
  Judgement Run(const std::shared_ptr<Pipes>& pipes, Watch watch) {
    return RunMessagingLoops(parameters_, pipes, numbers_, placements_, {}, std::move(watch));
  }
  Judgement Fill(v1::WorkerResult& result) const {
    AddBufferPlacement(placements_, result);
    const Status filled = FillMessagingResult(numbers_, result);
    return filled.ok() ? Judgement{} : Failed("internal", filled.message());
  }

 private:
  MessagingParameters parameters_;
  MessagingNumbers numbers_;
  std::vector<BufferPlacement> placements_;
};

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
    (is_sender ? short_writes : short_reads) += account.short_calls.load(std::memory_order_relaxed);
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
  return RunPipeAttempt(MessagingLoad(MessagingParametersOf(variant)), variant, surroundings,
                        result);
}

}  // namespace pipeyard::load
