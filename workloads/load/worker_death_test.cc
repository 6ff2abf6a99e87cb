// A worker process that dies or is stopped ends the attempt, wherever it was; nothing hangs and
// nothing stays behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <memory>

#include "proto/settings/variant.h"
#include "workloads/load/engine_pipes.h"
#include "workloads/load/kernel_pipes.h"
#include "workloads/load/transfer_loop.h"

namespace pipeyard::load {
namespace {

using testing::HasSubstr;

// Of the one writer; the readers follow.
constexpr int kWriter = 0;
constexpr int kFirstReader = 1;
constexpr int kSabotagedCall = 10;
// The sabotage ends the window early.
constexpr Nanos kUntilItFails = Seconds(60);

// SHARED
struct Pids {
  std::atomic<int> of_worker[8];
};

// Real pipes, with something done before the tenth call of each worker.
template <typename Pipes>
class Sabotaged {
 public:
  using Worker = std::pair<int, typename Pipes::Worker>;
  using Sabotage = std::function<void(Sabotaged&, int worker_index)>;

  Sabotaged(std::shared_ptr<Pipes> pipes, Sabotage sabotage)
      : pipes_(std::move(pipes)), sabotage_(std::move(sabotage)) {
    memory::RegionLayout layout;
    const uint64_t offset = layout.Add(sizeof(Pids), 64);
    region_ = std::move(*memory::Region::Create(layout));
    pids_ = region_->At<Pids>(offset);
  }

  Pipes& pipes() { return *pipes_; }
  pid_t PidOf(int worker_index) const { return pids_->of_worker[worker_index]; }

  Worker Attach(int worker_index) {
    pids_->of_worker[worker_index] = ::getpid();
    return {worker_index, pipes_->Attach(worker_index)};
  }
  int64_t Write(Worker& worker, int pipe, const std::byte* data, size_t size) {
    if (++num_calls_ == kSabotagedCall) sabotage_(*this, worker.first);
    return pipes_->Write(worker.second, pipe, data, size);
  }
  int64_t Read(Worker& worker, int pipe, std::byte* data, size_t size) {
    if (++num_calls_ == kSabotagedCall) sabotage_(*this, worker.first);
    return pipes_->Read(worker.second, pipe, data, size);
  }
  void CloseWriteEnd(Worker& worker, int pipe) { pipes_->CloseWriteEnd(worker.second, pipe); }
  void CloseReadEnd(Worker& worker, int pipe) { pipes_->CloseReadEnd(worker.second, pipe); }
  void KeepInChild(const PipeEnds& used) { pipes_->KeepInChild(used); }
  void ReleaseInParent() { pipes_->ReleaseInParent(); }
  void Interrupt() { pipes_->Interrupt(); }
  Counts ReadCounts() const { return {}; }

