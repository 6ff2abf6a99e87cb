#include "controller/cli/console.h"

#include <gtest/gtest.h>

#include "base/signals.h"
#include "controller/cli/exit_code.h"

namespace pipeyard::cli {
namespace {

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

}  // namespace
}  // namespace pipeyard::cli
