// futex(2) on words in shared memory: never the PRIVATE forms, since waiter and waker may be
// different processes.
//
// Thread safety: thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/units.h"
#include "workloads/memory/atomic_word.h"

namespace pipeyard::memory {

// Sleeps while *word == expected, at most `timeout` (negative: without limit). Returns false when
// the time ran out. Returns true otherwise, also at once when *word differs and after a signal: the
// caller checks its condition in a loop.
bool FutexWait(AtomicWord* word, uint32_t expected, Nanos timeout);
// Wakes at most `count` sleepers.
void FutexWake(AtomicWord* word, int count);

}  // namespace pipeyard::memory
