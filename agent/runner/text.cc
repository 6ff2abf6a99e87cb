#include "agent/runner/text.h"

#include "base/utf8.h"

namespace pipeyard::runner {
namespace {

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

std::string Clean(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto [character, is_valid] = TakeCharacter(text);
    if (character == "\n") {
      out += " | ";
    } else if (character == "\t") {
      out += ' ';
    } else if (!is_valid || IsControl(character)) {
      out += '?';
    } else {
      out += character;
    }
  }
  return out;
}

}  // namespace

std::string Printable(std::string_view text, size_t max_bytes) {
  const std::string out = Clean(Trim(text.substr(0, max_bytes)));
  return std::string(FirstBytes(out, max_bytes));
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
