// SignalWatcher: turns SIGINT and SIGTERM into a call on a thread of its own, so that what happens
// then is ordinary code.
//
// Made first thing in main, before any other thread: the signals are blocked in the calling thread
// and in all that it starts later. (Children that posix_spawn starts through base/process.h have
// their default signals again.) Thread safety: Wait() from one thread. Ownership: the callback and
// what it uses outlive this object.
#pragma once

#include <signal.h>

#include <functional>
#include <optional>

#include "base/units.h"

namespace pipeyard {

// While one lives, SIGINT and SIGTERM end the process again, as they do by default. For waits that
// nothing else cuts short, such as reading a terminal, before other threads are started.
class DefaultEndingSignals {
 public:
  DefaultEndingSignals();
  ~DefaultEndingSignals();
  DefaultEndingSignals(const DefaultEndingSignals&) = delete;
  DefaultEndingSignals& operator=(const DefaultEndingSignals&) = delete;

 private:
  sigset_t before_;
};

class SignalWatcher {
 public:
  // Blocks SIGINT and SIGTERM and ignores SIGPIPE for the process.
  SignalWatcher();
  // Ends the thread where OnSignal() started one.
  ~SignalWatcher();
  SignalWatcher(const SignalWatcher&) = delete;
  SignalWatcher& operator=(const SignalWatcher&) = delete;

  // Waits for a signal and returns its number; nullopt where `timeout` ran out. Not together with
  // OnSignal().
  std::optional<int> Wait(Nanos timeout);

  // Calls `callback` with the number of the first signal, on a thread of its own, at most once
  // until StopCalling().
  void OnSignal(std::function<void(int)> callback);
  // Ends what OnSignal() began; once it returns, the callback is neither running nor called again.
  void StopCalling();

 private:
  struct Watch;
  Watch* watch_ = nullptr;  // owned
};

}  // namespace pipeyard
