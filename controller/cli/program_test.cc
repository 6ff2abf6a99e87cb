#include "controller/cli/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/env.h"
#include "controller/cli/exit_code.h"

namespace pipeyard::cli {
namespace {

using ::testing::HasSubstr;

TEST(Program, EveryCommandIsInTheDocumentation) {
  const std::string doc = PosixEnv().ReadFile(PIPEYARD_SOURCE_DIR "/docs/CLI.md").value();
  for (const options::Command& command : MakeProgram().commands) {
    EXPECT_THAT(doc, HasSubstr("pipeyard " + command.path)) << "docs/CLI.md";
    for (const options::Option& option : command.options) {
      if (option.name == "output") continue;
      EXPECT_THAT(doc, HasSubstr("--" + option.name)) << "docs/CLI.md, " << command.path;
    }
  }
}

TEST(ExitCode, CodesOfFailuresFollowTheContract) {
  EXPECT_EQ(ExitCodeFor(Status::Ok()), 0);
  EXPECT_EQ(ExitCodeFor(InvalidArgument("x")), 2);
  EXPECT_EQ(ExitCodeFor(FailedPrecondition("x")), 2);
  EXPECT_EQ(ExitCodeFor(Unavailable("x")), 4);
  EXPECT_EQ(ExitCodeFor(DeadlineExceeded("x")), 4);
  EXPECT_EQ(ExitCodeFor(Internal("x")), 4);
  EXPECT_EQ(ExitCodeFor(NotFound("x")), 5);
  EXPECT_EQ(ExitCodeFor(Cancelled("x")), 130);
}

}  // namespace
}  // namespace pipeyard::cli
