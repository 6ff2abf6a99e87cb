#include "base/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/env.h"

namespace pipeyard {
namespace {

class ProcessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/pipeyard-process.XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override { EXPECT_TRUE(PosixEnv().RemoveTree(folder_).ok()); }

  Result<std::unique_ptr<Process>> Shell(const std::string& script) {
    SpawnOptions options;
    options.argv = {"/bin/sh", "-c", script};
    options.environment = {"PATH=/usr/bin:/bin", "WORD=from-the-parent"};
    options.stdout_path = folder_ + "/out";
    options.stderr_path = folder_ + "/err";
    return Process::Spawn(options);
  }
  std::string Output(const char* name) { return PosixEnv().ReadFile(folder_ + "/" + name).value(); }

  std::string folder_;
};

TEST_F(ProcessTest, OutputAndExitStatusAreHandedBack) {
  auto process = Shell("echo out $WORD; echo err >&2; exit 3");
  ASSERT_TRUE(process.ok());

  const auto status = (*process)->Wait(Seconds(60));

  ASSERT_TRUE(status.ok() && status->has_value());
  EXPECT_EQ((*status)->exit_code, 3);
  EXPECT_EQ((*status)->ToString(), "exit status 3");
  EXPECT_EQ(Output("out"), "out from-the-parent\n");
  EXPECT_EQ(Output("err"), "err\n");
}

TEST_F(ProcessTest, ChildHoldsTheDescriptorItInherits) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  SpawnOptions options;
  options.argv = {"/bin/sh", "-c", "echo word >&3"};
  options.inherited_fd = ends[1];
  auto process = Process::Spawn(options);
  ASSERT_TRUE(process.ok());

  ASSERT_TRUE((*process)->Wait(Seconds(60)).ok());

  char word[5] = {};
  EXPECT_EQ(::read(ends[0], word, sizeof word), 5);
  EXPECT_EQ(std::string(word, 5), "word\n");
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(ProcessTest, SignalThatEndedItIsTold) {
  auto process = Shell("kill -TERM $$");
  const auto status = (*process)->Wait(Seconds(60));

  EXPECT_EQ((*status)->signal, SIGTERM);
  EXPECT_EQ((*status)->ToString(), "killed by SIGTERM");
  EXPECT_FALSE((*status)->ok());
}

TEST_F(ProcessTest, WaitThatRunsOutSaysNothingYet) {
  auto process = Shell("sleep 600");

  const auto status = (*process)->Wait(Milliseconds(1));

  ASSERT_TRUE(status.ok());
  EXPECT_FALSE(status->has_value());
}

TEST_F(ProcessTest, KillReachesTheGrandchild) {
  auto process = Shell("sleep 600 & echo $!; wait");
  pid_t grandchild = 0;
  while (grandchild == 0) grandchild = ::atoi(Output("out").c_str());

  ASSERT_TRUE((*process)->Kill(SIGKILL).ok());
  ASSERT_TRUE((*process)->Wait(Seconds(60))->has_value());

  // SIGKILL acts in its own time, and an orphan stays a zombie until init reaps it; the test's
  // timeout is the limit.
  const std::string stat_path = "/proc/" + std::to_string(grandchild) + "/stat";
  for (;;) {
    const Result<std::string> stat = PosixEnv().ReadFile(stat_path);
    if (!stat.ok() || stat->find(") Z") != std::string::npos) break;
    if (stat->find(") X") != std::string::npos) break;
  }
}

TEST_F(ProcessTest, DestroyedProcessIsKilledAndReaped) {
  pid_t pid = 0;
  {
    auto process = Shell("sleep 600");
    pid = (*process)->pid();
  }
  EXPECT_EQ(::kill(pid, 0), -1);
}

TEST_F(ProcessTest, AbsentProgramIsNamed) {
  SpawnOptions options;
  options.argv = {folder_ + "/absent"};
  const Status status = Process::Spawn(options).status();

  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_NE(status.message().find("absent"), std::string::npos);
}

TEST_F(ProcessTest, FilesOfTheParentAreClosedInTheChild) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);  // no O_CLOEXEC by intent
  auto process = Shell("ls /proc/self/fd | wc -l");
  ASSERT_TRUE((*process)->Wait(Seconds(60))->has_value());
  ::close(ends[0]);
  ::close(ends[1]);

  // 0, 1, 2 and the one that ls reads the folder with.
  EXPECT_EQ(::atoi(Output("out").c_str()), 4);
}

TEST_F(ProcessTest, LeftoverGroupIsKilledOnlyWithItsOwnStartTime) {
  auto process = Shell("sleep 600");
  const pid_t pid = (*process)->pid();
  const uint64_t ticks = ProcessStartTicks(pid).value();

  ASSERT_TRUE(KillLeftoverGroup(pid, ticks + 1).ok());
  EXPECT_FALSE((*process)->Wait(Nanos(0))->has_value());
  ASSERT_TRUE(KillLeftoverGroup(pid, ticks).ok());
  EXPECT_EQ((*(*process)->Wait(Seconds(60)))->signal, SIGKILL);
}

}  // namespace
}  // namespace pipeyard
