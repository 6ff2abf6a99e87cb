#include "workloads/load/load_processes.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "workloads/load/interrupt_signal.h"

namespace pipeyard::load {
namespace {

std::string SignalName(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

// What a child does before its body, while nothing of the parent's threads can matter: it has none.
void BecomeWorker(pid_t parent, const sigset_t& mask, const struct sigaction& child_action) {
  // A parent that died before this call would never be noticed.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::getppid() != parent) ::_exit(1);
  ::sigaction(SIGCHLD, &child_action, nullptr);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
}

timespec TimeLeft(MonotonicTime deadline) {
  const Nanos left = std::max(deadline - SystemClock().Now(), Nanos(0));
  return {left.count() / 1'000'000'000, left.count() % 1'000'000'000};
}

}  // namespace

const int LoadProcesses::kInterrupt = kInterruptSignal;

LoadProcesses::LoadProcesses() {
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  ::sigaction(SIGCHLD, &action, &former_action_);
  // The children inherit its handler.
  HandleInterruptSignal();
  sigset_t child_signal;
  ::sigemptyset(&child_signal);
  ::sigaddset(&child_signal, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &child_signal, &former_mask_);
  wait_mask_ = former_mask_;
  ::sigdelset(&wait_mask_, SIGCHLD);
}

LoadProcesses::~LoadProcesses() {
  static_cast<void>(Kill());
  ::sigaction(SIGCHLD, &former_action_, nullptr);
  ::sigprocmask(SIG_SETMASK, &former_mask_, nullptr);
}

Status LoadProcesses::Start(std::string name, std::function<void()> body) {
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return ErrnoStatus("fork", errno);
  if (pid == 0) {
    BecomeWorker(parent, former_mask_, former_action_);
    body();
    ::_exit(0);
  }
  children_.push_back({.pid = pid, .name = std::move(name)});
  ++num_running_;
  return Status::Ok();
}

void LoadProcesses::Note(Child& child, const siginfo_t& event) {
  const std::string who = fmt::format("{} (process {})", child.name, child.pid);
  if (event.si_code == CLD_STOPPED) {
    stop_ = Failed("worker_stopped",
                   fmt::format("{} was stopped by {}", who, SignalName(event.si_status)));
    return;
  }
  child.has_ended = true;
  --num_running_;
  if (!death_.ok()) return;
  if (event.si_code != CLD_EXITED) {
    death_ =
        Failed("worker_died", fmt::format("{} was killed by {}", who, SignalName(event.si_status)));
  } else if (event.si_status != 0) {
    death_ =
        Failed("worker_died", fmt::format("{} ended with exit status {}", who, event.si_status));
  }
}

void LoadProcesses::Reap() {
  for (Child& child : children_) {
    while (!child.has_ended) {
      siginfo_t event = {};
      const int waited =
          ::waitid(P_PID, static_cast<id_t>(child.pid), &event, WEXITED | WSTOPPED | WNOHANG);
      if (waited != 0 && errno == EINTR) continue;
      if (waited != 0 || event.si_pid == 0) break;
      Note(child, event);
    }
  }
}

bool LoadProcesses::AwaitEnd(MonotonicTime deadline) {
  const bool knows_of_death = !death_.ok();
  while (true) {
    Reap();
    if (num_running_ == 0) return true;
    if ((!knows_of_death && !death_.ok()) || SystemClock().Now() >= deadline) return false;
    const timespec left = TimeLeft(deadline);
    ::ppoll(nullptr, 0, &left, &wait_mask_);
  }
}

void LoadProcesses::SignalAll(int signal) {
  for (const Child& child : children_) {
    if (!child.has_ended) ::kill(child.pid, signal);
  }
}

bool LoadProcesses::Kill() {
  SignalAll(SIGKILL);
  // Deaths at our own hands are nobody's fault.
  const Judgement death = death_;
  for (Child& child : children_) {
    while (!child.has_ended) {
      siginfo_t event = {};
      if (::waitid(P_PID, static_cast<id_t>(child.pid), &event, WEXITED) == 0) {
        Note(child, event);
      } else if (errno != EINTR) {
        break;
      }
    }
  }
  death_ = death;
  return num_running_ == 0;
}

Judgement LoadProcesses::Check() {
  Reap();
  return death_.ok() ? stop_ : death_;
}

}  // namespace pipeyard::load
