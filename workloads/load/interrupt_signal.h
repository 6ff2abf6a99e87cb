// The signal that ends a system call in which a worker sleeps.
//
// Thread safety: thread-safe.
#pragma once

#include <signal.h>

namespace pipeyard::load {

inline constexpr int kInterruptSignal = SIGUSR2;

// Its handler does nothing; that it has one, without SA_RESTART, is what ends the system call.
inline void HandleInterruptSignal() {
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  ::sigaction(kInterruptSignal, &action, nullptr);
}

}  // namespace pipeyard::load
