// Fiber: a function with a stack of its own in the calling thread, entered and left where it says.
//
// Thread safety: all fibers of one exploration belong to one thread. Ownership: owns its stack;
// what lay on it when the fiber is reset is gone without destructors.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <functional>
#include <memory>

namespace pipeyard::memory::model {

class Fiber {
 public:
  // `body` must never return: it leaves by switching away for good.
  explicit Fiber(std::function<void()> body);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // The next switch to it begins anew.
  void Reset();
  // From the thread's own stack; returns when some fiber calls LeaveToMain().
  void EnterFromMain();
  // Called by the fiber that runs.
  void SwitchTo(Fiber& other);
  void LeaveToMain();
  // Whether a fiber runs at present.
  static bool IsInside();

 private:
  static void Trampoline();

  std::function<void()> body_;
  std::unique_ptr<std::byte[]> stack_;
  ucontext_t context_;
};

}  // namespace pipeyard::memory::model
