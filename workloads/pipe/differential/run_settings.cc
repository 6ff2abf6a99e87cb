#include "workloads/pipe/differential/run_settings.h"

#include "workloads/pipe/differential/operation.h"

namespace pipeyard::pipe::differential {

std::vector<std::pair<std::string, std::string>> FormatSettings(const RunSettings& settings) {
  return {{"page_cache", std::string(PageCacheName(settings.page_cache))},
          {"wakeup", std::string(WakeupName(settings.wakeup))},
          {"poll_wakeup", std::string(PollWakeupName(settings.poll_wakeup))},
          {"unprivileged", settings.is_unprivileged ? "on" : "off"},
          {"polls", settings.has_polls ? "on" : "off"},
          {"watches", settings.has_watches ? "on" : "off"},
          {"actors", std::to_string(settings.num_actors)}};
}

Result<RunSettings> ParseSettings(const std::vector<std::pair<std::string, std::string>>& pairs) {
  RunSettings settings;
  for (const auto& [name, value] : pairs) {
    if (name == "page_cache") {
      PIPEYARD_ASSIGN_OR_RETURN(settings.page_cache, ParsePageCache(value));
    } else if (name == "wakeup") {
      PIPEYARD_ASSIGN_OR_RETURN(settings.wakeup, ParseWakeup(value));
    } else if (name == "poll_wakeup") {
      PIPEYARD_ASSIGN_OR_RETURN(settings.poll_wakeup, ParsePollWakeup(value));
    } else if (name == "unprivileged") {
      PIPEYARD_ASSIGN_OR_RETURN(settings.is_unprivileged, ParseOnOff(name, value));
    } else if (name == "polls") {
      PIPEYARD_ASSIGN_OR_RETURN(settings.has_polls, ParseOnOff(name, value));
    } else if (name == "watches") {
      PIPEYARD_ASSIGN_OR_RETURN(settings.has_watches, ParseOnOff(name, value));
    } else if (name == "actors") {
      if (value.size() != 1 || value[0] < '1' || value[0] > '0' + kMaxActors) {
        return InvalidArgument("actors: 1 to " + std::to_string(kMaxActors));
      }
      settings.num_actors = value[0] - '0';
    } else {
      return InvalidArgument("there is no setting " + name);
    }
  }
  return settings;
}

}  // namespace pipeyard::pipe::differential