 private:
  const std::shared_ptr<Pipes> pipes_;
  const Sabotage sabotage_;
  std::unique_ptr<memory::Region> region_;
  Pids* pids_ = nullptr;
  int num_calls_ = 0;  // of this process, which is one worker
};

TransferParameters Parameters() {
  TransferParameters parameters;
  parameters.readers = 2;
  parameters.message_bytes = 10'000;
  parameters.pipe_bytes = 65536;
  parameters.warmup = Nanos(0);
  parameters.duration = kUntilItFails;
  parameters.workers = WorkerKind::kProcesses;
  return parameters;
}

template <typename Pipes>
std::shared_ptr<Pipes> MakePipes();
template <>
std::shared_ptr<EnginePipes> MakePipes() {
  std::shared_ptr<EnginePipes> pipes;
  const auto variant = settings::MakeVariant("transfer", "engine", {});
  const Judgement made = EnginePipes::Create(*variant, 3, 1, 65536, pipes);
  EXPECT_TRUE(made.ok()) << made.reason_text;
  return pipes;
}
template <>
std::shared_ptr<KernelPipes> MakePipes() {
  std::shared_ptr<KernelPipes> pipes;
  const Judgement made = KernelPipes::Create(1, 65536, pipes);
  EXPECT_TRUE(made.ok()) << made.reason_text;
  return pipes;
}

template <typename Pipes>
Judgement RunSabotaged(const TransferParameters& parameters,
                       typename Sabotaged<Pipes>::Sabotage sabotage,
                       const LoopTimeouts& timeouts = {}) {
  TransferNumbers numbers;
  std::vector<BufferPlacement> placements;
  const Judgement judgement = RunTransferLoops(
      parameters, std::make_shared<Sabotaged<Pipes>>(MakePipes<Pipes>(), std::move(sabotage)),
      numbers, placements, timeouts);
  // No child is left, not even as a zombie.
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
  return judgement;
}

template <typename Pipes>
class WorkerDeath : public testing::Test {};
using Targets = testing::Types<EnginePipes, KernelPipes>;
TYPED_TEST_SUITE(WorkerDeath, Targets);

TYPED_TEST(WorkerDeath, BetweenTwoCallsFailsTheAttempt) {
  for (const int victim : {kWriter, kFirstReader, kFirstReader + 1}) {
    const Judgement judged = RunSabotaged<TypeParam>(
        Parameters(), [victim](Sabotaged<TypeParam>& /*pipes*/, int worker_index) {
          if (worker_index == victim) ::raise(SIGTERM);
        });

    EXPECT_EQ(judged.outcome, v1::OUTCOME_FAILED);
    EXPECT_EQ(judged.reason_code, "worker_died");
    EXPECT_THAT(judged.reason_text, HasSubstr(victim == kWriter ? "writer 0" : "reader "));
  }
}

TYPED_TEST(WorkerDeath, OfTheOnlyReaderEndsAWriterThatWouldWaitForEver) {
  TransferParameters parameters = Parameters();
  parameters.readers = 1;
  const Judgement judged =
      RunSabotaged<TypeParam>(parameters, [](Sabotaged<TypeParam>& /*pipes*/, int worker_index) {
        if (worker_index == kFirstReader) ::raise(SIGKILL);
      });

  EXPECT_EQ(judged.reason_code, "worker_died");
  EXPECT_THAT(judged.reason_text, HasSubstr("killed by SIGKILL"));
}

TYPED_TEST(WorkerDeath, ByItsOwnExitFailsTheAttempt) {
  const Judgement judged =
      RunSabotaged<TypeParam>(Parameters(), [](Sabotaged<TypeParam>& /*pipes*/, int worker_index) {
        if (worker_index == kWriter) ::_exit(3);
      });

  EXPECT_EQ(judged.reason_code, "worker_died");
  EXPECT_THAT(judged.reason_text, HasSubstr("exit status 3"));
}

TYPED_TEST(WorkerDeath, StoppedForGoodFailsTheAttemptAtItsDeadline) {
  TransferParameters parameters = Parameters();
  parameters.duration = Milliseconds(50);
  const Judgement judged =
      RunSabotaged<TypeParam>(parameters,
                              [](Sabotaged<TypeParam>& pipes, int worker_index) {
                                if (worker_index == kWriter) ::raise(SIGSTOP);
                                static_cast<void>(pipes);
                              },
                              {.drain = Milliseconds(100), .abort = Milliseconds(50)});

  EXPECT_EQ(judged.outcome, v1::OUTCOME_FAILED);
  EXPECT_EQ(judged.reason_code, "worker_stopped");
  EXPECT_THAT(judged.reason_text, HasSubstr("stopped by SIGSTOP"));
}

TEST(WorkerDeathOnEngine, WhileItHoldsThePipesLockFailsTheAttempt) {
  for (const int victim : {kWriter, kFirstReader}) {
    const Judgement judged = RunSabotaged<EnginePipes>(
        Parameters(), [victim](Sabotaged<EnginePipes>& pipes, int worker_index) {
          if (worker_index != victim) return;
          static_cast<void>(pipes.pipes().engine().pipe(0).info().mutex.Lock());
          ::raise(SIGKILL);
        });

    EXPECT_EQ(judged.reason_code, "worker_died");
    EXPECT_THAT(judged.reason_text, HasSubstr("killed by SIGKILL"));
  }
}

TEST(WorkerDeathOnEngine, InsideTheFreePagesOfANodeFailsTheAttempt) {
  for (const int victim : {kWriter, kFirstReader}) {
    const Judgement judged = RunSabotaged<EnginePipes>(
        Parameters(), [victim](Sabotaged<EnginePipes>& pipes, int worker_index) {
          if (worker_index != victim) return;
          static_cast<void>(pipes.pipes().engine().pages().node(0).lock_for_test().Lock());
          ::raise(SIGKILL);
        });

    EXPECT_EQ(judged.outcome, v1::OUTCOME_FAILED);
    EXPECT_EQ(judged.reason_code, "worker_died");
    EXPECT_THAT(judged.reason_text, HasSubstr("killed by SIGKILL"));
  }
}

TEST(WorkerDeathOnEngine, WhileItSleepsFailsTheAttempt) {
  const Judgement judged =
      RunSabotaged<EnginePipes>(Parameters(), [](Sabotaged<EnginePipes>& pipes, int worker_index) {
        if (worker_index != kWriter) return;
        while (pipes.pipes().engine().pipe(0).CountWaitingReaders() < 2) ::usleep(100);
        ::kill(pipes.PidOf(kFirstReader), SIGKILL);
      });

  EXPECT_EQ(judged.reason_code, "worker_died");
  EXPECT_THAT(judged.reason_text, HasSubstr("reader 0 (process "));
}

}  // namespace
}  // namespace pipeyard::load
