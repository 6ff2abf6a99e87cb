#include "base/printable.h"

#include <gtest/gtest.h>

namespace pipeyard {
namespace {

TEST(EscapeControls, NothingThatATerminalObeysIsLeft) {
  const struct {
    std::string text;
    std::string escaped;
  } kCases[] = {
      {"", ""},
      {"no run 'abc~0'", "no run 'abc~0'"},
      {"Größe 3 µs \xE2\x82\xAC \xF0\x9F\x90\x8C", "Größe 3 µs \xE2\x82\xAC \xF0\x9F\x90\x8C"},
      {"\x1b[31mred", "\\x1b[31mred"},
      {"two\nlines\r\tend", "two\\nlines\\r\\tend"},
      {std::string("\0\x07\x7f", 3), "\\x00\\x07\\x7f"},
      {"\xC2\x9B"
       "31m\xC2\xA0",
       "\\xc2\\x9b31m\xC2\xA0"},                     // CSI in one character
      {"\x9B\xFF\xE2\x82", "\\x9b\\xff\\xe2\\x82"},  // no UTF-8
      {"\xC0\x9B", "\\xc0\\x9b"},                    // ESC, overlong
      {"\xE0\x80\x9B", "\\xe0\\x80\\x9b"},
      {"\xF0\x80\x80\x9B", "\\xf0\\x80\\x80\\x9b"},
      {"\xED\xA0\x80", "\\xed\\xa0\\x80"},           // surrogate
      {"\xF4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},  // above U+10FFFF
  };
  for (const auto& c : kCases) EXPECT_EQ(EscapeControls(c.text), c.escaped) << c.escaped;
}

}  // namespace
}  // namespace pipeyard
