#include "proto/settings/text.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace pipeyard::settings {
namespace {

constexpr size_t kMaxCompared = 64;

bool IsContinuation(std::string_view text, size_t at) {
  return at < text.size() && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80;
}

// Bytes of the sequence at `at`; 0 where it is invalid. Bounds of the second byte: Unicode 15,
// table 3-7.
size_t SequenceLength(std::string_view text, size_t at) {
  const auto lead = static_cast<uint8_t>(text[at]);
  if (lead < 0x80) return 1;
  const uint8_t second = at + 1 < text.size() ? static_cast<uint8_t>(text[at + 1]) : 0;
  if (lead >= 0xC2 && lead <= 0xDF) return IsContinuation(text, at + 1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const uint8_t low = lead == 0xE0 ? 0xA0 : 0x80;
    const uint8_t high = lead == 0xED ? 0x9F : 0xBF;
    return second >= low && second <= high && IsContinuation(text, at + 2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const uint8_t low = lead == 0xF0 ? 0x90 : 0x80;
    const uint8_t high = lead == 0xF4 ? 0x8F : 0xBF;
    const bool is_valid = second >= low && second <= high && IsContinuation(text, at + 2) &&
                          IsContinuation(text, at + 3);
    return is_valid ? 4 : 0;
  }
  return 0;
}

}  // namespace

size_t FirstInvalidUtf8(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const size_t length = SequenceLength(text, at);
    if (length == 0) return at;
    at += length;
  }
  return at;
}

size_t EditDistance(std::string_view a, std::string_view b, size_t limit) {
  if (a.size() > kMaxCompared || b.size() > kMaxCompared) return limit;
  const size_t difference = a.size() > b.size() ? a.size() - b.size() : b.size() - a.size();
  if (difference >= limit) return limit;
  using Row = std::array<size_t, kMaxCompared + 1>;
  Row before_last{};
  Row last{};
  Row current{};
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({last[j] + 1, current[j - 1] + 1, substituted});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        current[j] = std::min(current[j], before_last[j - 2] + 1);
      }
    }
    before_last = last;
    last = current;
  }
  return std::min(last[b.size()], limit);
}

}  // namespace pipeyard::settings
