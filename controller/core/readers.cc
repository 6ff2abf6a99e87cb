#include "controller/core/readers.h"

#include <fmt/format.h>

#include <algorithm>

namespace pipeyard::core {

std::unique_ptr<Readers> Readers::WithThreads(int num_threads) {
  std::vector<std::unique_ptr<Executor>> executors;
  for (int i = 0; i < std::max(1, num_threads); ++i) {
    executors.push_back(std::make_unique<SerialExecutor>(fmt::format("reader{}", i)));
  }
  return std::make_unique<Readers>(std::move(executors));
}

}  // namespace pipeyard::core
