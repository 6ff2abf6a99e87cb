#include "base/printable.h"

#include <fmt/format.h>

#include <cstdint>
#include <iterator>

#include "base/utf8.h"

namespace pipeyard {

std::string EscapeControls(std::string_view text) {
  std::string escaped;
  while (!text.empty()) {
    const auto [character, is_valid] = TakeCharacter(text);
    if (is_valid && !IsControl(character)) {
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
