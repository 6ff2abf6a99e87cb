#include "workloads/load/supervisor.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace pipeyard::load {
namespace {

// Between two looks at what is watched while workers are waited for.
constexpr Nanos kWatchInterval = Milliseconds(50);
constexpr Nanos kLookInterval = Milliseconds(10);
// Between two attempts to interrupt workers.
constexpr Nanos kInterruptInterval = Milliseconds(20);

}  // namespace

Supervisor::Supervisor(PhaseGate& gate, LoadWorkers& workers, Watch watch)
    : gate_(gate),
      workers_(workers),
      watch_(std::move(watch)),
      event_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (event_fd_ >= 0) gate_.TellOwnerBy(event_fd_);
}

Supervisor::~Supervisor() {
  // Left behind: a thread that was given up may still tell, and must not write to whoever gets the
  // number next.
  if (event_fd_ >= 0 && workers_.Kill()) ::close(event_fd_);
}

void Supervisor::Wait(MonotonicTime deadline) {
  Nanos left = std::max(deadline - SystemClock().Now(), Nanos(0));
  if (event_fd_ < 0) left = std::min(left, kLookInterval);
  const timespec timeout = {left.count() / 1'000'000'000, left.count() % 1'000'000'000};
  // A negative descriptor is passed over by poll(2).
  pollfd watched[] = {{.fd = event_fd_, .events = POLLIN, .revents = 0},
                      {.fd = watch_.fd, .events = POLLIN, .revents = 0}};
  if (::ppoll(watched, 2, &timeout, workers_.wait_mask()) <= 0) return;
  if (watched[0].revents != 0) {
    uint64_t told = 0;
    static_cast<void>(::read(event_fd_, &told, sizeof(told)));
  }
  if (watched[1].revents != 0) watch_.on_readable();
}

void Supervisor::LookAtWatch() {
  pollfd watched = {.fd = watch_.fd, .events = POLLIN, .revents = 0};
  if (::poll(&watched, 1, 0) > 0) watch_.on_readable();
}

bool Supervisor::HasDeath() {
  const Judgement judged = workers_.Check();
  if (judged.ok() || judged.reason_code != "worker_died") return false;
  gate_.Enter(Phase::kAbort);
  return true;
}

bool Supervisor::IsAbortedBefore(MonotonicTime deadline) {
  while (!HasDeath() && gate_.Current() != Phase::kAbort) {
    if (SystemClock().Now() >= deadline) return false;
    Wait(deadline);
  }
  return true;
}

bool Supervisor::AwaitArrivals(int count, Nanos timeout) {
  const MonotonicTime deadline = SystemClock().Now() + timeout;
  while (gate_.num_arrived() < count) {
    if (HasDeath() || gate_.Current() == Phase::kAbort || SystemClock().Now() >= deadline) {
      return false;
    }
    Wait(deadline);
  }
  return true;
}

bool Supervisor::AwaitEnd(Nanos timeout) {
  const MonotonicTime deadline = SystemClock().Now() + timeout;
  while (true) {
    // With something to watch, in steps.
    const MonotonicTime step = SystemClock().Now() + kWatchInterval;
    if (workers_.AwaitEnd(watch_.fd >= 0 ? std::min(step, deadline) : deadline)) return true;
    LookAtWatch();
    if (HasDeath() || SystemClock().Now() >= deadline) return false;
  }
}

bool Supervisor::ForceEnd(Nanos timeout, const std::function<void()>& interrupt) {
  gate_.Enter(Phase::kAbort);
  const MonotonicTime give_up = SystemClock().Now() + timeout;
  do {
    interrupt();
    workers_.InterruptSystemCalls();
    if (workers_.AwaitEnd(SystemClock().Now() + kInterruptInterval)) return true;
  } while (SystemClock().Now() < give_up);
  return workers_.Kill();
}

}  // namespace pipeyard::load
