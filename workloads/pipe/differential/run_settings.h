// RunSettings: what a program runs against: the engine's switches and whose eyes it is seen with.
// As `setting NAME VALUE` lines of a program, so that a printed case says all that it needs.
//
// Thread safety: a value.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "workloads/pipe/engine_config.h"

namespace pipeyard::pipe::differential {

struct RunSettings {
  PageCache page_cache = PageCache::kTwoPage;
  Wakeup wakeup = Wakeup::kWasFull;
  PollWakeup poll_wakeup = PollWakeup::kPollUsage;
  bool is_unprivileged = false;
  bool has_polls = true;
  bool has_watches = true;  // edge-triggered ones; not without polls
  int num_actors = 1;
};

std::vector<std::pair<std::string, std::string>> FormatSettings(const RunSettings& settings);
// Errors: kInvalidArgument names the setting.
Result<RunSettings> ParseSettings(const std::vector<std::pair<std::string, std::string>>& pairs);

}  // namespace pipeyard::pipe::differential
