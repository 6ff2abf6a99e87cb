// Words for a shell.
//
// Thread safety: pure.
#pragma once

#include <string>
#include <string_view>

namespace pipeyard {

// `text` as one word of a POSIX shell, whatever it holds; plain words stay as they are.
std::string ShellQuoted(std::string_view text);

}  // namespace pipeyard
