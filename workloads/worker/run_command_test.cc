// Workload `command` by the real worker, with programs of the system.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/env.h"
#include "base/process.h"
#include "base/testing/golden.h"
#include "pipeyard/v1/worker.pb.h"
#include "proto/settings/variant.h"

namespace pipeyard::worker {
namespace {

using ::testing::HasSubstr;

constexpr char kWorker[] = PIPEYARD_BIN_DIR "/pipeyard-worker";
constexpr char kAttempt[] = "01938a2b-7c00-7000-8000-00000000c0de";

class RunCommandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/pipeyard-command.XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override { EXPECT_TRUE(PosixEnv().RemoveTree(folder_).ok()); }

  // A shell as the program that is measured; the worker itself uses none.
  v1::WorkerRequest Request(const std::string& script) {
    v1::WorkerRequest request;
    request.set_attempt_id(kAttempt);
    *request.mutable_variant() = settings::ToProto(
        settings::MakeVariant("command", "command", {{"command", std::string("bench")}}).value());
    v1::CommandToRun& command = *request.mutable_command();
    command.set_name("bench");
    for (const std::string& word : {std::string("/bin/sh"), std::string("-c"), script}) {
      command.add_arguments(word);
    }
    command.set_program_sha256("0123");
    command.set_folder(folder_);
    v1::CommandRule& rule = *command.add_rules();
    rule.set_metric("ops");
    rule.set_kind(v1::CommandRule::KIND_REGEX);
    rule.set_pattern("^ops: (.*)$");
    rule.set_source(v1::CommandRule::SOURCE_STDOUT);
    rule.set_unit("k/s");
    rule.set_better(v1::DIRECTION_HIGHER);
    return request;
  }

  std::unique_ptr<Process> Start(const v1::WorkerRequest& request) {
    EXPECT_TRUE(
        PosixEnv().WriteFileAtomic(folder_ + "/request.pb", request.SerializeAsString()).ok());
    SpawnOptions options;
    options.argv = {
        kWorker, "run", "--request", folder_ + "/request.pb", "--result", folder_ + "/result.pb"};
    options.stdout_path = folder_ + "/stdout";
    options.stderr_path = folder_ + "/stderr";
    return Process::Spawn(options).value();
  }

  v1::WorkerResult Run(const v1::WorkerRequest& request) {
    const std::unique_ptr<Process> process = Start(request);
    const auto exit = process->Wait(Seconds(100));
    EXPECT_TRUE(exit.ok() && exit->has_value());
    v1::WorkerResult result;
    EXPECT_TRUE(result.ParseFromString(testing::ReadFile(folder_ + "/result.pb")));
    return result;
  }

