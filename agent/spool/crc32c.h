// CRC-32C (Castagnoli), the checksum of spool records.
//
// Thread safety: pure.
#pragma once

#include <cstdint>
#include <string_view>

namespace pipeyard::spool {

// Reflected polynomial 0x82f63b78, initial value and final xor 0xffffffff. Source: RFC 3720, B.4
// holds the test values. `seed` is the checksum of what precedes `data`, 0 where nothing does:
// Crc32c(b, Crc32c(a)) == Crc32c(ab).
uint32_t Crc32c(std::string_view data, uint32_t seed = 0);

}  // namespace pipeyard::spool
