// LoadThreads: the threads of one measurement, started and ended without ever hanging their owner.
//
// It is not an executor: the threads run loops that live for the whole measurement. Where no thread
// can be made, Start() says so instead of throwing. A thread that will not end is left behind,
// therefore a body owns, or shares, everything that it uses.
//
// Thread safety: confined to the owner's thread.
#pragma once

#include <pthread.h>

#include <functional>
#include <vector>

#include "base/status.h"
#include "base/units.h"

namespace pipeyard::load {

class LoadThreads {
 public:
  LoadThreads() = default;
  LoadThreads(const LoadThreads&) = delete;
  LoadThreads& operator=(const LoadThreads&) = delete;
  // Abandons the threads that AwaitEnd() has not seen end.
  ~LoadThreads();

  // Runs `body` on a new thread. Errors: kUnavailable where the system has no thread left.
  Status Start(std::function<void()> body);
  // Joins every thread started; false where that takes longer than `timeout`.
  bool AwaitEnd(Nanos timeout);
  // Makes a system call in which a thread sleeps return EINTR. A thread on its way into the call
  // misses it: repeat until AwaitEnd() says true.
  void InterruptSystemCalls();

 private:
  // Not joined yet.
  std::vector<pthread_t> threads_;
};

}  // namespace pipeyard::load
