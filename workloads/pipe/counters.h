// What the pipe's mechanisms did, per worker; the evidence for change 1 (policy queries, remote
// lines) and change 2 (pages allocated outside the mutex).
//
// Time under the mutex is sampled: every kHoldSampling-th acquisition of a worker is timed with
// CLOCK_MONOTONIC. Two clock reads cost about 50 ns, more than a small operation; sampled they cost
// below 1 ns an acquisition, and the clock needs no calibration and no invariant TSC. Mean hold
// time = mutex_hold_sampled / mutex_hold_samples; mutex_hold_max is the longest sampled one.
//
// Thread safety: see CounterBlock.
#pragma once

#include "workloads/memory/counter_block.h"

namespace pipeyard::pipe {

enum class Counter {
  kWrites,
  kReads,
  kBytesWritten,
  kBytesRead,
  kMerges,
  kPagesUnderMutex,
  kPagesOutsideMutex,
  kPagesFromCache,
  kPagesFromPrealloc,
  kPagesCached,
  kPreallocToCache,
  kPreallocFreed,
  kFreedUnderMutex,
  kPagesTrimmed,
  kMutexAcquisitions,
  kMutexContended,
  kMutexHoldSamples,
  kMutexHoldSampled,
  kMutexHoldMax,
  kReaderSleeps,
  kWriterSleeps,
  kReaderWakeups,
  kWriterWakeups,
  kWakeCalls,
  kPolls,
  kPollSleeps,
  kWatchWaits,
  kWatchSleeps,
  kPipesCreated,
  kPipesFreed,
  kResizes,
  kResizesRefused,
  kPolicyQueries,
  kMetadataLocal,
  kMetadataRemote,
  kRemoteLines,
  kRemoteAccess,
  kCount,
};
// In the order of Counter.
extern const memory::CounterDefinition kCounters[static_cast<size_t>(Counter::kCount)];

using PipeCounters = memory::CounterBlock<Counter>;

// A prime, so that a worker's regular pattern of operations is not always met at the same place.
inline constexpr uint32_t kHoldSampling = 61;

}  // namespace pipeyard::pipe
