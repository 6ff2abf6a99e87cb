// How alike two names are.
//
// Thread safety: pure function.
#pragma once

#include <cstddef>
#include <string_view>

namespace pipeyard::settings {

// Insertions, deletions, substitutions and swaps of neighbours, each 1. Returns `limit` where the
// distance is at least `limit`. O(a.size() * b.size()) for texts of at most 64 bytes; `limit` at
// once for longer ones.
size_t EditDistance(std::string_view a, std::string_view b, size_t limit);

}  // namespace pipeyard::settings
