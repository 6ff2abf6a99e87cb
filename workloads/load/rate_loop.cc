#include "workloads/load/rate_loop.h"

namespace pipeyard::load {

Judgement JudgeTaskErrors(std::span<const TaskAccount> accounts) {
  for (size_t i = 0; i < accounts.size(); ++i) {
    const int error = accounts[i].error;
    if (error == 0 || error == EINTR) continue;
    return Failed("operation_failed", "task " + std::to_string(i) + ": " + ErrnoText(error));
  }
  return {};
}

}  // namespace pipeyard::load
