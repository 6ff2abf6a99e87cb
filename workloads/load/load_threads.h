// LoadThreads: LoadWorkers as threads of this process.
//
// Where no thread can be made, Start() says so instead of throwing.
//
// Thread safety: as LoadWorkers.
#pragma once

#include <pthread.h>

#include <vector>

#include "workloads/load/load_workers.h"

namespace pipeyard::load {

class LoadThreads final : public LoadWorkers {
 public:
  LoadThreads() = default;
  LoadThreads(const LoadThreads&) = delete;
  LoadThreads& operator=(const LoadThreads&) = delete;
  // Abandons the threads that AwaitEnd() has not seen end.
  ~LoadThreads() override;

  WorkerKind kind() const override { return WorkerKind::kThreads; }
  Status Start(std::string name, std::function<void()> body) override;
  bool AwaitEnd(MonotonicTime deadline) override;
  void InterruptSystemCalls() override;
  bool Kill() override { return threads_.empty(); }
  Judgement Check() override { return {}; }

 private:
  // Not joined yet.
  std::vector<pthread_t> threads_;
};

}  // namespace pipeyard::load
