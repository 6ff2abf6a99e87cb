#include "base/executor.h"

#include <pthread.h>

#include <iterator>
#include <vector>

namespace pipeyard {

SerialExecutor::SerialExecutor(std::string name) : name_(std::move(name)) {
  thread_ = std::thread([this]() noexcept { Run(); });
}

SerialExecutor::~SerialExecutor() { Stop(); }

void SerialExecutor::Post(Task task) { PostAfter(Nanos(0), std::move(task)); }

TimerId SerialExecutor::PostAfter(Nanos delay, Task task) {
  MutexLock lock(mutex_);
  const TimerId id = next_sequence_++;
  if (is_stopping_) return id;
  const bool is_timer = delay > Nanos(0);
  const MonotonicTime now = SystemClock().Now();
  entries_.emplace(std::pair(is_timer ? now + delay : now, id), Entry{std::move(task), is_timer});
  changed_.NotifyOne();
  return id;
}

bool SerialExecutor::Cancel(TimerId id) {
  // Destroyed without the mutex: what a task holds may post when it goes.
  Entries::node_type canceled;
  MutexLock lock(mutex_);
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    if (it->first.second == id) {
      canceled = entries_.extract(it);
      return true;
    }
  }
  return false;
}

void SerialExecutor::Stop() {
  std::vector<Entries::node_type> timers;
  {
    MutexLock lock(mutex_);
    is_stopping_ = true;
    for (auto it = entries_.begin(); it != entries_.end();) {
      const auto next = std::next(it);
      if (it->second.is_timer) timers.push_back(entries_.extract(it));
      it = next;
    }
    changed_.NotifyOne();
  }
  if (thread_.joinable()) thread_.join();
}

void SerialExecutor::Run() {
  ::pthread_setname_np(::pthread_self(), name_.substr(0, 15).c_str());
  for (;;) {
    Task task;
    {
      MutexLock lock(mutex_);
      for (;;) {
        if (entries_.empty()) {
          if (is_stopping_) return;
          changed_.Wait(mutex_);
          continue;
        }
        const MonotonicTime due = entries_.begin()->first.first;
        const MonotonicTime now = SystemClock().Now();
        if (due <= now) break;
        changed_.WaitFor(mutex_, due - now);
      }
      task = std::move(entries_.begin()->second.task);
      entries_.erase(entries_.begin());
    }
    task();
  }
}

void FakeExecutor::Post(Task task) { PostAfter(Nanos(0), std::move(task)); }

TimerId FakeExecutor::PostAfter(Nanos delay, Task task) {
  const TimerId id = next_sequence_++;
  tasks_.emplace(std::pair(clock_.Now() + delay, id), std::move(task));
  return id;
}

bool FakeExecutor::Cancel(TimerId id) {
  for (auto it = tasks_.begin(); it != tasks_.end(); ++it) {
    if (it->first.second == id) {
      tasks_.erase(it);
      return true;
    }
  }
  return false;
}

int FakeExecutor::RunUntilIdle() {
  int num_run = 0;
  while (!tasks_.empty() && tasks_.begin()->first.first <= clock_.Now()) {
    Task task = std::move(tasks_.begin()->second);
    tasks_.erase(tasks_.begin());
    task();
    ++num_run;
  }
  return num_run;
}

void FakeExecutor::Advance(Nanos by) {
  const MonotonicTime end = clock_.Now() + by;
  RunUntilIdle();
  while (!tasks_.empty() && tasks_.begin()->first.first <= end) {
    clock_.Advance(tasks_.begin()->first.first - clock_.Now());
    RunUntilIdle();
  }
  clock_.Advance(end - clock_.Now());
}

}  // namespace pipeyard
