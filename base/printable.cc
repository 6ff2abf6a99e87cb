#include "base/printable.h"

#include <fmt/format.h>

#include <cstdint>
#include <iterator>

namespace pipeyard {
namespace {

uint8_t ByteAt(std::string_view text, size_t at) { return static_cast<uint8_t>(text[at]); }

// Bytes of the UTF-8 character at the start of `text`; 0 where none is there.
size_t CharacterLength(std::string_view text) {
  const uint8_t first = ByteAt(text, 0);
  const size_t length = first < 0x80                    ? 1
                        : first >= 0xC2 && first < 0xE0 ? 2
                        : first >= 0xE0 && first < 0xF0 ? 3
                        : first >= 0xF0 && first < 0xF5 ? 4
                                                        : 0;
  if (length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((ByteAt(text, i) & 0xC0) != 0x80) return 0;
  }
  return length;
}

// U+0000..1F, U+7F and, in two bytes, U+80..9F, which terminals obey as well.
bool IsControl(std::string_view character) {
  const uint8_t first = ByteAt(character, 0);
  return first < 0x20 || first == 0x7F || (first == 0xC2 && ByteAt(character, 1) < 0xA0);
}

}  // namespace

std::string EscapeControls(std::string_view text) {
  std::string escaped;
  while (!text.empty()) {
    const size_t length = CharacterLength(text);
    const std::string_view character = text.substr(0, length == 0 ? 1 : length);
    text.remove_prefix(character.size());
    if (length != 0 && !IsControl(character)) {
      escaped += character;
    } else if (character == "\n") {
      escaped += "\\n";
    } else if (character == "\r") {
      escaped += "\\r";
    } else if (character == "\t") {
      escaped += "\\t";
    } else {
      for (const char c : character) {
        fmt::format_to(std::back_inserter(escaped), "\\x{:02x}", static_cast<uint8_t>(c));
      }
    }
  }
  return escaped;
}

}  // namespace pipeyard
