// Readers: a few threads for what must not run on the controller's loop: reads of the store, sweep
// files, statistics.
//
// Thread safety: Post() is thread-safe. Ownership: owns its executors; destroying it waits for the
// task that runs.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "base/executor.h"

namespace pipeyard::core {

class Readers {
 public:
  explicit Readers(std::vector<std::unique_ptr<Executor>> executors)
      : executors_(std::move(executors)) {}
  // `num_threads` threads; at least 1.
  static std::unique_ptr<Readers> WithThreads(int num_threads);

  // Runs `task` on any of them.
  void Post(Task task) {
    executors_[next_.fetch_add(1, std::memory_order_relaxed) % executors_.size()]->Post(
        std::move(task));
  }
  // Runs `task` after every task that was posted by this call.
  void PostInOrder(Task task) { executors_[0]->Post(std::move(task)); }

 private:
  const std::vector<std::unique_ptr<Executor>> executors_;
  std::atomic<size_t> next_{0};
};

}  // namespace pipeyard::core
