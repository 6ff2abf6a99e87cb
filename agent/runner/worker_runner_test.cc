// The runner with real processes: a small program stands in for the worker (test_worker.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/runner/judge.h"
#include "agent/runner/leftover.h"
#include "agent/runner/reasons.h"
#include "agent/runner/test_worker.h"
#include "agent/runner/testing_assign.h"
#include "agent/runner/worker_runner_fixture.h"
#include "workloads/commands/command_request.h"

namespace pipeyard::runner {

std::string TestWorkerProgram() { return PIPEYARD_TEST_WORKER; }

namespace {

using testing::HasSubstr;

TEST_F(WorkerRunnerTest, ResultOfTheWorkerBecomesTheFinalFrame) {
  runner_->Run(Assign(TestWorkerAct::kVoid));

  EXPECT_EQ(heard_.NextStarted(), TestAssign(1).attempt_id());
  const EndedAttempt ended = heard_.NextEnded();
  EXPECT_EQ(ended.attempt_id, TestAssign(1).attempt_id());
  const v1::AttemptEnd& end = ended.frames.back().end();
  EXPECT_EQ(end.outcome(), v1::OUTCOME_VOID);
  EXPECT_EQ(end.reason_code(), "test");
  EXPECT_EQ(end.elapsed_ns(), 5);
  EXPECT_EQ(end.boot_id(), options_.boot_id);
  EXPECT_GE(end.agent_ended_utc_ns(), end.agent_started_utc_ns());
}

TEST_F(WorkerRunnerTest, EachWayToEndHasItsOutcomeAndReason) {
  struct Case {
    TestWorkerAct act;
    v1::Outcome outcome;
    std::string_view reason_code;
    const char* text;
  };
  for (const Case& c :
       {Case{TestWorkerAct::kFail, v1::OUTCOME_FAILED, kExitStatus, "the cause"},
        Case{TestWorkerAct::kDie, v1::OUTCOME_FAILED, kKilled, "SIGKILL"},
        Case{TestWorkerAct::kLeaveNothing, v1::OUTCOME_FAILED, kNoResult, "no result"},
        Case{TestWorkerAct::kOtherAttempt, v1::OUTCOME_FAILED, kWrongResult, "other"}}) {
    const v1::AttemptEnd end = EndOf(c.act);
    EXPECT_EQ(end.outcome(), c.outcome);
    EXPECT_EQ(end.reason_code(), c.reason_code);
    EXPECT_THAT(end.reason_text(), HasSubstr(c.text));
  }
}

TEST_F(WorkerRunnerTest, HungAndStoppedWorkersAreKilledAtTheTimeout) {
  for (const TestWorkerAct act : {TestWorkerAct::kHang, TestWorkerAct::kStop}) {
    v1::Assign assign = Assign(act);
    assign.set_trial_timeout_ns(Milliseconds(50).count());

    runner_->Run(assign);

    const v1::AttemptEnd end = heard_.NextEnded().frames.back().end();
    EXPECT_EQ(end.outcome(), v1::OUTCOME_TIMEOUT);
    EXPECT_EQ(end.reason_code(), kHung);
    EXPECT_EQ(end.exit_signal(), SIGKILL);
    EXPECT_TRUE(FindProcessesWithArgument(Paths().Request()).empty());
  }
}

TEST_F(WorkerRunnerTest, TailOfTheOutputIsKeptAndTheRestCounted) {
  runner_->Run(Assign(TestWorkerAct::kPrintMuch));

  const v1::Frame frame = heard_.NextEnded().frames.back();

  ASSERT_EQ(frame.outputs_size(), 1);
  EXPECT_EQ(frame.outputs(0).stream(), "stdout");
  EXPECT_EQ(frame.outputs(0).data().size(), 64u << 10);
  EXPECT_EQ(frame.outputs(0).omitted_bytes(), 1'100'000u - (64 << 10));
  EXPECT_TRUE(frame.outputs(0).data().ends_with("0123456789\n"));
}

TEST_F(WorkerRunnerTest, CancelKillsTheWorker) {
  runner_->Run(Assign(TestWorkerAct::kHang));
  const std::string id = heard_.NextStarted();

  runner_->Stop(id, StopReason::kCanceled, "run_canceled");

  const v1::AttemptEnd end = heard_.NextEnded().frames.back().end();
  EXPECT_EQ(end.outcome(), v1::OUTCOME_CANCELED);
  EXPECT_EQ(end.reason_text(), "run_canceled");
  EXPECT_TRUE(FindProcessesWithArgument(Paths().Request()).empty());
}

TEST_F(WorkerRunnerTest, WaitsForTheMachinesTrialLock) {
  const int lock = TakeTrialLock();
  runner_->Run(Assign(TestWorkerAct::kVoid));
  EXPECT_EQ(heard_.num_started(), 0u);

  ::close(lock);

  EXPECT_EQ(heard_.NextStarted(), TestAssign(1).attempt_id());
  EXPECT_EQ(heard_.NextEnded().frames.back().end().reason_code(), "test");
}

TEST_F(WorkerRunnerTest, CancelEndsTheWaitForTheLock) {
  const int lock = TakeTrialLock();
  runner_->Run(Assign(TestWorkerAct::kVoid));

  runner_->Stop(TestAssign(1).attempt_id(), StopReason::kCanceled, "");

  EXPECT_EQ(heard_.NextEnded().frames.back().end().outcome(), v1::OUTCOME_CANCELED);
  EXPECT_EQ(heard_.num_started(), 0u);
  EXPECT_FALSE(PosixEnv().Exists(Paths().Started()));
  ::close(lock);
}

TEST_F(WorkerRunnerTest, WorkerHoldsTheLockWhileItLives) {
  runner_->Run(Assign(TestWorkerAct::kHang));
  const std::string id = heard_.NextStarted();
  const Result<int> other = OpenTrialLockFile(options_.trial_lock_path);
  EXPECT_EQ(::flock(*other, LOCK_EX | LOCK_NB), -1);

  runner_->Stop(id, StopReason::kCanceled, "");
  (void)heard_.NextEnded();

  EXPECT_EQ(::flock(*other, LOCK_EX), 0);
  ::close(*other);
}

TEST_F(WorkerRunnerTest, StartIsDurableAndNamesTheBoot) {
  runner_->Run(Assign(TestWorkerAct::kHang));
  (void)heard_.NextStarted();

  EXPECT_EQ(*PosixEnv().ReadFile(Paths().Started()), options_.boot_id + "\n");
}

TEST_F(WorkerRunnerTest, DestructionEndsWhatRunsAndWhatIsQueued) {
  runner_->Run(Assign(TestWorkerAct::kHang, 1));
  (void)heard_.NextStarted();
  runner_->Run(Assign(TestWorkerAct::kVoid, 2));

  runner_.reset();

  for (int i = 0; i < 2; ++i) {
    const v1::AttemptEnd end = heard_.NextEnded().frames.back().end();
    EXPECT_EQ(end.outcome(), v1::OUTCOME_VOID);
    EXPECT_EQ(end.reason_code(), kAgentRestarted);
  }
  EXPECT_FALSE(PosixEnv().Exists(Paths(2).Started()));
}

TEST_F(WorkerRunnerTest, ProgramThatIsNotThereFailsTheAttemptNotTheAgent) {
  options_.worker_program = folder_ + "/absent";
  Restart();

  const v1::AttemptEnd end = EndOf(TestWorkerAct::kVoid);

  EXPECT_EQ(end.outcome(), v1::OUTCOME_FAILED);
  EXPECT_EQ(end.reason_code(), kSpawnFailed);
  EXPECT_THAT(end.reason_text(), HasSubstr("absent"));
}

TEST_F(WorkerRunnerTest, LockFileThatCannotBeOpenedVoidsTheAttempt) {
  options_.trial_lock_path = folder_ + "/no-such-folder/lock";
  Restart();

  const v1::AttemptEnd end = EndOf(TestWorkerAct::kVoid);

  EXPECT_EQ(end.outcome(), v1::OUTCOME_VOID);
  EXPECT_EQ(end.reason_code(), kTrialLockUnavailable);
}

TEST_F(WorkerRunnerTest, LeftoverIsFoundByItsRecordAndByItsCommandLine) {
  for (const bool is_recorded : {true, false}) {
    ASSERT_TRUE(PosixEnv().RemoveTree(Paths().Folder()).ok());
    ASSERT_TRUE(PosixEnv().CreateDirs(Paths().Folder()).ok());
    v1::WorkerRequest request;
    request.set_seed(static_cast<uint64_t>(TestWorkerAct::kHang));
    ASSERT_TRUE(PosixEnv().WriteFileAtomic(Paths().Request(), request.SerializeAsString()).ok());
    SpawnOptions spawn;
    spawn.argv = {PIPEYARD_TEST_WORKER, "launch",          "--parent", "1",
                  "--request",          Paths().Request(), "--",       "run",
                  "--request",          Paths().Request(), "--result", Paths().Result()};
    auto process = Process::Spawn(spawn);
    ASSERT_TRUE(process.ok());
    // The command line can be read a moment after the spawn, when exec is through.
    while (FindProcessesWithArgument(Paths().Request()).empty()) {
    }
    if (is_recorded) {
      ASSERT_TRUE(RecordWorker(PosixEnv(), Paths(), (*process)->pid()).ok());
    }

    EXPECT_TRUE(KillLeftoverWorker(PosixEnv(), Paths(), Seconds(60)).ok());

    const auto exit = (*process)->Wait(Seconds(60));
    ASSERT_TRUE(exit.ok() && exit->has_value());
    EXPECT_EQ((*exit)->signal, SIGKILL);
  }
}

TEST_F(WorkerRunnerTest, RecordOfAnotherProcessWithTheSameNumberIsNotKilled) {
  SpawnOptions spawn;
  spawn.argv = {"/bin/sleep", "600"};
  auto process = Process::Spawn(spawn);
  ASSERT_TRUE(process.ok());
  ASSERT_TRUE(PosixEnv().CreateDirs(Paths().Folder()).ok());
  const std::string record = std::to_string((*process)->pid()) + " 1\n";
  ASSERT_TRUE(PosixEnv().WriteFileAtomic(Paths().Worker(), record).ok());

  EXPECT_TRUE(KillLeftoverWorker(PosixEnv(), Paths(), Seconds(60)).ok());

  EXPECT_FALSE((*process)->Wait(Nanos(0))->has_value());
}

TEST_F(WorkerRunnerTest, ProgramsOfAnAttemptAreFoundByTheirEnvironment) {
  SpawnOptions spawn;
  spawn.argv = {"/bin/sleep", "600"};
  spawn.environment = {commands::AttemptVariable(Paths().AttemptId())};
  auto process = Process::Spawn(spawn);
  ASSERT_TRUE(process.ok());
  while (FindProgramsOf(Paths().AttemptId()).empty()) {
  }
  EXPECT_TRUE(FindProgramsOf("01931c2e-0000-7000-8000-999999999999").empty());

  EXPECT_TRUE(KillLeftoverWorker(PosixEnv(), Paths(), Seconds(60)).ok());

  const auto exit = (*process)->Wait(Seconds(60));
  ASSERT_TRUE(exit.ok() && exit->has_value());
  EXPECT_EQ((*exit)->signal, SIGKILL);
}

TEST(OpenTrialLockFile, MakesAFileThatOtherUsersCanOpen) {
  char name[] = "/tmp/pipeyard-lock.XXXXXX";
  ASSERT_NE(::mkdtemp(name), nullptr);
  const std::string path = std::string(name) + "/lock";
  const mode_t mask = ::umask(077);
  const Result<int> fd = OpenTrialLockFile(path);
  ::umask(mask);

  ASSERT_TRUE(fd.ok());
  struct stat info {};
  ASSERT_EQ(::fstat(*fd, &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0644u);
  EXPECT_FALSE(OpenTrialLockFile(name).ok()) << "a folder is no lock file";
  ::close(*fd);
  EXPECT_TRUE(PosixEnv().RemoveTree(name).ok());
}

}  // namespace
}  // namespace pipeyard::runner
