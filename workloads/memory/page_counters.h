// Counters of the page allocator, per worker.
//
// Thread safety: as CounterBlock.
#pragma once

#include "workloads/memory/counter_block.h"

namespace pipeyard::memory {

enum class PageCounter {
  // In a worker's block these count without their fastpath, which counts by itself; Counters() adds
  // it. kAllocated is single pages in the block, all pages in Counters().
  kAllocated,
  kFreed,
  kFailed,
  kFallback,
  kRefills,
  kDrains,
  kFaultPages,
  kBulkPages,
  kBlockPages,
  kFastpathFault,
  kFastpathPage,
  kFastpathBulk,
  kFastpathBlock,
  kBulkRequests,
  kBulkCalls,
  kBulkShort,
  kBulkRefusedAccounted,
  kBulkRefusedSingle,
  kBulkRefusedWatermark,
  kBelowLow,
  kBelowMin,
  kReclaimRuns,
  kReclaimedPages,
  kChargeRefills,
  kChargesRefused,
  kDemandFaults,
  kGivenBack,
  kGiveBackFailures,
  kCount,
};
// In the order of PageCounter.
extern const CounterDefinition kPageCounters[static_cast<size_t>(PageCounter::kCount)];

}  // namespace pipeyard::memory
