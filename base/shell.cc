#include "base/shell.h"

#include <algorithm>

namespace pipeyard {

std::string ShellQuoted(std::string_view text) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-.,:=/+%@").find(c) != std::string_view::npos;
  };
  // A word that begins with = or - is one as well; an assignment is none behind a program's name.
  if (!text.empty() && std::all_of(text.begin(), text.end(), is_plain)) return std::string(text);
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

}  // namespace pipeyard
