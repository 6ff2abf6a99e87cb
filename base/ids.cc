#include "base/ids.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace pipeyard {

uint64_t IdSource::RandomBits() {
  if (deterministic_) {  // SplitMix64 (Steele, Lea & Flood 2014)
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  uint64_t bits = 0;
  // Up to 256 bytes are never cut short nor interrupted once the pool is ready (getrandom(2)).
  if (::getrandom(&bits, sizeof bits, 0) != static_cast<ssize_t>(sizeof bits)) {
    std::fputs("pipeyard: getrandom failed: no ids can be drawn\n", stderr);
    std::abort();
  }
  return bits;
}

std::string IdSource::Next() {
  MutexLock lock(mutex_);
  const int64_t now = clock_.UtcNow().count() / 1'000'000;
  // rand_a holds a counter within the millisecond (RFC 9562, 6.2 method 1); it runs over into the
  // next millisecond.
  if (now > last_millis_) {
    last_millis_ = now;
    sequence_ = static_cast<uint32_t>(RandomBits() & 0x7ff);
  } else if (++sequence_ > 0xfff) {
    ++last_millis_;
    sequence_ = 0;
  }
  const uint64_t millis = static_cast<uint64_t>(last_millis_) & 0xffff'ffff'ffffu;
  const uint64_t tail = RandomBits();
  return fmt::format("{:08x}-{:04x}-7{:03x}-{:04x}-{:012x}", millis >> 16, millis & 0xffff,
                     sequence_, 0x8000 | ((tail >> 48) & 0x3fff), tail & 0xffff'ffff'ffffu);
}

bool IsUuid(std::string_view text) {
  if (text.size() != 36) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (i == 8 || i == 13 || i == 18 || i == 23) {
      if (c != '-') return false;
    } else if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) {
      return false;
    }
  }
  return true;
}

Result<std::string> ReadBootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  if (!(file >> id) || !IsUuid(id))
    return Unavailable("read /proc/sys/kernel/random/boot_id: no boot id there");
  return id;
}

}  // namespace pipeyard
