#include "controller/cli/console.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/signals.h"
#include "controller/cli/demo.h"
#include "controller/cli/exit_code.h"

namespace pipeyard::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

class ConsoleTest : public ::testing::Test {
 protected:
  SignalWatcher signals_;
  Console console_{.controller_address = "", .env = PosixEnv(), .signals = signals_};
};

TEST_F(ConsoleTest, EscapesThatAnArgumentHoldsDoNotReachTheTerminal) {
  CaptureStderr();
  const int exit_status = console_.Fail(NotFound("no run '\x1b[31mx\n\x9b'"));
  console_.SayLine("a\x1b.yaml:3: b\r");
  const std::string said = GetCapturedStderr();

  EXPECT_EQ(exit_status, kNoSuchThing);
  EXPECT_EQ(said, "pipeyard: no run '\\x1b[31mx\\n\\x9b'\na\\x1b.yaml:3: b\\r\n");
}

TEST_F(ConsoleTest, StateFolderThatADemoCannotHaveIsAWrongCommand) {
  for (const char* folder : {"/proc/x", "/dev/null", "/proc"}) {
    CaptureStderr();
    const int exit_status = RunDemo(console_, {.quick = true, .hosts = 1, .state_dir = folder});
    const std::string said = GetCapturedStderr();

    EXPECT_EQ(exit_status, kUsage) << folder;
    EXPECT_THAT(said, HasSubstr("name a folder that can be written with --state"));
    EXPECT_THAT(said, Not(HasSubstr("everything is kept")));
  }
}

}  // namespace
}  // namespace pipeyard::cli
