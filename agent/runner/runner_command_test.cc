// Workload `command` in the runner: what the worker is asked to run, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/runner/assign_check.h"
#include "agent/runner/judge.h"
#include "agent/runner/reasons.h"
#include "agent/runner/worker_runner_fixture.h"
#include "pipeyard/v1/worker.pb.h"

namespace pipeyard::runner {
namespace {

using testing::HasSubstr;

class RunnerCommandTest : public WorkerRunnerTest {
 protected:
  void Allow(const std::string& name, const std::string& text) {
    ASSERT_TRUE(PosixEnv().CreateDirs(folder_ + "/commands.d").ok());
    ASSERT_TRUE(PosixEnv()
                    .WriteFileAtomic(folder_ + "/commands.d/" + name + ".yaml", name + ": " + text)
                    .ok());
    commands_ = commands::CommandFolder::Read(PosixEnv(), folder_ + "/commands.d");
    options_.commands = &commands_;
    Restart();
  }
  v1::AttemptEnd EndOfCommand(std::map<std::string, settings::Value> given) {
    v1::Assign assign = Assign(TestWorkerAct::kVoid);
    *assign.mutable_variant() =
        settings::ToProto(settings::MakeVariant("command", "command", given).value());
    runner_->Run(assign);
    return heard_.NextEnded().frames.back().end();
  }

  commands::CommandFolder commands_;
};

TEST_F(RunnerCommandTest, TheWorkerGetsTheResolvedCommand) {
  Allow("bench",
        "{ argv: [/bin/sh, '{n}'], parameters: { n: { type: int } }, read: { n: { regex: "
        "'(.*)', unit: count } } }");

  EXPECT_EQ(
      EndOfCommand({{"command", std::string("bench")}, {"n", std::string("7")}}).reason_code(),
      "test");

  v1::WorkerRequest request;
  ASSERT_TRUE(request.ParseFromString(*PosixEnv().ReadFile(Paths().Request())));
  EXPECT_EQ(request.command().arguments(0), "/bin/sh");
  EXPECT_EQ(request.command().arguments(1), "7");
  EXPECT_EQ(request.command().program_sha256().size(), 64u);
  EXPECT_EQ(request.command().folder(), Paths().Work());
}

TEST_F(RunnerCommandTest, WhatIsNotAllowedOrNotThereIsNotApplicable) {
  Allow("gone", "{ argv: [/nope/gone], read: { n: { regex: '(.*)', unit: count } } }");

  const v1::AttemptEnd unknown = EndOfCommand({{"command", std::string("other")}});
  const v1::AttemptEnd missing = EndOfCommand({{"command", std::string("gone")}});

  EXPECT_EQ(unknown.outcome(), v1::OUTCOME_NOT_APPLICABLE);
  EXPECT_EQ(unknown.reason_code(), kCommandNotAllowed);
  EXPECT_EQ(missing.outcome(), v1::OUTCOME_NOT_APPLICABLE);
  EXPECT_EQ(missing.reason_code(), kProgramMissing);
  EXPECT_THAT(missing.reason_text(), HasSubstr("/nope/gone is not there"));
  EXPECT_EQ(heard_.num_started(), 0u);
}

TEST_F(RunnerCommandTest, AssignmentsAreCheckedAgainstTheFolder) {
  Allow("bench",
        "{ argv: [/bin/sh, '{n}'], parameters: { n: { type: int, max: 9 } }, read: { n: { "
        "regex: '(.*)', unit: count } } }");
  Allow("silent", "{ argv: [/bin/true] }");
  const struct {
    std::map<std::string, settings::Value> given;
    const char* message;
  } cases[] = {
      {{{"command", std::string("bench")}, {"n", std::string("9")}}, ""},
      {{{"command", std::string("bench")}, {"n", std::string("10")}},
       "command bench: n: 10 is out of range; 0 to 9 was meant"},
      {{{"command", std::string("bench")}}, "command bench: its parameter n has no default"},
      {{{"command", std::string("nope")}}, "command nope is not allowed here; a file "},
      {{{"command", std::string("silent")}}, "command silent has no read rules"},
  };
  for (const auto& c : cases) {
    v1::Assign assign = TestAssign(1);
    *assign.mutable_variant() =
        settings::ToProto(settings::MakeVariant("command", "command", c.given).value());
    EXPECT_THAT(CheckAssign(assign, &commands_).message(), testing::StartsWith(c.message));
    EXPECT_FALSE(CheckAssign(assign, nullptr).ok()) << "without a folder nothing is allowed";
  }
}

}  // namespace
}  // namespace pipeyard::runner
