#include "controller/analysis/switches.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/units.h"
#include "proto/settings/definition.h"
#include "proto/settings/structure.h"
#include "proto/settings/variant.h"

namespace pipeyard::analysis {
namespace {

using Settings = std::map<std::string, std::string>;  // name -> canonical text of the value

Settings SettingsOf(const CellSamples& cell) {
  Settings settings;
  for (const v1::Setting& setting : cell.variant->settings.settings()) {
    const Result<settings::Value> value = settings::ValueFromProto(setting.value());
    settings[setting.name()] = value.ok() ? settings::CanonicalText(*value) : "";
  }
  return settings;
}

bool IsDefault(const std::string& workload, const std::string& name, const Settings& settings) {
  const auto found = settings.find(name);
  if (found == settings.end()) return true;
  const settings::Definition* definition = settings::FindDefinition(workload, name);
  return definition != nullptr &&
         found->second == settings::CanonicalText(definition->default_value);
}

// Switches that every sample recorded.
std::set<std::string> InertSwitchesOf(const CellSamples& cell) {
  std::set<std::string> inert;
  bool is_first = true;
  for (const storage::AttemptData* data : cell.samples) {
    const std::set<std::string> of_sample(data->inert_switches.begin(), data->inert_switches.end());
    if (is_first) inert = of_sample;
    is_first = false;
    std::erase_if(inert, [&](const std::string& name) { return !of_sample.contains(name); });
  }
  return inert;
}

}  // namespace

std::vector<std::string> InertDifference(const CellSamples& a, const CellSamples& b) {
  const std::string& workload = a.variant->settings.workload();
  if (workload != b.variant->settings.workload() ||
      a.variant->settings.target() != b.variant->settings.target()) {
    return {};
  }
  const std::set<std::string> inert_a = InertSwitchesOf(a);
  const std::set<std::string> inert_b = InertSwitchesOf(b);
  if (inert_a.empty() && inert_b.empty()) return {};
  const Settings of_a = SettingsOf(a);
  const Settings of_b = SettingsOf(b);
  std::set<std::string> names;
  for (const auto& [name, value] : of_a) names.insert(name);
  for (const auto& [name, value] : of_b) names.insert(name);
  std::vector<std::string> differing;
  for (const std::string& name : names) {
    const auto x = of_a.find(name);
    const auto y = of_b.find(name);
    if (x != of_a.end() && y != of_b.end() && x->second == y->second) continue;
    const bool is_recorded_a = inert_a.contains(name);
    const bool is_recorded_b = inert_b.contains(name);
    if (!is_recorded_a && !is_recorded_b) return {};
    if (!is_recorded_a && !IsDefault(workload, name, of_a)) return {};
    if (!is_recorded_b && !IsDefault(workload, name, of_b)) return {};
    differing.push_back(name);
  }
  return differing;
}

std::string ModelledWords(const CellSamples& cell) {
  if (!cell.IsEmulated()) return "";
  int64_t remote_access_ns = 0;
  for (const v1::Setting& setting : cell.variant->settings.settings()) {
    if (setting.name() != "engine.topology") continue;
    const auto topology = settings::ReadTopologySetting(setting.value().json());
    if (topology.ok() && topology->has_value()) remote_access_ns = (*topology)->remote_access_ns;
  }
  return "remote_access=" + FormatDuration(Nanos(remote_access_ns));
}

std::string ModelledWords(const CellSamples* a, const CellSamples* b) {
  const auto words_of = [](const CellSamples* cell) {
    return cell == nullptr || cell->samples.empty() ? std::string() : ModelledWords(*cell);
  };
  const std::string of_a = words_of(a);
  const std::string of_b = words_of(b);
  const bool is_one_sided =
      a == nullptr || b == nullptr || a->samples.empty() || b->samples.empty();
  if (of_a == of_b) return of_a;
  if (is_one_sided) return of_a.empty() ? of_b : of_a;
  return fmt::format("A {}, B {}", of_a.empty() ? "real" : of_a, of_b.empty() ? "real" : of_b);
}

}  // namespace pipeyard::analysis
