#include "base/shell.h"

#include <gtest/gtest.h>

namespace pipeyard {
namespace {

TEST(ShellQuoted, LeavesPlainWordsAndQuotesTheRest) {
  EXPECT_EQ(ShellQuoted("--set"), "--set");
  EXPECT_EQ(ShellQuoted("a=0,1:2/3"), "a=0,1:2/3");
  EXPECT_EQ(ShellQuoted(""), "''");
  EXPECT_EQ(ShellQuoted("a b"), "'a b'");
  EXPECT_EQ(ShellQuoted("$(reboot)"), "'$(reboot)'");
  EXPECT_EQ(ShellQuoted("it's"), "'it'\\''s'");
  EXPECT_EQ(ShellQuoted("two\nlines"), "'two\nlines'");
  EXPECT_EQ(ShellQuoted("~"), "'~'");
}

}  // namespace
}  // namespace pipeyard
