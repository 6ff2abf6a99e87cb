#include "workloads/memory/model/fiber.h"

#if defined(__SANITIZE_ADDRESS__)
#define PIPEYARD_HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PIPEYARD_HAS_ASAN 1
#endif
#endif
#if defined(PIPEYARD_HAS_ASAN)
#include <sanitizer/common_interface_defs.h>
#endif

namespace pipeyard::memory::model {
namespace {

constexpr size_t kStackBytes = 128 << 10;

Fiber* g_running = nullptr;
ucontext_t g_main;
const void* g_main_stack = nullptr;
size_t g_main_stack_bytes = 0;

// AddressSanitizer must be told of every change of stacks. The thread's own may have a second one
// for use after return; fibers are compiled without (CMakeLists.txt), since a run leaves them
// anywhere.
[[maybe_unused]] void* g_main_fake_stack = nullptr;

void LeaveMain([[maybe_unused]] const void* bottom, [[maybe_unused]] size_t size) {
#if defined(PIPEYARD_HAS_ASAN)
  __sanitizer_start_switch_fiber(&g_main_fake_stack, bottom, size);
#endif
}
void LeaveFiber([[maybe_unused]] const void* bottom, [[maybe_unused]] size_t size) {
#if defined(PIPEYARD_HAS_ASAN)
  void* none = nullptr;
  __sanitizer_start_switch_fiber(&none, bottom, size);
#endif
}
void ArriveAtMain() {
#if defined(PIPEYARD_HAS_ASAN)
  __sanitizer_finish_switch_fiber(g_main_fake_stack, nullptr, nullptr);
#endif
}
void ArriveAtFiber([[maybe_unused]] bool is_from_main) {
#if defined(PIPEYARD_HAS_ASAN)
  const void* bottom = nullptr;
  size_t size = 0;
  __sanitizer_finish_switch_fiber(nullptr, &bottom, &size);
  if (is_from_main) {
    g_main_stack = bottom;
    g_main_stack_bytes = size;
  }
#endif
}

bool g_is_from_main = false;

}  // namespace

Fiber::Fiber(std::function<void()> body)
    : body_(std::move(body)), stack_(new std::byte[kStackBytes]) {}

void Fiber::Reset() {
  ::getcontext(&context_);
  context_.uc_stack.ss_sp = stack_.get();
  context_.uc_stack.ss_size = kStackBytes;
  context_.uc_link = nullptr;
  ::makecontext(&context_, &Fiber::Trampoline, 0);
}

void Fiber::Trampoline() {
  ArriveAtFiber(g_is_from_main);
  g_running->body_();
}

void Fiber::EnterFromMain() {
  g_running = this;
  g_is_from_main = true;
  LeaveMain(stack_.get(), kStackBytes);
  ::swapcontext(&g_main, &context_);
  ArriveAtMain();
}

void Fiber::SwitchTo(Fiber& other) {
  g_running = &other;
  g_is_from_main = false;
  LeaveFiber(other.stack_.get(), kStackBytes);
  ::swapcontext(&context_, &other.context_);
  ArriveAtFiber(g_is_from_main);
}

void Fiber::LeaveToMain() {
  g_running = nullptr;
  LeaveFiber(g_main_stack, g_main_stack_bytes);
  ::swapcontext(&context_, &g_main);
}

bool Fiber::IsInside() { return g_running != nullptr; }

}  // namespace pipeyard::memory::model
