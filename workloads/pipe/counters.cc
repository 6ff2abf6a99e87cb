#include "workloads/pipe/counters.h"

namespace pipeyard::pipe {

using memory::CounterReduction;

const memory::CounterDefinition kCounters[static_cast<size_t>(Counter::kCount)] = {
    {"pipe_writes", "count", CounterReduction::kSum, "write calls that moved at least a byte"},
    {"pipe_reads", "count", CounterReduction::kSum, "read calls that moved at least a byte"},
    {"pipe_bytes_written", "bytes", CounterReduction::kSum, "bytes taken from writers"},
    {"pipe_bytes_read", "bytes", CounterReduction::kSum, "bytes given to readers"},
    {"pipe_merges", "count", CounterReduction::kSum,
     "writes that put their first bytes behind those of the last slot"},
    {"pages_allocated_under_mutex", "pages", CounterReduction::kSum,
     "pages allocated while the pipe's mutex was held"},
    {"pages_allocated_outside_mutex", "pages", CounterReduction::kSum,
     "pages allocated before the pipe's mutex was taken"},
    {"pages_from_cache", "pages", CounterReduction::kSum, "pages taken from the pipe's page cache"},
    {"pages_from_prealloc", "pages", CounterReduction::kSum,
     "preallocated pages that a write used"},
    {"pages_cached", "pages", CounterReduction::kSum,
     "pages that a read put into the pipe's page cache"},
    {"prealloc_pages_cached", "pages", CounterReduction::kSum,
     "preallocated pages that were not needed and went into the pipe's page cache"},
    {"prealloc_pages_freed", "pages", CounterReduction::kSum,
     "preallocated pages that were not needed and were given back, after the mutex"},
    {"pages_freed_under_mutex", "pages", CounterReduction::kSum,
     "pages given back to the allocator while the pipe's mutex was held"},
    {"mutex_acquisitions", "count", CounterReduction::kSum, "acquisitions of pipe mutexes"},
    {"mutex_contended", "count", CounterReduction::kSum,
     "acquisitions that found the mutex held by another worker"},
    {"mutex_hold_samples", "count", CounterReduction::kSum,
     "acquisitions whose hold time was taken"},
    {"mutex_hold_sampled", "ns", CounterReduction::kSum, "hold time of the sampled acquisitions"},
    {"mutex_hold_max", "ns", CounterReduction::kMax, "longest sampled hold time"},
    {"reader_sleeps", "count", CounterReduction::kSum, "times a reader went to sleep"},
    {"writer_sleeps", "count", CounterReduction::kSum, "times a writer went to sleep"},
    {"reader_wakeups", "count", CounterReduction::kSum, "readers woken by another worker"},
    {"writer_wakeups", "count", CounterReduction::kSum, "writers woken by another worker"},
    {"wake_calls", "count", CounterReduction::kSum,
     "system calls made to wake somebody (a waiter not yet asleep needs none)"},
};

}  // namespace pipeyard::pipe
