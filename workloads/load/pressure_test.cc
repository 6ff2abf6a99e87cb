// With programs in the place of stress-ng that do what a test needs; the real one runs in the end
// to end tests.
#include "workloads/load/pressure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

namespace pipeyard::load {
namespace {

using testing::HasSubstr;

class PressureTest : public testing::Test {
 protected:
  PressureTest() : folder_(testing::TempDir() + "/pressure." + std::to_string(::getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~PressureTest() override { std::filesystem::remove_all(folder_); }

  // The program writes down who it is and with what it was called, then does `script`.
  void Install(const std::string& script) {
    const std::string path = folder_ + "/stress-ng";
    std::ofstream(path) << "#!/bin/sh\necho $$ > " << folder_ << "/pid\necho \"$*\" > " << folder_
                        << "/arguments\n"
                        << script << "\n";
    ::chmod(path.c_str(), 0755);
  }
  Judgement Start(std::string_view preset) {
    // The folder before those of the shell's own programs.
    return Pressure::Start(preset, folder_ + ":/usr/bin:/bin", {}, pressure_, result_);
  }
  std::string Read(const std::string& name) {
    std::string line;
    std::ifstream file(folder_ + "/" + name);
    std::getline(file, line);
    return line;
  }
  bool IsRunning() { return ::kill(std::stoi(Read("pid")), 0) == 0 || errno != ESRCH; }

  const std::string folder_;
  std::unique_ptr<Pressure> pressure_;
  v1::WorkerResult result_;
};

TEST_F(PressureTest, NoneStartsNothing) {
  EXPECT_TRUE(Start("none").ok());
  EXPECT_EQ(pressure_, nullptr);
}

TEST_F(PressureTest, AMissingProgramIsNotApplicableAndNamesThePackage) {
  const Judgement judged = Pressure::Start("stress-vm-50", folder_, {}, pressure_, result_);

  EXPECT_EQ(judged.outcome, v1::OUTCOME_NOT_APPLICABLE);
  EXPECT_EQ(judged.reason_code, "program_missing");
  EXPECT_THAT(judged.reason_text, HasSubstr("install the package stress-ng"));
}

TEST_F(PressureTest, EachPresetHasTheArgumentsOfItsSource) {
  Install("exec sleep 100");
  ASSERT_TRUE(Start("stress-vm-50").ok());
  EXPECT_EQ(Read("arguments"), "--vm 2 --vm-bytes 50% --vm-keep");
  pressure_.reset();
  ASSERT_TRUE(Start("stress-vm-80").ok());
  EXPECT_EQ(Read("arguments"), "--vm 4 --vm-bytes 80% --vm-method all");
  ASSERT_EQ(result_.resolved_size(), 2);
  EXPECT_EQ(result_.resolved(1).as_written(), "stress-vm-80");
  EXPECT_THAT(result_.resolved(1).resolved(), HasSubstr("/stress-ng --vm 4"));
}

TEST_F(PressureTest, EndsWithItsOwner) {
  Install("exec sleep 100");
  ASSERT_TRUE(Start("stress-vm-50").ok());
  EXPECT_TRUE(IsRunning());

  EXPECT_TRUE(pressure_->Stop().ok());

  EXPECT_FALSE(IsRunning());
}

TEST_F(PressureTest, OneThatIgnoresToBeAskedIsKilled) {
  Install("trap '' TERM; while :; do sleep 0.1; done");
  ASSERT_TRUE(Start("stress-vm-50").ok());

  pressure_.reset();

  EXPECT_FALSE(IsRunning());
}

TEST_F(PressureTest, OneThatEndsAtOnceIsVoid) {
  Install("exit 3");
  const Judgement judged = Start("stress-vm-50");

  EXPECT_EQ(judged.outcome, v1::OUTCOME_VOID);
  EXPECT_EQ(judged.reason_code, "pressure_ended");
  EXPECT_THAT(judged.reason_text, HasSubstr("exit status 3"));
}

TEST_F(PressureTest, OneThatEndsMeanwhileIsVoid) {
  Install("exec sleep 100");
  ASSERT_TRUE(Start("stress-vm-50").ok());
  ASSERT_EQ(::kill(std::stoi(Read("pid")), SIGKILL), 0);
  siginfo_t ended = {};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(std::stoi(Read("pid"))), &ended, WEXITED | WNOWAIT),
            0);

  const Judgement judged = pressure_->Stop();

  EXPECT_EQ(judged.reason_code, "pressure_ended");
  EXPECT_THAT(judged.reason_text, HasSubstr("SIGKILL"));
}

}  // namespace
}  // namespace pipeyard::load
