#include "agent/runner/text.h"

#include <gtest/gtest.h>

namespace pipeyard::runner {
namespace {

TEST(Printable, MakesOneLineOfManyAndDropsWhatDisplaysBadly) {
  EXPECT_EQ(Printable("first\nsecond\n", 100), "first | second");
  EXPECT_EQ(Printable("a\x1b[31mred\x7f", 100), "a?[31mred?");
  EXPECT_EQ(Printable("tab\there", 100), "tab here");
  EXPECT_EQ(Printable("  \n", 100), "");
}

TEST(Printable, KeepsUtf8AndReplacesWhatIsNone) {
  struct Case {
    const char* text;
    const char* printable;
  };
  for (const Case& c :
       {Case{"caf\xc3\xa9", "caf\xc3\xa9"}, Case{"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
        Case{"\xff\xfe", "??"}, Case{"\xc3", "?"}, Case{"\xc0\xaf", "??"},
        Case{"\xed\xa0\x80", "???"}, Case{"\xf5\x80\x80\x80", "????"}, Case{"\xe0\x80\x80", "???"},
        Case{"a\xc2\x9b\x32J", "a?2J"}, Case{"\xf4\x90\x80\x80", "????"}}) {
    EXPECT_EQ(Printable(c.text, 100), c.printable);
  }
}

TEST(Printable, LimitsWithoutCuttingACharacter) {
  EXPECT_EQ(Printable("abcdef", 3), "abc");
  EXPECT_EQ(Printable("ab\n\n\n\n", 100), "ab");
  // Each line end takes three bytes; the limit holds for what comes out.
  EXPECT_LE(Printable("a\nb\nc\nd\ne\nf\ng", 10).size(), 10u);
}

TEST(PrintableTail, TakesTheEnd) {
  EXPECT_EQ(PrintableTail("abcdef\n", 3), "def");
  EXPECT_EQ(PrintableTail("x\xc3\xa9z", 2), "z");
  EXPECT_EQ(PrintableTail("", 10), "");
}

}  // namespace
}  // namespace pipeyard::runner
