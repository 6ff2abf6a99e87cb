// Aging: brings the object allocator into the state that long use leaves behind, slabs with free
// objects on a node, so that allocations elsewhere meet them (docs/SWEEPS.md, `allocator:
// aged:NODE`).
//
// A fresh allocator has no partial slabs, so that requests without a node find nothing remote and
// change 1 has nothing to change. Source: kernel-mechanisms.md E8.
// Thread safety: by the worker that owns the ObjectWorker. Ownership: the aged objects belong to
// whoever holds AgedObjects, and live in the region until they are released.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "workloads/memory/object_allocator.h"

namespace pipeyard::memory {

struct AgingOptions {
  numa::NodeId node = 0;
  // Sizes whose classes are aged: the pipe's info and its first ring by default.
  std::vector<uint32_t> sizes = {168, 640};
  // How many objects of each class the half-freed slabs shall have to give. At least as many slabs
  // are made as open the gate for half a dozen refills: twice min_partial and more.
  uint64_t num_free = 0;
};

// Pages that AgeNode() takes on the node, on a machine of `num_cpus` CPUs. Precondition: every size
// is a slab object's.
uint64_t AgingPages(const AgingOptions& options, uint64_t page_bytes, int num_cpus);

// What keeps the slabs half full.
struct AgedObjects {
  struct Object {
    ObjectRef ref;
    uint32_t size_bytes;
  };
  std::vector<Object> objects;
  uint64_t num_slabs = 0;  // with free objects, on the node, of all classes
};

// Fills slabs on `options.node` and frees every second object of each. The worker's sheaves are
// empty afterwards. Errors: kInvalidArgument for a node without memory; kResourceExhausted when the
// node has too little for it (nothing stays allocated).
Result<AgedObjects> AgeNode(ObjectAllocator& allocator, ObjectWorker& worker,
                            const AgingOptions& options);

// Frees them.
void ReleaseAged(ObjectAllocator& allocator, ObjectWorker& worker, AgedObjects& aged);

}  // namespace pipeyard::memory
