// PipeEnvironment: what all pipes of an engine share, as one process sees it.
//
// Thread safety: constant after the engine's creation. Ownership: the Engine owns it and
// everything it points to.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "workloads/memory/object_allocator.h"
#include "workloads/pipe/engine_config.h"
#include "workloads/pipe/line_toll.h"
#include "workloads/pipe/pipe_info.h"
#include "workloads/pipe/pipe_user.h"
#include "workloads/pipe/worker.h"

namespace pipeyard::pipe {

// SHARED. Live pipes that one worker created, so that the engine can find every page.
struct alignas(memory::kCacheLine) PipeList {
  memory::SharedMutex mutex;
  uint64_t first GUARDED_BY(mutex);  // offset of a PipeInfo; 0: none
  uint64_t num_alive GUARDED_BY(mutex);
};
PIPEYARD_CHECK_SHARED(PipeList);

struct PipeEnvironment {
  std::byte* region = nullptr;
  memory::PageAllocator* pages = nullptr;
  memory::ObjectAllocator* objects = nullptr;
  LineToll* toll = nullptr;                // only where nodes are emulated
  memory::WaitNode* wait_nodes = nullptr;  // by worker
  PipeList* lists = nullptr;               // by worker
  int num_workers = 0;
  PipeUser* users = nullptr;
  PipeLimits limits;

  memory::MetadataPlacement metadata_placement = memory::MetadataPlacement::kAnyNode;
  PageCache page_cache = PageCache::kTwoPage;
  memory::BulkAlgorithm interleave_bulk = memory::BulkAlgorithm::kSplitCarry;
  Nanos wait_spin{0};
  Wakeup wakeup = Wakeup::kWasFull;
  PollWakeup poll_wakeup = PollWakeup::kPollUsage;

  PipeInfo& InfoAt(uint64_t offset) const { return *reinterpret_cast<PipeInfo*>(region + offset); }
};

// A worker died holding a lock: ends every wait of every worker, so that everybody finds out.
void SpreadOwnerDeath(const PipeEnvironment& environment);
// Why an allocator came back empty-handed: `error`, or EOWNERDEAD where a worker died inside one of
// its locks; everybody finds out then.
int NoMemory(const PipeEnvironment& environment, int error);

}  // namespace pipeyard::pipe
