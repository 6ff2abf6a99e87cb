// SHA-256 of a content, by which facts and settings are stored once.
//
// Thread safety: pure.
#pragma once

#include <string>
#include <string_view>

namespace pipeyard::storage {

// 32 bytes.
std::string ContentHash(std::string_view content);

}  // namespace pipeyard::storage
