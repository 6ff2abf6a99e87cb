#include "base/utf8.h"

#include <algorithm>
#include <cstdint>

namespace pipeyard {
namespace {

uint8_t ByteAt(std::string_view text, size_t at) { return static_cast<uint8_t>(text[at]); }

}  // namespace

size_t CharacterLength(std::string_view text) {
  if (text.empty()) return 0;
  const uint8_t lead = ByteAt(text, 0);
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (text.size() < length) return 0;
  if (!std::all_of(text.begin() + 1, text.begin() + static_cast<ptrdiff_t>(length),
                   IsContinuation)) {
    return 0;
  }
  // Where the table narrows the second byte.
  const uint8_t second = ByteAt(text, 1);
  const bool is_overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool is_surrogate = lead == 0xED && second > 0x9F;
  const bool is_too_large = lead == 0xF4 && second > 0x8F;
  return is_overlong || is_surrogate || is_too_large ? 0 : length;
}

Character TakeCharacter(std::string_view& text) {
  const size_t length = CharacterLength(text);
  const Character character{text.substr(0, length == 0 ? 1 : length), length != 0};
  text.remove_prefix(character.bytes.size());
  return character;
}

size_t FirstInvalidUtf8(std::string_view text) {
  size_t at = 0;
  while (const size_t length = CharacterLength(text.substr(at))) at += length;
  return at;
}

char32_t CodePoint(std::string_view character) {
  const uint8_t lead = ByteAt(character, 0);
  if (character.size() == 1) return lead;
  // A lead byte of n bytes ends in 7 - n bits of the number.
  char32_t number = lead & (0x7Fu >> character.size());
  for (const char c : character.substr(1)) number = number << 6 | (static_cast<uint8_t>(c) & 0x3Fu);
  return number;
}

bool IsControl(std::string_view character) {
  const char32_t number = CodePoint(character);
  return number < 0x20 || (number >= 0x7F && number < 0xA0);
}

bool HoldsControl(std::string_view text) {
  while (!text.empty()) {
    const auto [character, is_valid] = TakeCharacter(text);
    if (is_valid && IsControl(character)) return true;
  }
  return false;
}

std::string_view FirstBytes(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  size_t end = max_bytes;
  while (end > 0 && IsContinuation(text[end])) --end;
  return text.substr(0, end);
}

}  // namespace pipeyard
