// Page sources: whether a free page keeps its memory.
//
//   resident    the arena is populated once; free pages keep their memory
//   on-demand   a freed page goes back to the kernel at once, an allocated one is touched by its
//               allocation: there it faults, and there the kernel reclaims when memory is short
//
// Thread safety: thread-safe (system calls on the caller's own page).
#pragma once

#include <cstddef>
#include <cstdint>

namespace pipeyard::memory {

enum class PageSource { kResident, kOnDemand };

// Gives the memory of [address, address + bytes) back to the kernel, for all processes that map it.
// Returns 0 or an errno.
int GiveBackToKernel(std::byte* address, uint64_t bytes);

// Writes a byte of each host page, as the first user would. Returns the number of host pages.
uint64_t TouchPages(std::byte* address, uint64_t bytes);

}  // namespace pipeyard::memory
