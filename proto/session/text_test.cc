#include "proto/session/text.h"

#include <gtest/gtest.h>

#include <string>

#include "proto/session/messages.h"
#include "proto/session/session_testing.h"

namespace pipeyard::session {
namespace {

TEST(Text, WellFormedUtf8IsTakenAsItIs) {
  for (const char* text : {"", "plain", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
                           "\xed\x9f\xbf", "\xee\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(IsUtf8(text)) << text;
    EXPECT_EQ(CleanText(text, 100), text);
  }
}

TEST(Text, MalformedBytesBecomeQuestionMarks) {
  const struct {
    const char* text;
    const char* clean;
  } cases[] = {
      {"a\x80z", "a?z"},             // a lone continuation
      {"a\xc3z", "a?z"},             // cut short
      {"a\xc3", "a?"},               // cut short at the end
      {"\xc0\xaf", "??"},            // overlong
      {"\xe0\x80\xaf", "???"},       // overlong
      {"\xf0\x80\x80\xaf", "????"},  // overlong
      {"\xed\xa0\x80", "???"},       // surrogate
      {"\xf4\x90\x80\x80", "????"},  // past U+10FFFF
      {"\xff\xfe", "??"},
  };
  for (const auto& [text, clean] : cases) {
    EXPECT_FALSE(IsUtf8(text)) << clean;
    EXPECT_EQ(CleanText(text, 100), clean);
  }
}

TEST(Text, IsCutAtTheEndOfACharacter) {
  EXPECT_EQ(CleanText("ab\xe2\x82\xac", 5), "ab\xe2\x82\xac");
  EXPECT_EQ(CleanText("ab\xe2\x82\xac", 4), "ab");
  EXPECT_EQ(CleanText("ab", 0), "");
}

TEST(Text, AFieldThatIsNotUtf8IsFoundAtAnyDepth) {
  EXPECT_EQ(FindFieldThatIsNotUtf8(TestFrame(1, 1, true)), "");
  EXPECT_EQ(FindFieldThatIsNotUtf8(TestHello()), "");

  v1::Frame nested = TestFrame(1, 1, true);
  nested.mutable_end()->set_reason_text("\xff");
  v1::Hello in_list = TestHello();
  in_list.add_capabilities("\xff");

  EXPECT_EQ(FindFieldThatIsNotUtf8(nested), "pipeyard.v1.AttemptEnd.reason_text");
  EXPECT_EQ(FindFieldThatIsNotUtf8(in_list), "pipeyard.v1.Hello.capabilities");
}

TEST(Text, BytesOfAnOutputNeedNotBeUtf8) {
  v1::Frame frame = TestFrame(1, 1, false);
  frame.mutable_outputs(0)->set_data("\xff\xfe");

  EXPECT_EQ(ValidateFrame(frame), Status::Ok());
}

TEST(Text, AFrameThatTheReceiverCouldNotParseIsNotValid) {
  v1::Frame frame = TestFrame(1, 1, true);
  frame.mutable_resolved(0)->set_resolved("\xff");

  EXPECT_EQ(ValidateFrame(frame), InvalidArgument("pipeyard.v1.ResolvedValue.resolved: not UTF-8"));
}

}  // namespace
}  // namespace pipeyard::session
