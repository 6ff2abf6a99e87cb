#include "workloads/memory/aging.h"

#include <algorithm>
#include <string>

namespace pipeyard::memory {
namespace {

uint64_t ObjectsOf(const SlabClass& slab_class, uint64_t page_bytes) {
  return (page_bytes << slab_class.order) / slab_class.bytes;
}

uint64_t SlabsOf(const SlabClass& slab_class, const AgingOptions& options, uint64_t page_bytes) {
  const uint64_t half = ObjectsOf(slab_class, page_bytes) / 2;
  return std::max(uint64_t{2} * (slab_class.min_partial + 1),
                  (options.num_free + half - 1) / half + slab_class.min_partial + 1);
}

// Every second object is freed: none of the slabs becomes empty, each has something to give.
Status AgeClass(ObjectAllocator& allocator, ObjectWorker& worker, const AgingOptions& options,
                uint32_t size_bytes, AgedObjects& aged) {
  const SlabClass& slab_class = allocator.slab_class(SlabClassIndex(size_bytes));
  const uint64_t page_bytes = allocator.pages().page_bytes();
  const uint64_t per_slab = ObjectsOf(slab_class, page_bytes);
  const uint64_t num_slabs = SlabsOf(slab_class, options, page_bytes);
  std::vector<ObjectRef> refs;
  bool is_elsewhere = false;
  while (refs.size() < num_slabs * per_slab && !is_elsewhere) {
    const ObjectRef ref = allocator.Allocate(worker, size_bytes, options.node);
    if (ref == kNoObject) break;
    refs.push_back(ref);
    is_elsewhere = allocator.NodeOf(ref) != options.node;
  }
  if (is_elsewhere || refs.size() < num_slabs * per_slab) {
    for (const ObjectRef ref : refs) allocator.Free(worker, ref, size_bytes);
    return ResourceExhausted("aging: node " + std::to_string(options.node) + " has no memory for " +
                             std::to_string(num_slabs) + " slabs of " +
                             std::to_string(slab_class.bytes) + " bytes");
  }
  // By address, so that each slab keeps one of each two neighbours.
  std::sort(refs.begin(), refs.end());
  for (size_t i = 0; i < refs.size(); ++i) {
    if (i % 2 == 0) {
      aged.objects.push_back({refs[i], size_bytes});
    } else {
      allocator.Free(worker, refs[i], size_bytes);
    }
  }
  return Status::Ok();
}

}  // namespace

uint64_t AgingPages(const AgingOptions& options, uint64_t page_bytes, int num_cpus) {
  uint64_t pages = 0;
  for (const uint32_t size_bytes : options.sizes) {
    const SlabClass slab_class = MakeSlabClass(SlabClassIndex(size_bytes), page_bytes, num_cpus);
    pages += SlabsOf(slab_class, options, page_bytes) << slab_class.order;
  }
  return pages;
}

Result<AgedObjects> AgeNode(ObjectAllocator& allocator, ObjectWorker& worker,
                            const AgingOptions& options) {
  AgedObjects aged;
  if (!allocator.HasMemory(options.node))
    return InvalidArgument("aging: node " + std::to_string(options.node) + " has no memory");
  Status status;
  for (const uint32_t size_bytes : options.sizes) {
    if (size_bytes > MaxSlabBytes(allocator.pages().page_bytes())) {
      status = InvalidArgument("aging: " + std::to_string(size_bytes) +
                               " bytes are no slab object, so there is nothing to age");
    } else {
      status = AgeClass(allocator, worker, options, size_bytes, aged);
    }
    if (!status.ok()) break;
  }
  // What sheaves hold belongs to the slabs: else the next requests were served from there, or the
  // free objects were nobody's but the node's own.
  allocator.Flush(worker);
  allocator.FlushBarns(worker, options.node);
  if (!status.ok()) {
    ReleaseAged(allocator, worker, aged);
    return status;
  }
  for (const uint32_t size_bytes : options.sizes)
    aged.num_slabs += allocator.NumPartialSlabs(size_bytes, options.node);
  return aged;
}

void ReleaseAged(ObjectAllocator& allocator, ObjectWorker& worker, AgedObjects& aged) {
  for (const AgedObjects::Object& object : aged.objects)
    allocator.Free(worker, object.ref, object.size_bytes);
  aged.objects.clear();
  allocator.Flush(worker);
}

}  // namespace pipeyard::memory
