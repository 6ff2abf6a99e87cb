// futex.h for threads of the exhaustive scheduler. A timeout never comes: what waits for ever in
// the model is a lost wake-up.

#include "workloads/memory/futex.h"

#include "workloads/memory/model/scheduler.h"

namespace pipeyard::memory {

bool FutexWait(AtomicWord* word, uint32_t expected, Nanos) {
  model::BeforeStep("futex_wait", word);
  model::Observe(word->Peek());
  if (word->Peek() == expected) model::WaitUntilWoken(word);
  return true;
}

void FutexWake(AtomicWord* word, int count) {
  model::BeforeStep("futex_wake", word);
  model::WakeThreads(word, count);
}

}  // namespace pipeyard::memory
