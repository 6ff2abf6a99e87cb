#include "base/utf8.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace pipeyard {
namespace {

TEST(Utf8, FindsTheFirstByteThatIsNot) {
  const std::vector<std::pair<std::string, size_t>> cases = {
      {"", 0},
      {"ascii", 5},
      {"\xc3\xbc", 2},
      {"\xe2\x82\xac", 3},
      {"\xed\x9f\xbf\xee\x80\x80", 6},          // on both sides of the surrogates
      {"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", 8},  // the first and last in four bytes
      {"a\xff", 1},
      {"\xc0\x80", 0},          // overlong NUL
      {"\xc1\xbf", 0},          // overlong
      {"\xe0\x80\x9b", 0},      // overlong
      {"\xe0\x9f\xbf", 0},      // overlong
      {"\xf0\x80\x80\x9b", 0},  // overlong
      {"\xf0\x8f\xbf\xbf", 0},  // overlong
      {"\xed\xa0\x80", 0},      // surrogate
      {"\xf4\x90\x80\x80", 0},  // above U+10FFFF
      {"\xf5\x80\x80\x80", 0},
      {"\xe2\x82", 0},  // cut off
      {"\xe2\x82z", 0},
      {"ab\x80", 2},
  };
  for (const auto& [text, at] : cases) EXPECT_EQ(FirstInvalidUtf8(text), at) << text;
}

TEST(Utf8, CharactersHaveTheirNumbers) {
  EXPECT_EQ(CodePoint("a"), U'a');
  EXPECT_EQ(CodePoint("\xc3\xbc"), 0xFCu);
  EXPECT_EQ(CodePoint("\xe2\x82\xac"), 0x20ACu);
  EXPECT_EQ(CodePoint("\xf4\x8f\xbf\xbf"), 0x10FFFFu);
}

TEST(Utf8, ControlCharactersOfUnicodeAreSome) {
  for (const std::string text : {"a\x1f", "\x7f", "a\xc2\x80", "\xc2\x9b", "\xc2\x9fz", "\xff\n"}) {
    EXPECT_TRUE(HoldsControl(text)) << text;
  }
  // The bytes 80..9F within or without a character are no control characters.
  for (const std::string text : {"", " ~", "\xc2\xa0", "\xc3\x9f", "\xe2\x9b\x84", "\x9b"}) {
    EXPECT_FALSE(HoldsControl(text)) << text;
  }
}

TEST(Utf8, ACutLeavesNoHalfCharacter) {
  EXPECT_EQ(FirstBytes("abc", 2), "ab");
  EXPECT_EQ(FirstBytes("abc", 3), "abc");
  EXPECT_EQ(FirstBytes("a\xe2\x82\xac", 3), "a");
  EXPECT_EQ(FirstBytes("a\xe2\x82\xac", 4), "a\xe2\x82\xac");
  EXPECT_EQ(FirstBytes("\x80\x80", 1), "");
}

}  // namespace
}  // namespace pipeyard
