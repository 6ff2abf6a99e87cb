// ActorThread: a thread that makes one call at a time, as it is told, and may stay inside it for
// long. ThreadWatch tells from outside whether the kernel has put a thread to sleep inside a call.
//
// Thread safety: ActorThread: Start() and the destructor by one thread, IsIdle() by any.
// Ownership: owns its thread; at destruction it must be idle.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <optional>
#include <thread>

namespace pipeyard::pipe::differential {

class ActorThread {
 public:
  ActorThread();
  ActorThread(const ActorThread&) = delete;
  ActorThread& operator=(const ActorThread&) = delete;
  ~ActorThread();

  // Precondition: it is idle. What `call` did can be seen once IsIdle().
  void Start(std::function<void()> call);
  bool IsIdle() const { return state_.load(std::memory_order_acquire) == kIdle; }
  pid_t thread_id() const { return thread_id_; }

 private:
  enum State : uint32_t { kIdle, kCalled, kEnding };

  void Run();

  std::atomic<uint32_t> state_{kCalled};  // until the thread has begun
  std::function<void()> call_;
  pid_t thread_id_ = 0;
  std::thread thread_;
};

// Reads /proc/self/task.
class ThreadWatch {
 public:
  explicit ThreadWatch(pid_t thread);
  ThreadWatch(const ThreadWatch&) = delete;
  ThreadWatch& operator=(const ThreadWatch&) = delete;
  ~ThreadWatch();

  bool IsUsable() const { return syscall_fd_ >= 0 && stat_fd_ >= 0 && schedule_fd_ >= 0; }
  // How often it got a CPU, while it sleeps inside a system call other than futex(2); nothing while
  // it does not. Twice the same: it slept all the time between.
  std::optional<uint64_t> TurnsWhenAsleep() const;

 private:
  int syscall_fd_;
  int stat_fd_;
  int schedule_fd_;
};

}  // namespace pipeyard::pipe::differential
