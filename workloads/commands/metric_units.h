// Units in which programs print, and the base units in which samples are stored.
//
// A rule names its unit; nothing is guessed from the output.
//
// Thread safety: pure functions over constants.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pipeyard::commands {

struct MetricUnit {
  std::string_view name;  // "MiB/s"
  std::string_view base;  // "B/s"
  double factor = 1;      // of the base unit
};

// nullopt for a unit that is unknown; KnownMetricUnits() lists the others, for messages.
std::optional<MetricUnit> FindMetricUnit(std::string_view name);
std::string KnownMetricUnits();

}  // namespace pipeyard::commands
