// SHA-256 (FIPS 180-4), by OpenSSL's libcrypto.
//
// Thread safety: pure function.
#pragma once

#include <string>
#include <string_view>

namespace pipeyard::settings {

// 64 lower-case hex digits.
std::string Sha256Hex(std::string_view data);

}  // namespace pipeyard::settings
