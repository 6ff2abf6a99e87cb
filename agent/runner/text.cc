#include "agent/runner/text.h"

#include <cstdint>

namespace pipeyard::runner {
namespace {

bool IsContinuation(char c) { return (static_cast<uint8_t>(c) & 0xc0) == 0x80; }

// Length of the well-formed UTF-8 sequence at the start of `text`, 0 where there is none (RFC
// 3629).
size_t SequenceLength(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if (!IsContinuation(text[i])) return 0;
  }
  const bool is_overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool is_surrogate = first == 0xed && byte(1) >= 0xa0;
  const bool is_too_large = first == 0xf4 && byte(1) >= 0x90;
  return is_overlong || is_surrogate || is_too_large ? 0 : length;
}

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

std::string Clean(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t length = SequenceLength(text);
    const char c = text[0];
    if (c == '\n') {
      out += " | ";
    } else if (c == '\t') {
      out += ' ';
    } else if (length == 0 || (length == 1 && (static_cast<uint8_t>(c) < 0x20 || c == 0x7f))) {
      out += '?';
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

}  // namespace

std::string Printable(std::string_view text, size_t max_bytes) {
  std::string out = Clean(Trim(text.substr(0, max_bytes)));
  if (out.size() <= max_bytes) return out;
  size_t end = max_bytes;
  while (end > 0 && IsContinuation(out[end])) --end;
  out.resize(end);
  return out;
}

std::string PrintableTail(std::string_view text, size_t max_bytes) {
  text = Trim(text);
  if (text.size() > max_bytes) text.remove_prefix(text.size() - max_bytes);
  while (!text.empty() && IsContinuation(text[0])) text.remove_prefix(1);
  const std::string out = Clean(text);
  size_t begin = out.size() > max_bytes ? out.size() - max_bytes : 0;
  while (begin < out.size() && IsContinuation(out[begin])) ++begin;
  return out.substr(begin);
}

}  // namespace pipeyard::runner
