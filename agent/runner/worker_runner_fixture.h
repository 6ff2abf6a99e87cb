// A WorkerRunner with real processes, for tests: a small program stands in for the worker
// (test_worker.h).
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/file.h>

#include <deque>
#include <memory>
#include <string>

#include "agent/runner/test_worker.h"
#include "agent/runner/testing_assign.h"
#include "agent/runner/trial_lock.h"
#include "agent/runner/worker_runner.h"

namespace pipeyard::runner {

// What the runner told, handed from its thread to the test's.
class Heard {
 public:
  AttemptRunner::Events Events() {
    return {.on_started =
                [this](const std::string& attempt_id) {
                  MutexLock lock(mutex_);
                  started_.push_back(attempt_id);
                  changed_.NotifyAll();
                },
            .on_ended =
                [this](EndedAttempt ended) {
                  MutexLock lock(mutex_);
                  ended_.push_back(std::move(ended));
                  changed_.NotifyAll();
                }};
  }
  // Wait as long as the test may take.
  std::string NextStarted() {
    MutexLock lock(mutex_);
    while (started_.empty()) changed_.Wait(mutex_);
    std::string id = started_.front();
    started_.pop_front();
    return id;
  }
  EndedAttempt NextEnded() {
    MutexLock lock(mutex_);
    while (ended_.empty()) changed_.Wait(mutex_);
    EndedAttempt ended = std::move(ended_.front());
    ended_.pop_front();
    return ended;
  }
  size_t num_started() {
    MutexLock lock(mutex_);
    return started_.size();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::deque<std::string> started_ GUARDED_BY(mutex_);
  std::deque<EndedAttempt> ended_ GUARDED_BY(mutex_);
};

// Path of the program that stands in for the worker (worker_runner_test.cc).
std::string TestWorkerProgram();

class WorkerRunnerTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/pipeyard-runner.XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
    options_.worker_program = TestWorkerProgram();
    options_.trial_lock_path = folder_ + "/trial-lock";
    options_.attempts_folder = folder_ + "/attempts";
    options_.boot_id = "01931c2e-0000-4000-8000-00000000b007";
    Restart();
  }
  void TearDown() override {
    runner_.reset();
    EXPECT_TRUE(PosixEnv().RemoveTree(folder_).ok());
  }
  void Restart() {
    runner_.reset();
    runner_ = std::make_unique<WorkerRunner>(PosixEnv(), SystemClock(), options_, heard_.Events());
  }
  v1::Assign Assign(TestWorkerAct act, int number = 1) {
    v1::Assign assign = TestAssign(number);
    assign.set_seed(static_cast<uint64_t>(act));
    return assign;
  }
  v1::AttemptEnd EndOf(TestWorkerAct act) {
    runner_->Run(Assign(act));
    return heard_.NextEnded().frames.back().end();
  }
  agent::AttemptPaths Paths(int number = 1) {
    return agent::AttemptPaths(options_.attempts_folder, TestAssign(number).attempt_id());
  }
  // Held until the descriptor is closed.
  int TakeTrialLock() {
    const Result<int> fd = OpenTrialLockFile(options_.trial_lock_path);
    EXPECT_TRUE(fd.ok());
    EXPECT_EQ(::flock(*fd, LOCK_EX), 0);
    return *fd;
  }

  std::string folder_;
  WorkerRunnerOptions options_;
  Heard heard_;
  std::unique_ptr<WorkerRunner> runner_;
};

}  // namespace pipeyard::runner
