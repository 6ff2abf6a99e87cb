// Counters of the object allocator, per worker.
//
// Thread safety: as CounterBlock.
#pragma once

#include "workloads/memory/counter_block.h"

namespace pipeyard::memory {

enum class ObjectCounter {
  kFastAllocations,
  kFastFrees,
  kSlowAllocations,
  kSlowFrees,
  kRemoteFrees,
  kLargeAllocations,
  kLargeFrees,
  kFailures,
  kChargesRefused,
  // The layers below a worker's main sheaf.
  kSpareSwaps,
  kBarnHits,
  kBarnMisses,
  kBarnPuts,
  kBarnFull,
  kSheafRefills,
  kSheafFlushes,
  kFlushedObjects,
  // The cpu-slab form.
  kActiveTakeOvers,
  kDeactivations,
  // Explicit nodes.
  kExplicitNode,
  kNodeMismatches,
  kRemoteTopDiverts,
  // Where objects come from when no layer above has any.
  kPartialObjectsLocal,
  kPartialObjectsRemote,
  kRemoteReuseRefused,
  kRemoteReuseTried,
  kRemoteReuseTaken,
  kRemoteReuseBusy,
  kNewSlabsRefill,
  kNewSlabsLocal,
  kNewSlabsThisNode,
  kNewSlabsAnywhere,
  kNewSlabFailures,
  kSmallerSlabs,
  kSlabsGivenBack,
  kSlabsReclaimed,
  // Questions to the task's policy.
  kStrictQueries,
  kGateQueries,
  kFastpathSlab,
  kCount,
};
// In the order of ObjectCounter.
extern const CounterDefinition kObjectCounters[static_cast<size_t>(ObjectCounter::kCount)];

}  // namespace pipeyard::memory