  std::string folder_;
};

int64_t Counter(const v1::WorkerResult& result, const std::string& name) {
  for (const v1::Counter& counter : result.counters()) {
    if (counter.name() == name) return counter.value();
  }
  ADD_FAILURE() << "no counter " << name;
  return -1;
}

TEST_F(RunCommandTest, AMetricInItsBaseUnitAndWhatIsAlwaysRecorded) {
  const v1::WorkerResult result = Run(Request("echo starting >&2; echo ops: 2.5"));

  ASSERT_EQ(result.outcome(), v1::OUTCOME_OK) << result.reason_text();
  ASSERT_EQ(result.metrics_size(), 1);
  EXPECT_EQ(result.metrics(0).name(), "ops");
  EXPECT_EQ(result.metrics(0).value(), 2500);
  EXPECT_EQ(result.metrics(0).unit(), "1/s");
  EXPECT_EQ(result.metrics(0).better(), v1::DIRECTION_HIGHER);
  EXPECT_GT(Counter(result, "wall_time"), 0);
  EXPECT_GE(Counter(result, "user_time"), 0);
  EXPECT_GE(Counter(result, "system_time"), 0);
  EXPECT_EQ(Counter(result, "exit_status"), 0);
  ASSERT_EQ(result.resolved_size(), 2);
  EXPECT_EQ(result.resolved(0).as_written(), "/bin/sh");
  EXPECT_EQ(result.resolved(0).resolved(), "0123");
  EXPECT_EQ(result.resolved(1).name(), "command_line");
  EXPECT_THAT(result.resolved(1).resolved(), ::testing::StartsWith("/bin/sh -c '"));
  EXPECT_THAT(testing::ReadFile(folder_ + "/stdout"), HasSubstr("ops: 2.5\n"));
  EXPECT_THAT(testing::ReadFile(folder_ + "/stderr"), HasSubstr("starting\n"));
}

TEST_F(RunCommandTest, EachWayToFailHasItsReason) {
  const struct {
    const char* script;
    const char* code;
    const char* text;
  } cases[] = {
      {"echo ops: 1; echo out of luck >&2; exit 3", "program_exit",
       "bench ended with exit status 3: out of luck"},
      {"echo ops: 1; kill -9 $$", "program_killed", "bench was killed by SIGKILL"},
      {"echo nothing", "missing_metric", "ops: no line of stdout matches"},
      {"echo ops: many", "missing_metric", "ops: 'many' is no number"},
      {"printf 'ops: \\377\\033[2J\\n'", "missing_metric", "ops: '\\xff\\x1b[2J' is no number"},
  };
  for (const auto& c : cases) {
    const v1::WorkerResult result = Run(Request(c.script));
    EXPECT_EQ(result.outcome(), v1::OUTCOME_FAILED) << c.script;
    EXPECT_EQ(result.reason_code(), c.code) << c.script;
    EXPECT_THAT(result.reason_text(), HasSubstr(c.text)) << c.script;
  }
}

TEST_F(RunCommandTest, WhatIsNoFileInThePlaceOfItsOutputIsNotRead) {
  for (const char* const put : {"rm -f program.stdout; mkfifo program.stdout",
                                "rm -f program.stdout; ln -s /dev/zero program.stdout"}) {
    const v1::WorkerResult result = Run(Request(put));

    EXPECT_EQ(result.outcome(), v1::OUTCOME_FAILED) << put;
    EXPECT_EQ(result.reason_code(), "missing_metric");
    // An attempt has a folder of its own.
    ASSERT_EQ(::unlink((folder_ + "/program.stdout").c_str()), 0);
  }
}

TEST_F(RunCommandTest, AMissingProgramIsNotApplicable) {
  v1::WorkerRequest request = Request("");
  request.mutable_command()->set_arguments(0, "/nope/bench");

  const v1::WorkerResult result = Run(request);

  EXPECT_EQ(result.outcome(), v1::OUTCOME_NOT_APPLICABLE);
  EXPECT_EQ(result.reason_code(), "program_missing");
}

TEST_F(RunCommandTest, NothingOutlivesTheProgramInWhateverSession) {
  const v1::WorkerResult result = Run(Request("setsid sleep 600 & echo $! > left; echo ops: 1"));

  ASSERT_EQ(result.outcome(), v1::OUTCOME_OK) << result.reason_text();
  EXPECT_EQ(Counter(result, "processes_left"), 1);
  const int pid = std::atoi(testing::ReadFile(folder_ + "/left").c_str());
  ASSERT_GT(pid, 1);
  EXPECT_EQ(::kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

TEST_F(RunCommandTest, TheProgramDiesWithItsWorker) {
  const std::unique_ptr<Process> worker =
      Start(Request("echo $$ > pid.tmp; mv pid.tmp pid; exec sleep 600"));
  while (!PosixEnv().Exists(folder_ + "/pid")) {
  }
  const int pid = std::atoi(testing::ReadFile(folder_ + "/pid").c_str());
  ASSERT_GT(pid, 1);

  // The worker alone, as the kernel's memory killer does, not its group.
  ASSERT_EQ(::kill(worker->pid(), SIGKILL), 0);
  ASSERT_TRUE(worker->Wait(Seconds(60))->has_value());

  // It may lie about as a zombie until init has reaped it; one has no command line.
  while (::kill(pid, 0) == 0 && !testing::ReadFile(fmt::format("/proc/{}/cmdline", pid)).empty()) {
  }
}

TEST_F(RunCommandTest, WithoutAResolvedCommandNothingIsRun) {
  v1::WorkerRequest request = Request("");
  request.clear_command();

  EXPECT_EQ(Run(request).reason_code(), "not_supported");
}

}  // namespace
}  // namespace pipeyard::worker
