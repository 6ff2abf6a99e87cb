// An exhaustive scheduler: runs a few small threads over and over, every run with another order of
// their steps, until every order that leads to another state has been seen. A step is an access to
// a SteppedWord, a futex call, or taking a ModelMutex; between two steps a thread is
// alone.
//
// The threads are fibers of one real thread, so a run repeats exactly. States seen before are not
// followed again: a state is the memory given by the scenario and, for each thread, what it
// observed so far (its own variables follow from that). It orders steps sequentially consistently:
// what weaker orders allow is not explored, nor are data races found (ThreadSanitizer does that).
// Thread safety: one exploration at a time, in one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace pipeyard::memory::model {

struct Scenario {
  // Puts the shared memory into its first state. Before every run.
  std::function<void()> reset;
  // The threads. They must hold nothing that needs a destructor: a run may end anywhere.
  std::vector<std::function<void()>> threads;
  // After a run in which all threads ended: what is wrong, or nothing.
  std::function<std::string()> check;
  // All that the threads share, but for the mutexes; compared byte by byte.
  std::span<const std::byte> memory;
};

struct ExplorationResult {
  uint64_t num_states = 0;
  uint64_t num_runs = 0;
  bool is_complete = false;  // false: the limit of runs was reached
  // Empty: every order ends well. Else what went wrong and the steps that led there.
  std::string fault;
};

ExplorationResult Explore(const Scenario& scenario, uint64_t max_runs = 20'000'000);

// For the stepped primitives, in the thread that runs.
// The scheduler may run others now. `what` is for the trace of a fault.
void BeforeStep(const char* what, const void* where);
// Where the thread's own variables, and where in its code it stands, follow from the scenario's
// memory alone: what it saw on the way there matters no more. Spares states that only differ in
// that.
void ForgetHistory();
// The step that began saw this.
void Observe(uint64_t value);
// The calling thread waits until another one calls WakeThreads() on the same address. No step of
// its own.
void WaitUntilWoken(const void* address);
// Wakes up to `count` threads that wait there, the longest first.
void WakeThreads(const void* address, int count);

// A lock. Taking it is a step; a holder may look at all of the scenario's memory.
class ModelMutex {
 public:
  void Lock();
  void Unlock();
  void Reset() { is_locked_ = false; }

 private:
  bool is_locked_ = false;
};

}  // namespace pipeyard::memory::model
