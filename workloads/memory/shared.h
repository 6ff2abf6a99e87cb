// What every type in the shared region obeys: marked `// SHARED`, checked by PIPEYARD_CHECK_SHARED,
// positions as offsets from the region's start (pointers mean nothing to a process that maps the
// region elsewhere).
//
// Thread safety: constants only.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace pipeyard::memory {

// Of x86-64 and most arm64 servers. std::hardware_destructive_interference_size is not offered by
// every compiler used here.
inline constexpr size_t kCacheLine = 64;

constexpr uint64_t AlignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

// Atomics in the region must not fall back to a lock table, which is private to each process.
static_assert(std::atomic<uint16_t>::is_always_lock_free);
static_assert(std::atomic<uint32_t>::is_always_lock_free);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

// Tells the processor that this is a spin loop.
inline void SpinPause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

}  // namespace pipeyard::memory

// The layout is the same in every process, nothing runs at destruction, and bytes are the whole
// state.
#define PIPEYARD_CHECK_SHARED(type)                                                        \
  static_assert(std::is_standard_layout_v<type>, #type " is shared between processes");    \
  static_assert(std::is_trivially_copyable_v<type>, #type " is shared between processes"); \
  static_assert(std::is_trivially_destructible_v<type>, #type " is shared between processes")
