#include "workloads/pipe/differential/actor_thread.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "workloads/memory/futex.h"

namespace pipeyard::pipe::differential {
namespace {

int OpenTaskFile(pid_t thread, const char* name) {
  const std::string path = "/proc/self/task/" + std::to_string(thread) + "/" + name;
  return ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
}

// Empty on failure.
std::string ReadAtStart(int fd) {
  char buffer[128];
  const ssize_t size = ::pread(fd, buffer, sizeof(buffer), 0);
  return size > 0 ? std::string(buffer, static_cast<size_t>(size)) : std::string();
}

}  // namespace

ActorThread::ActorThread() : thread_([this] { Run(); }) {
  while (!IsIdle()) std::this_thread::yield();
}

ActorThread::~ActorThread() {
  state_.store(kEnding, std::memory_order_release);
  memory::FutexWake(&state_, 1);
  thread_.join();
}

void ActorThread::Start(std::function<void()> call) {
  call_ = std::move(call);
  state_.store(kCalled, std::memory_order_release);
  memory::FutexWake(&state_, 1);
}

void ActorThread::Run() {
  thread_id_ = static_cast<pid_t>(::syscall(SYS_gettid));
  state_.store(kIdle, std::memory_order_release);
  for (;;) {
    memory::FutexWait(&state_, kIdle, Nanos(-1));
    const uint32_t state = state_.load(std::memory_order_acquire);
    if (state == kEnding) return;
    if (state != kCalled) continue;
    call_();
    state_.store(kIdle, std::memory_order_release);
  }
}

ThreadWatch::ThreadWatch(pid_t thread)
    : syscall_fd_(OpenTaskFile(thread, "syscall")),
      stat_fd_(OpenTaskFile(thread, "stat")),
      schedule_fd_(OpenTaskFile(thread, "schedstat")) {}

ThreadWatch::~ThreadWatch() {
  if (syscall_fd_ >= 0) ::close(syscall_fd_);
  if (stat_fd_ >= 0) ::close(stat_fd_);
  if (schedule_fd_ >= 0) ::close(schedule_fd_);
}

std::optional<uint64_t> ThreadWatch::TurnsWhenAsleep() const {
  // "NUMBER arguments..." of a thread that sleeps, "running" of another.
  const std::string call = ReadAtStart(syscall_fd_);
  char* end = nullptr;
  const long number = std::strtol(call.c_str(), &end, 10);
  if (end == call.c_str() || number < 0 || number == SYS_futex) return std::nullopt;
  // A thread that was woken, but is not yet on its CPU's queue, still counts as asleep above; its
  // state here, behind the name in brackets, is no longer S.
  const std::string stat = ReadAtStart(stat_fd_);
  const size_t bracket = stat.rfind(')');
  if (bracket == std::string::npos || stat.compare(bracket, 3, ") S") != 0) return std::nullopt;
  // Time on a CPU, time waiting for one, turns.
  unsigned long long turns = 0;
  if (std::sscanf(ReadAtStart(schedule_fd_).c_str(), "%*u %*u %llu", &turns) != 1) {
    return std::nullopt;
  }
  return turns;
}

}  // namespace pipeyard::pipe::differential
