// Small text functions that names and values need.
//
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <string_view>

namespace pipeyard::settings {

// Strict UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF. Returns the offset of the
// first byte that is not, or text.size() where all is valid.
size_t FirstInvalidUtf8(std::string_view text);

// Insertions, deletions, substitutions and swaps of neighbours, each 1. Returns `limit` where the
// distance is at least `limit`. O(a.size() * b.size()) for texts of at most 64 bytes; `limit` at
// once for longer ones.
size_t EditDistance(std::string_view a, std::string_view b, size_t limit);

}  // namespace pipeyard::settings
