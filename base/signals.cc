#include "base/signals.h"

#include <signal.h>

#include <cerrno>
#include <thread>
#include <utility>

namespace pipeyard {
namespace {

// Wakes the watching thread when the object goes; nobody else sends it.
constexpr int kStopSignal = SIGUSR2;

sigset_t EndingSignals() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGINT);
  ::sigaddset(&set, SIGTERM);
  return set;
}

}  // namespace

DefaultEndingSignals::DefaultEndingSignals() {
  const sigset_t set = EndingSignals();
  ::pthread_sigmask(SIG_UNBLOCK, &set, &before_);
}

DefaultEndingSignals::~DefaultEndingSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

struct SignalWatcher::Watch {
  std::function<void(int)> callback;
  std::thread thread;
};

SignalWatcher::SignalWatcher() {
  sigset_t set = EndingSignals();
  ::sigaddset(&set, kStopSignal);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

SignalWatcher::~SignalWatcher() { StopCalling(); }

void SignalWatcher::StopCalling() {
  if (watch_ == nullptr) return;
  ::pthread_kill(watch_->thread.native_handle(), kStopSignal);
  watch_->thread.join();
  delete watch_;
  watch_ = nullptr;
}

std::optional<int> SignalWatcher::Wait(Nanos timeout) {
  const sigset_t set = EndingSignals();
  const timespec wait{timeout.count() / 1'000'000'000, timeout.count() % 1'000'000'000};
  const int signal = ::sigtimedwait(&set, nullptr, &wait);
  if (signal > 0) return signal;
  return std::nullopt;
}

void SignalWatcher::OnSignal(std::function<void(int)> callback) {
  watch_ = new Watch{std::move(callback), {}};
  watch_->thread = std::thread([watch = watch_]() noexcept {
    sigset_t set = EndingSignals();
    ::sigaddset(&set, kStopSignal);
    int signal = 0;
    while (::sigwait(&set, &signal) != 0) {
    }
    if (signal != kStopSignal) watch->callback(signal);
    // A thread that has ended cannot be signaled safely: wait for the word that the object goes.
    if (signal != kStopSignal) {
      sigset_t stop;
      ::sigemptyset(&stop);
      ::sigaddset(&stop, kStopSignal);
      ::sigwait(&stop, &signal);
    }
  });
}

}  // namespace pipeyard
