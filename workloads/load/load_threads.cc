#include "workloads/load/load_threads.h"

#include <time.h>

#include <memory>
#include <utility>

#include "workloads/load/interrupt_signal.h"

namespace pipeyard::load {
namespace {

// Joining waits on the wall clock: in steps this short a step of that clock does no harm.
constexpr Nanos kJoinStep = Milliseconds(20);

void* RunBody(void* argument) {
  const std::unique_ptr<std::function<void()>> body(static_cast<std::function<void()>*>(argument));
  (*body)();
  return nullptr;
}

bool JoinWithin(pthread_t thread, Nanos timeout) {
  timespec until = {};
  ::clock_gettime(CLOCK_REALTIME, &until);
  const int64_t nanos = until.tv_nsec + timeout.count();
  until.tv_sec += nanos / 1'000'000'000;
  until.tv_nsec = nanos % 1'000'000'000;
  return ::pthread_timedjoin_np(thread, nullptr, &until) == 0;
}

}  // namespace

LoadThreads::~LoadThreads() {
  for (const pthread_t thread : threads_) ::pthread_detach(thread);
}

Status LoadThreads::Start(std::string /*name*/, std::function<void()> body) {
  auto owned = std::make_unique<std::function<void()>>(std::move(body));
  pthread_t thread;
  if (const int error = ::pthread_create(&thread, nullptr, RunBody, owned.get()); error != 0) {
    return ErrnoStatus("pthread_create", error);
  }
  static_cast<void>(owned.release());  // RunBody deletes it
  threads_.push_back(thread);
  return Status::Ok();
}

bool LoadThreads::AwaitEnd(MonotonicTime deadline) {
  while (!threads_.empty()) {
    if (JoinWithin(threads_.back(), kJoinStep)) {
      threads_.pop_back();
    } else if (SystemClock().Now() >= deadline) {
      return false;
    }
  }
  return true;
}

void LoadThreads::InterruptSystemCalls() {
  HandleInterruptSignal();
  for (const pthread_t thread : threads_) ::pthread_kill(thread, kInterruptSignal);
}

}  // namespace pipeyard::load
