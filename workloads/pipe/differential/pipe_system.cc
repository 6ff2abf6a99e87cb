#include "workloads/pipe/differential/pipe_system.h"

#include "base/status.h"

namespace pipeyard::pipe::differential {

std::string DescribeOutcome(const Outcome& outcome) {
  std::string text = outcome.value < 0 ? ErrnoText(static_cast<int>(-outcome.value))
                                       : std::to_string(outcome.value);
  if (outcome.is_sigpipe) text += " and SIGPIPE";
  return text;
}

}  // namespace pipeyard::pipe::differential
