// The bytes that writers send: one endless stream for each pipe, of which every byte tells where in
// the stream it stands, so that one that got lost, doubled or moved shows.
//
// Thread safety: constant after the first call. Ownership: pointers stay valid for ever.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pipeyard::pipe::differential {

// Longest write of a program.
inline constexpr size_t kMaxTransfer = size_t{2} << 20;

// `kMaxTransfer` bytes from `position` on.
inline const char* StreamAt(uint64_t position) {
  // Prime, so that no multiple of a page repeats the bytes of another page.
  constexpr size_t kPeriod = 65'521;
  static const std::vector<char> bytes = [] {
    std::vector<char> made(kPeriod + kMaxTransfer);
    for (size_t i = 0; i < made.size(); ++i) {
      const uint32_t mixed = static_cast<uint32_t>(i % kPeriod) * 2654435761u;
      made[i] = static_cast<char>(mixed >> 24 ^ mixed >> 11);
    }
    return made;
  }();
  return bytes.data() + position % kPeriod;
}

}  // namespace pipeyard::pipe::differential
