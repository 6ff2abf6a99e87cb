// AtomicWord: the words that waiters and wakers synchronize on. An std::atomic; where the
// exhaustive scheduler of model/ compiles the same sources again, a word of which every access is a
// step that the scheduler may put another thread before.
//
// Thread safety: thread-safe.
#pragma once

#if defined(PIPEYARD_STEPPED_WORDS)
#include "workloads/memory/model/stepped_word.h"
#else
#include <atomic>
#endif

#include <cstdint>

namespace pipeyard::memory {

#if defined(PIPEYARD_STEPPED_WORDS)
using AtomicWord = model::SteppedWord;
#else
using AtomicWord = std::atomic<uint32_t>;
#endif

}  // namespace pipeyard::memory
