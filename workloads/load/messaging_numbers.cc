#include "workloads/load/messaging_numbers.h"

#include <fmt/format.h>

#include "workloads/load/result_fields.h"

namespace pipeyard::load {

Judgement JudgeMessages(const MessagingParameters& parameters, const MessagingNumbers& numbers) {
  if (numbers.bytes_sent != numbers.bytes_received ||
      numbers.messages_sent != numbers.messages_received) {
    return Failed("bytes_lost",
                  fmt::format("{} messages of {} bytes in all were sent but {} messages of {} "
                              "bytes received",
                              numbers.messages_sent, numbers.bytes_sent, numbers.messages_received,
                              numbers.bytes_received));
  }
  if (numbers.messages_received == 0 || numbers.time <= Nanos(0)) {
    return Failed("no_operations", fmt::format("no message was received within {}",
                                               FormatDuration(parameters.duration)));
  }
  if (parameters.duration > Nanos(0)) return {};
  const auto expected = static_cast<uint64_t>(parameters.num_pipes()) *
                        static_cast<uint64_t>(parameters.fds) *
                        static_cast<uint64_t>(parameters.loops);
  if (numbers.messages_received == expected) return {};
  return Failed("bytes_lost", fmt::format("{} messages were received, the loops make {}",
                                          numbers.messages_received, expected));
}

Status FillMessagingResult(const MessagingNumbers& numbers, v1::WorkerResult& result) {
  const auto nanos = static_cast<double>(numbers.time.count());
  PIPEYARD_RETURN_IF_ERROR(
      FillMetrics("messaging",
                  {{"message_rate", {static_cast<double>(numbers.messages_received) / nanos * 1e9}},
                   {"time", {nanos}}},
                  result));
  FillCounters(numbers.counts, result);
  return Status::Ok();
}

}  // namespace pipeyard::load
