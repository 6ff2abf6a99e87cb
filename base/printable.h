// Texts of users, files and peers on their way to a terminal or a log.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace pipeyard {

// `text` on one line that cannot move the cursor: control characters (those of Unicode too) and
// bytes that are no UTF-8 become "\n", "\t", "\x1b" and so on. Everything else stays.
std::string EscapeControls(std::string_view text);

}  // namespace pipeyard
