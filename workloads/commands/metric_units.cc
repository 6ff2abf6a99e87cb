#include "workloads/commands/metric_units.h"

#include <algorithm>
#include <array>

namespace pipeyard::commands {
namespace {

constexpr double kKiB = 1024;
constexpr double kMiB = 1024 * kKiB;
constexpr double kGiB = 1024 * kMiB;

constexpr std::array<MetricUnit, 24> kUnits{{
    {"ns", "ns", 1},
    {"us", "ns", 1e3},
    {"ms", "ns", 1e6},
    {"s", "ns", 1e9},
    {"B", "B", 1},
    {"KiB", "B", kKiB},
    {"MiB", "B", kMiB},
    {"GiB", "B", kGiB},
    {"kB", "B", 1e3},
    {"MB", "B", 1e6},
    {"GB", "B", 1e9},
    {"B/s", "B/s", 1},
    {"KiB/s", "B/s", kKiB},
    {"MiB/s", "B/s", kMiB},
    {"GiB/s", "B/s", kGiB},
    {"kB/s", "B/s", 1e3},
    {"MB/s", "B/s", 1e6},
    {"GB/s", "B/s", 1e9},
    {"1/s", "1/s", 1},
    {"k/s", "1/s", 1e3},
    {"M/s", "1/s", 1e6},
    {"count", "count", 1},
    {"fraction", "fraction", 1},
    {"%", "fraction", 0.01},
}};

}  // namespace

std::optional<MetricUnit> FindMetricUnit(std::string_view name) {
  const auto found = std::find_if(kUnits.begin(), kUnits.end(),
                                  [&](const MetricUnit& unit) { return unit.name == name; });
  if (found == kUnits.end()) return std::nullopt;
  return *found;
}

std::string KnownMetricUnits() {
  std::string text;
  for (const MetricUnit& unit : kUnits) {
    if (!text.empty()) text += ", ";
    text += unit.name;
  }
  return text;
}

}  // namespace pipeyard::commands
