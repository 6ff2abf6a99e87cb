// Whole attempts of the messaging workload, small. Nothing here depends on how fast the machine is.
#include "workloads/load/messaging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "proto/settings/definition.h"
#include "workloads/load/kernel_pipes.h"
#include "workloads/load/load.h"
#include "workloads/load/messaging_loop.h"
#include "workloads/load/result_testing.h"

namespace pipeyard::load {
namespace {

using settings::Value;
using testing::HasSubstr;

settings::Variant VariantOf(const std::string& target, std::map<std::string, Value> values) {
  values.try_emplace("groups", int64_t{2});
  values.try_emplace("fds", int64_t{3});
  values.try_emplace("loops", int64_t{50});
  Result<settings::Variant> variant = settings::MakeVariant("messaging", target, values);
  EXPECT_TRUE(variant.ok()) << variant.status().ToString();
  return std::move(*variant);
}

// Target, kind of workers.
class MessagingOn : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  static v1::WorkerResult Run(std::map<std::string, Value> shape) {
    shape["workers"] = std::get<1>(GetParam());
    return RunWorkload(VariantOf(std::get<0>(GetParam()), std::move(shape)));
  }
};

TEST_P(MessagingOn, PassesEveryMessageOfEveryLoop) {
  struct Case {
    std::map<std::string, Value> shape;
    int64_t messages;
    int64_t bytes;
  };
  const std::vector<Case> cases = {
      {{}, 2 * 3 * 3 * 50, 2 * 3 * 3 * 50 * 100},
      {{{"groups", int64_t{1}}, {"fds", int64_t{1}}, {"loops", int64_t{1}}}, 1, 100},
      {{{"message_bytes", int64_t{1}}}, 900, 900},
      // Longer than PIPE_BUF: messages of several senders mix in the pipe, but no byte is lost.
      {{{"message_bytes", int64_t{5000}}, {"pipe_bytes", int64_t{4096}}}, 900, 900 * 5000},
      {{{"message_bytes", int64_t{200'000}}, {"loops", int64_t{2}}}, 36, 36 * 200'000},
  };
  for (const Case& c : cases) {
    const v1::WorkerResult result = Run(c.shape);

    ASSERT_EQ(result.outcome(), v1::OUTCOME_OK) << result.reason_code() << result.reason_text();
    EXPECT_EQ(CounterOf(result, "messages"), c.messages);
    EXPECT_EQ(CounterOf(result, "bytes_written"), c.bytes);
    EXPECT_EQ(CounterOf(result, "bytes_read"), c.bytes);
    ASSERT_EQ(result.metrics_size(), 2);
    EXPECT_EQ(result.metrics(0).name(), "message_rate");
    EXPECT_EQ(result.metrics(0).better(), v1::DIRECTION_HIGHER);
    EXPECT_EQ(result.metrics(1).better(), v1::DIRECTION_LOWER);
    EXPECT_NEAR(result.metrics(0).value() * result.metrics(1).value() / 1e9,
                static_cast<double>(c.messages), 1e-6 * static_cast<double>(c.messages));
    ASSERT_GE(result.placements_size(), 1);
    EXPECT_EQ(result.placements(0).memory(), "message-buffers");
  }
}

TEST_P(MessagingOn, StopsAfterItsDuration) {
  const v1::WorkerResult result = Run({{"loops", int64_t{1}}, {"duration", int64_t{20'000'000}}});

  ASSERT_EQ(result.outcome(), v1::OUTCOME_OK) << result.reason_code() << result.reason_text();
  EXPECT_GT(CounterOf(result, "messages"), 0);
  EXPECT_EQ(CounterOf(result, "bytes_read"), CounterOf(result, "messages") * 100);
}

INSTANTIATE_TEST_SUITE_P(Target, MessagingOn,
                         testing::Combine(testing::Values("kernel", "engine"),
                                          testing::Values("threads", "processes")),
                         [](const auto& target) {
                           return std::get<0>(target.param) + "_" + std::get<1>(target.param);
                         });

TEST(MessagingRoles, EachPipeHasOneReceiverAndTheSendersOfItsGroup) {
  MessagingParameters parameters;
  parameters.groups = 3;
  parameters.fds = 4;
  std::map<int, int> receivers;
  std::map<int, int> senders;
  for (int i = 0; i < parameters.num_workers(); ++i) {
    const MessagingRole role = RoleOf(parameters, i);
    for (int k = 0; k < role.ends.num_pipes; ++k) {
      ++(role.is_sender ? senders : receivers)[role.ends.first_pipe + k];
    }
    EXPECT_EQ(role.ends.first_pipe / parameters.fds, role.group);
    EXPECT_EQ(role.ends.is_writer, role.is_sender);
  }

  for (int pipe = 0; pipe < parameters.num_pipes(); ++pipe) {
    EXPECT_EQ(receivers[pipe], 1) << pipe;
    EXPECT_EQ(senders[pipe], 4) << pipe;
  }
  EXPECT_EQ(NameOfWorker(parameters, 4), "sender 0 of group 0");
  EXPECT_EQ(NameOfWorker(parameters, 11), "receiver 3 of group 1");
}

// What goes wrong at the tenth call of one worker.
class Sabotaged {
 public:
  using Worker = std::pair<int, KernelPipes::Worker>;
  using Sabotage = std::function<int64_t()>;  // the call's result instead; 0: the call is made

  Sabotaged(std::shared_ptr<KernelPipes> pipes, int victim, Sabotage sabotage)
      : pipes_(std::move(pipes)), victim_(victim), sabotage_(std::move(sabotage)) {}

  Worker Attach(int index) { return {index, pipes_->Attach(index)}; }
  int64_t Write(Worker& worker, int pipe, const std::byte* data, size_t size) {
    const int64_t result = BeforeCall(worker);
    return result != 0 ? result : pipes_->Write(worker.second, pipe, data, size);
  }
  int64_t Read(Worker& worker, int pipe, std::byte* data, size_t size) {
    const int64_t result = BeforeCall(worker);
    return result != 0 ? result : pipes_->Read(worker.second, pipe, data, size);
  }
  void CloseWriteEnd(Worker& worker, int pipe) { pipes_->CloseWriteEnd(worker.second, pipe); }
  void CloseReadEnd(Worker& worker, int pipe) { pipes_->CloseReadEnd(worker.second, pipe); }
  void KeepInChild(const PipeEnds& used) { pipes_->KeepInChild(used); }
  void ReleaseInParent() { pipes_->ReleaseInParent(); }
  void Interrupt() { pipes_->Interrupt(); }
  Counts ReadCounts() const { return {}; }

 private:
  int64_t BeforeCall(const Worker& worker) {
    return worker.first == victim_ && ++num_calls_ == 10 ? sabotage_() : 0;
  }

  const std::shared_ptr<KernelPipes> pipes_;
  const int victim_;
  const Sabotage sabotage_;
  int num_calls_ = 0;
};

Judgement RunSabotaged(WorkerKind kind, int victim, Sabotaged::Sabotage sabotage,
                       const LoopTimeouts& timeouts = {}) {
  MessagingParameters parameters;
  parameters.groups = 2;
  parameters.fds = 2;
  parameters.loops = 1'000'000'000;
  parameters.workers = kind;
  std::shared_ptr<KernelPipes> pipes;
  EXPECT_TRUE(KernelPipes::Create(parameters.num_pipes(), parameters.pipe_bytes, pipes).ok());
  MessagingNumbers numbers;
  std::vector<BufferPlacement> placements;
  return RunMessagingLoops(parameters,
                           std::make_shared<Sabotaged>(pipes, victim, std::move(sabotage)), numbers,
                           placements, timeouts);
}

TEST(MessagingTrouble, AFailingCallIsTheCause) {
  for (const WorkerKind kind : {WorkerKind::kThreads, WorkerKind::kProcesses}) {
    const Judgement judged = RunSabotaged(kind, 3, [] { return -EIO; });

    EXPECT_EQ(judged.outcome, v1::OUTCOME_FAILED);
    EXPECT_EQ(judged.reason_code, "write_failed");
    EXPECT_THAT(judged.reason_text, HasSubstr("sender 1 of group 0: EIO"));
  }
}

TEST(MessagingTrouble, ADeadProcessFailsTheAttempt) {
  const Judgement judged = RunSabotaged(WorkerKind::kProcesses, 4, [] {
    ::raise(SIGKILL);
    return 0;
  });

  EXPECT_EQ(judged.reason_code, "worker_died");
  EXPECT_THAT(judged.reason_text, HasSubstr("receiver 0 of group 1 (process "));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
}

// Its senders write to a pipe without readers: were that signalled, they would die of it, and the
// first death found would name one of them.
TEST(MessagingTrouble, ADeadReceiverIsNotTakenForTheDeathOfItsSenders) {
  ::signal(SIGPIPE, SIG_DFL);
  for (int round = 0; round < 20; ++round) {
    const Judgement judged = RunSabotaged(WorkerKind::kProcesses, 4, [] {
      ::raise(SIGKILL);
      return 0;
    });

    ASSERT_EQ(judged.reason_code, "worker_died");
    ASSERT_THAT(judged.reason_text, HasSubstr("receiver 0 of group 1 (process "));
  }
}

TEST(MessagingTrouble, AStoppedProcessFailsTheAttemptOnceNobodyGetsOn) {
  // Every sender ends up waiting for this receiver, or for the receiver whose senders do.
  MessagingParameters parameters;
  parameters.groups = 1;
  parameters.fds = 1;
  parameters.loops = 1'000'000'000;
  parameters.workers = WorkerKind::kProcesses;
  std::shared_ptr<KernelPipes> pipes;
  ASSERT_TRUE(KernelPipes::Create(1, parameters.pipe_bytes, pipes).ok());
  MessagingNumbers numbers;
  std::vector<BufferPlacement> placements;
  const Judgement judged = RunMessagingLoops(
      parameters,
      std::make_shared<Sabotaged>(pipes, 0,
                                  [] {
                                    ::raise(SIGSTOP);
                                    return 0;
                                  }),
      numbers, placements, {.drain = Milliseconds(200), .abort = Milliseconds(50)});

  EXPECT_EQ(judged.reason_code, "worker_stopped");
  EXPECT_THAT(judged.reason_text, HasSubstr("receiver 0 of group 0"));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
}

TEST(MessagingNumbersOf, MessagesThatDoNotAddUpAreLost) {
  MessagingParameters parameters;
  parameters.groups = 1;
  parameters.fds = 2;
  parameters.loops = 5;
  MessagingNumbers sound;
  sound.time = Seconds(1);
  sound.messages_sent = sound.messages_received = 20;
  sound.bytes_sent = sound.bytes_received = 2000;
  MessagingNumbers lost = sound;
  lost.bytes_received = 1999;
  MessagingNumbers too_few = sound;
  too_few.messages_sent = too_few.messages_received = 19;
  MessagingNumbers nothing;

  EXPECT_TRUE(JudgeMessages(parameters, sound).ok());
  EXPECT_EQ(JudgeMessages(parameters, lost).reason_code, "bytes_lost");
  EXPECT_EQ(JudgeMessages(parameters, too_few).reason_code, "bytes_lost");
  EXPECT_EQ(JudgeMessages(parameters, nothing).reason_code, "no_operations");
  parameters.duration = Seconds(1);
  EXPECT_TRUE(JudgeMessages(parameters, too_few).ok());
}

}  // namespace
}  // namespace pipeyard::load
