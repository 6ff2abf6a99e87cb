#include "workloads/memory/model/scheduler.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <unordered_set>

#include "workloads/memory/model/fiber.h"

namespace pipeyard::memory::model {
namespace {

uint64_t Mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15;
  return hash ^ (hash >> 29);
}

uint64_t HashOf(std::span<const std::byte> bytes) {
  // The standard library's; it depends on all bytes and nothing else.
  return std::hash<std::string_view>()({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

class Explorer {
 public:
  Explorer(const Scenario& scenario, uint64_t max_runs)
      : scenario_(scenario), max_runs_(max_runs), threads_(scenario.threads.size()) {
    for (size_t i = 0; i < threads_.size(); ++i) {
      threads_[i].fiber = std::make_unique<Fiber>([this, i] {
        scenario_.threads[i]();
        threads_[i].is_done = true;
        Switch();
      });
    }
  }

  ExplorationResult Run();

  void BeforeStep(const char* what, const void* where) {
    Thread& thread = threads_[running_];
    thread.next_what = what;
    thread.next_where = where;
    Switch();
    // How far it is belongs to what it knows.
    Observe(1);
  }
  void Forget() { threads_[running_].observed = 0; }
  // What a thread may look at once it holds a lock.
  void ObserveMemory() { Observe(HashOf(scenario_.memory)); }
  void Observe(uint64_t value) {
    threads_[running_].observed = Mix(threads_[running_].observed, value);
  }
  void WaitFor(const void* address) {
    threads_[running_].waits_for = address;
    threads_[running_].wait_order = ++wait_order_;
    Switch();
  }
  void Wake(const void* address, int count) {
    for (; count > 0; --count) {
      Thread* longest = nullptr;
      for (Thread& thread : threads_) {
        if (thread.waits_for == address &&
            (longest == nullptr || thread.wait_order < longest->wait_order)) {
          longest = &thread;
        }
      }
      if (longest == nullptr) return;
      longest->waits_for = nullptr;
    }
  }

 private:
  struct Thread {
    std::unique_ptr<Fiber> fiber;
    bool is_done = false;
    const void* waits_for = nullptr;
    uint64_t wait_order = 0;
    uint64_t observed = 0;
    const char* next_what = "begin";
    const void* next_where = nullptr;
  };
  // A point where several threads could go on, and the one that the present run lets go on.
  struct Choice {
    std::vector<uint8_t> threads;
    size_t taken = 0;
  };

  void RunOnce();
  // Lets the next thread go on, or ends the run. Returns when the calling thread goes on.
  void Switch();
  // The thread that goes on; -1: the run ends here.
  int Choose();
  uint64_t StateHash() const;
  std::string Trace() const;

  const Scenario& scenario_;
  const uint64_t max_runs_;
  std::vector<Thread> threads_;
  size_t running_ = 0;
  uint64_t wait_order_ = 0;
  std::vector<Choice> choices_;  // of the run
  size_t depth_ = 0;             // choices made so far in the run
  std::vector<std::pair<uint8_t, const char*>> trace_;
  std::unordered_set<uint64_t> seen_;
  ExplorationResult result_;
};

Explorer* g_explorer = nullptr;

uint64_t Explorer::StateHash() const {
  uint64_t hash = HashOf(scenario_.memory);
  for (const Thread& thread : threads_) {
    hash = Mix(hash, thread.observed);
    hash = Mix(hash, reinterpret_cast<uintptr_t>(thread.next_where));
    hash = Mix(hash, thread.is_done ? 1 : thread.waits_for != nullptr ? 2 : 3);
    // Only the order among those who wait matters.
    uint64_t rank = 0;
    for (const Thread& other : threads_) {
      rank += other.waits_for != nullptr && other.wait_order < thread.wait_order;
    }
    hash = Mix(hash, thread.waits_for != nullptr ? rank : 0);
  }
  return hash;
}

int Explorer::Choose() {
  Choice choice;
  const auto add = [&](size_t i) {
    if (!threads_[i].is_done && threads_[i].waits_for == nullptr) {
      choice.threads.push_back(static_cast<uint8_t>(i));
    }
  };
  // The one that runs goes on first: that costs no switch.
  add(running_);
  for (size_t i = 0; i < threads_.size(); ++i) {
    if (i != running_) add(i);
  }
  if (choice.threads.empty()) {
    const bool all_done =
        std::all_of(threads_.begin(), threads_.end(), [](const Thread& t) { return t.is_done; });
    if (all_done) {
      result_.fault = scenario_.check();
    } else {
      result_.fault = "some thread sleeps for ever";
    }
    if (!result_.fault.empty()) result_.fault += Trace();
    return -1;
  }
  if (depth_ == choices_.size()) {
    // A state that was seen before leads nowhere new.
    if (!seen_.insert(StateHash()).second) return -1;
    choices_.push_back(std::move(choice));
  }
  const Choice& chosen = choices_[depth_];
  ++depth_;
  return chosen.threads[chosen.taken];
}

void Explorer::Switch() {
  const size_t caller = running_;
  const int next = Choose();
  if (next < 0) {
    threads_[caller].fiber->LeaveToMain();
    return;
  }
  running_ = static_cast<size_t>(next);
  trace_.emplace_back(static_cast<uint8_t>(next), threads_[running_].next_what);
  if (running_ != caller) threads_[caller].fiber->SwitchTo(*threads_[running_].fiber);
}

void Explorer::RunOnce() {
  scenario_.reset();
  for (Thread& thread : threads_) {
    thread.is_done = false;
    thread.waits_for = nullptr;
    thread.observed = 0;
    thread.next_what = "begin";
    thread.next_where = nullptr;
    thread.fiber->Reset();
  }
  wait_order_ = 0;
  depth_ = 0;
  trace_.clear();
  running_ = 0;
  const int first = Choose();
  if (first < 0) return;
  running_ = static_cast<size_t>(first);
  trace_.emplace_back(static_cast<uint8_t>(first), "begin");
  threads_[running_].fiber->EnterFromMain();
}

ExplorationResult Explorer::Run() {
  g_explorer = this;
  while (result_.num_runs < max_runs_) {
    ++result_.num_runs;
    RunOnce();
    if (!result_.fault.empty()) break;
    while (!choices_.empty() && choices_.back().taken + 1 == choices_.back().threads.size()) {
      choices_.pop_back();
    }
    if (choices_.empty()) {
      result_.is_complete = true;
      break;
    }
    ++choices_.back().taken;
  }
  g_explorer = nullptr;
  result_.num_states = seen_.size();
  return result_;
}

std::string Explorer::Trace() const {
  std::string text = "\n";
  for (const auto& [thread, what] : trace_) {
    text += "  thread " + std::to_string(thread) + " " + what + "\n";
  }
  return text;
}

}  // namespace

ExplorationResult Explore(const Scenario& scenario, uint64_t max_runs) {
  return Explorer(scenario, max_runs).Run();
}

// Outside an exploration (a scenario's reset) there is nobody to switch to.
void BeforeStep(const char* what, const void* where) {
  if (g_explorer != nullptr && Fiber::IsInside()) g_explorer->BeforeStep(what, where);
}
void Observe(uint64_t value) {
  if (g_explorer != nullptr && Fiber::IsInside()) g_explorer->Observe(value);
}
void ForgetHistory() {
  if (g_explorer != nullptr && Fiber::IsInside()) g_explorer->Forget();
}
void WaitUntilWoken(const void* address) { g_explorer->WaitFor(address); }
void WakeThreads(const void* address, int count) { g_explorer->Wake(address, count); }

void ModelMutex::Lock() {
  BeforeStep("lock", this);
  while (is_locked_) WaitUntilWoken(this);
  is_locked_ = true;
  if (g_explorer != nullptr && Fiber::IsInside()) g_explorer->ObserveMemory();
}

// Not a step: to whom it matters, it is all the same whether the lock was left now or just before
// the next step of this thread (Lipton's reduction).
void ModelMutex::Unlock() {
  is_locked_ = false;
  WakeThreads(this, 1000);
}

}  // namespace pipeyard::memory::model
