// Characters of UTF-8, strictly those of Unicode 15, table 3-7: no overlong forms, no surrogates,
// nothing above U+10FFFF.
//
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <string_view>

namespace pipeyard {

// Bytes of the character at the start of `text`, 1 to 4; 0 where none is there or `text` is empty.
size_t CharacterLength(std::string_view text);

// Offset of the first byte that is no part of a character; text.size() where all are.
size_t FirstInvalidUtf8(std::string_view text);

// What stands at the start of a text: a character, or one byte that is part of none.
struct Character {
  std::string_view bytes;
  bool is_valid = false;
};
// Takes it off `text`, which is not empty.
Character TakeCharacter(std::string_view& text);

// The number of a character that CharacterLength() measured.
char32_t CodePoint(std::string_view character);

// U+0000..1F, U+7F and U+80..9F, which terminals obey as well.
bool IsControl(std::string_view character);
// Of any text. Bytes that are no UTF-8 are no control characters.
bool HoldsControl(std::string_view text);

// Whether `byte` is one that no character begins with but that may stand within one.
inline bool IsContinuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// At most `max_bytes` from the beginning of `text`, no character cut in two.
std::string_view FirstBytes(std::string_view text, size_t max_bytes);

}  // namespace pipeyard
