#include "workloads/memory/slab_classes.h"

#include <algorithm>

namespace pipeyard::memory {

uint32_t SheafCapacity(uint32_t object_bytes, uint64_t page_bytes) {
  constexpr uint32_t kHeaderBytes = 32;
  constexpr uint32_t kPointerBytes = 8;
  const uint32_t wanted = object_bytes >= page_bytes ? 4
                          : object_bytes >= 1024     ? 12
                          : object_bytes >= 256      ? 26
                                                     : 60;
  const uint32_t sheaf_bytes =
      SlabClassBytes(SlabClassIndex(kHeaderBytes + wanted * kPointerBytes));
  return (sheaf_bytes - kHeaderBytes) / kPointerBytes;
}

uint32_t SlabOrder(uint32_t object_bytes, uint64_t page_bytes, int num_cpus) {
  auto objects = [&](uint32_t order) {
    return static_cast<uint32_t>((page_bytes << order) / object_bytes);
  };
  const auto cpu_bits = static_cast<uint32_t>(std::bit_width(static_cast<uint32_t>(num_cpus)));
  const uint32_t wanted = std::min(4 * (cpu_bits + 1), std::max(objects(kMaxSlabOrder), 1u));
  const uint32_t min_order =
      std::max(OrderOf(object_bytes, page_bytes),
               std::min(kMaxSlabOrder, OrderOf(uint64_t{wanted} * object_bytes, page_bytes)));
  for (uint32_t fraction = 16; fraction > 1; fraction /= 2) {
    for (uint32_t order = min_order; order <= kMaxSlabOrder; ++order) {
      const uint64_t slab_bytes = page_bytes << order;
      if (slab_bytes % object_bytes <= slab_bytes / fraction) return order;
    }
  }
  return min_order;
}

SlabClass MakeSlabClass(uint32_t index, uint64_t page_bytes, int num_cpus) {
  SlabClass slab_class;
  slab_class.bytes = SlabClassBytes(index);
  slab_class.order = SlabOrder(slab_class.bytes, page_bytes, num_cpus);
  slab_class.min_order = OrderOf(slab_class.bytes, page_bytes);
  slab_class.sheaf_capacity = SheafCapacity(slab_class.bytes, page_bytes);
  const auto log2 = static_cast<uint32_t>(std::bit_width(slab_class.bytes)) - 1;
  slab_class.min_partial = std::clamp(log2 / 2, 5u, 10u);
  return slab_class;
}

}  // namespace pipeyard::memory
