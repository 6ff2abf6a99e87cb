// The sizes that kmalloc serves from slabs, and what the kernel derives from an object's size: how
// many pages a slab has, how many objects a sheaf holds, how many slabs a node keeps.
//
// Sizes above MaxSlabBytes() are no slab objects; they are page blocks.
// Source: kernel-mechanisms.md A8, B1; mm/slub.c's calculate_order() for the orders.
// Thread safety: pure functions.
#pragma once

#include <bit>
#include <cstdint>

#include "workloads/memory/metadata_placement.h"

namespace pipeyard::memory {

// The largest pages that slabs can be made of: arm64's.
inline constexpr uint64_t kMaxSlabPageBytes = 64 * 1024;
// 64 96 128 192 256 512 1k ... 128k: the last is twice the largest page.
inline constexpr int kMaxSlabClasses = 14;

// A slab is at most eight pages (PAGE_ALLOC_COSTLY_ORDER): larger blocks are hard to find.
inline constexpr uint32_t kMaxSlabOrder = 3;

// The class that serves `size_bytes`. Precondition: 0 < size_bytes <= MaxSlabBytes().
constexpr uint32_t SlabClassIndex(uint32_t size_bytes) {
  // 192 and below: four bits for each step of 32 bytes (64 64 96 128 192 192).
  if (size_bytes <= 192) return 0x332100u >> ((size_bytes - 1) / 32 * 4) & 0xf;
  return static_cast<uint32_t>(std::bit_width(size_bytes - 1)) - 4;
}

constexpr uint32_t SlabClassBytes(uint32_t index) {
  constexpr uint32_t kSmall[] = {64, 96, 128, 192};
  return index < 4 ? kSmall[index] : 16u << index;
}

constexpr uint32_t NumSlabClasses(uint64_t page_bytes) {
  return SlabClassIndex(static_cast<uint32_t>(MaxSlabBytes(page_bytes))) + 1;
}

static_assert(NumSlabClasses(kMaxSlabPageBytes) == kMaxSlabClasses);

// The order of the block of pages that holds `size_bytes` > 0.
constexpr uint32_t OrderOf(uint64_t size_bytes, uint64_t page_bytes) {
  return static_cast<uint32_t>(std::bit_width((size_bytes - 1) / page_bytes));
}

// What one class is made of.
struct SlabClass {
  uint32_t bytes;           // of an object
  uint32_t order;           // pages of a slab, as a power of two
  uint32_t min_order;       // tried when no block of `order` is free
  uint32_t sheaf_capacity;  // objects
  uint32_t min_partial;     // slabs that a node keeps though they are empty
};

// Objects of a sheaf: 4 at a page and above, 12 at 1 KiB, 26 at 256 bytes, else 60, then as many as
// fill the kmalloc object in which the kernel keeps a sheaf (32 bytes of header, 8 an object).
uint32_t SheafCapacity(uint32_t object_bytes, uint64_t page_bytes);

// The smallest order whose slab wastes at most a sixteenth, then an eighth, and so on, and holds at
// least 4 * (bits of num_cpus + 1) objects where kMaxSlabOrder permits that many.
uint32_t SlabOrder(uint32_t object_bytes, uint64_t page_bytes, int num_cpus);

SlabClass MakeSlabClass(uint32_t index, uint64_t page_bytes, int num_cpus);

}  // namespace pipeyard::memory
