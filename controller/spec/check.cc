#include "controller/spec/check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/units.h"
#include "controller/spec/names.h"
#include "controller/spec/policy_nodes.h"
#include "proto/settings/command_parameters.h"
#include "proto/settings/parse.h"

namespace pipeyard::spec {
namespace {

using settings::Value;

// Every level that the draft gives to `name`, as setting or as factor.
std::vector<const Level*> LevelsOf(const Draft& draft, std::string_view name) {
  std::vector<const Level*> levels;
  if (const Setting* setting = draft.FindSetting(name)) levels.push_back(&setting->level);
  if (const Factor* factor = draft.FindFactor(name)) {
    for (const Level& level : factor->levels) levels.push_back(&level);
  }
  return levels;
}

void CheckTargets(const Draft& draft, Problems& problems) {
  const std::vector<const Level*> targets = LevelsOf(draft, "target");
  const settings::WorkloadDefinition* const workload = draft.workload;
  if (workload == nullptr) return;
  if (targets.empty()) {
    const bool was_tried = draft.has_target_key || draft.FindFactor("target") != nullptr;
    if (workload->targets.size() > 1 && !was_tried) {
      problems.Error(draft.workload_place, "the key 'target' is missing",
                     fmt::format("target: {}", fmt::join(workload->targets, " or ")));
    }
    if (workload->targets.size() > 1) return;
  }
  bool has_engine = targets.empty() && workload->targets.front() == "engine";
  for (const Level* level : targets) {
    const std::string& target = std::get<std::string>(level->value);
    has_engine = has_engine || target == "engine";
    if (std::find(workload->targets.begin(), workload->targets.end(), target) ==
        workload->targets.end()) {
      problems.Error(level->place,
                     fmt::format("target: workload {} does not drive '{}'", workload->name, target),
                     fmt::format("{}", fmt::join(workload->targets, " or ")));
    }
  }
  if (has_engine) return;
  const auto refuse = [&](const std::string& name, Place place) {
    if (!name.starts_with("engine.")) return;
    problems.Error(place, fmt::format("'{}' is given, but no variant targets the engine", name),
                   "target: engine");
  };
  for (const Setting& setting : draft.settings) refuse(setting.name, setting.place);
  for (const Factor& factor : draft.factors) refuse(factor.name, factor.place);
}

// Which command it is, as setting or as factor.
void CheckCommand(const Draft& draft, Problems& problems) {
  if (draft.workload == nullptr || draft.workload->name != "command") return;
  const std::vector<const Level*> commands = LevelsOf(draft, "command");
  if (commands.empty() && draft.FindFactor("command") == nullptr) {
    problems.Error(draft.workload_place, "the key 'command' is missing",
                   "command: NAME, of the hosts' commands.d (docs/COMMANDS.md)");
  }
  for (const Level* level : commands) {
    const std::string& name = std::get<std::string>(level->value);
    if (settings::IsCommandWord(name)) continue;
    problems.Error(level->place, fmt::format("command: '{}' is no name of a command", name),
                   "lower-case letters, digits, - and _, such as hackbench");
  }
}

void CheckSupport(const Draft& draft, Problems& problems) {
  for (const Setting& setting : draft.settings) {
    CheckLevelSupported(draft.workload, setting.name, setting.level, problems);
  }
  for (const Factor& factor : draft.factors) {
    for (const Level& level : factor.levels) {
      CheckLevelSupported(draft.workload, factor.name, level, problems);
    }
  }
}

void CheckZips(Draft& draft, Problems& problems) {
  std::set<std::string> zipped;
  for (const ZipGroup& group : draft.zips) {
    std::vector<std::string> shown;
    std::set<size_t> lengths;
    for (const std::string& name : group.names) {
      const Factor* const factor = draft.FindFactor(name);
      if (factor == nullptr) {
        problems.Error(group.place, fmt::format("zip: '{}' is no factor", name),
                       "names that stand under factors");
        draft.is_expandable = false;
        continue;
      }
      if (!zipped.insert(name).second) {
        problems.Error(group.place, fmt::format("zip: '{}' is zipped twice", name));
        draft.is_expandable = false;
      }
      shown.push_back(fmt::format("{} has {}", name, factor->levels.size()));
      lengths.insert(factor->levels.size());
    }
    // After another problem lengths may be those of what could be read.
    if (draft.is_expandable && lengths.size() > 1) {
      problems.Error(group.place,
                     fmt::format("zip: factors of unequal length: {}", fmt::join(shown, ", ")),
                     "as many levels in each");
      draft.is_expandable = false;
    }
  }
}

void CheckComparison(Draft& draft, Problems& problems) {
  if (!draft.comparison) return;
  const Comparison& comparison = *draft.comparison;
  const Factor* const factor = draft.FindFactor(comparison.factor);
  if (factor == nullptr) {
    std::vector<std::string_view> known;
    for (const Factor& each : draft.factors) known.push_back(each.name);
    problems.Error(comparison.factor_place,
                   fmt::format("compare: '{}' is no factor", comparison.factor),
                   known.empty() ? "a name that stands under factors"
                                 : fmt::format("one of {}", fmt::join(known, ", ")));
    return;
  }
  if (factor->levels.empty()) return;
  std::optional<Value> baseline;
  if (comparison.factor == "target" || draft.workload == nullptr) {
    baseline = comparison.baseline;
  } else if (const auto* definition =
                 settings::FindDefinition(draft.workload->name, comparison.factor)) {
    Result<Value> parsed = settings::ParseValue(*definition, comparison.baseline);
    if (parsed.ok()) baseline = *std::move(parsed);
  }
  std::vector<std::string_view> levels;
  for (const Level& level : factor->levels) {
    levels.push_back(level.text);
    if (level.text == comparison.baseline || (baseline && level.value == *baseline)) {
      draft.sweep.compare_baseline = level.text;
    }
  }
  draft.sweep.compare_factor = comparison.factor;
  if (draft.sweep.compare_baseline.empty() && draft.is_expandable) {
    problems.Error(
        comparison.baseline_place,
        fmt::format("compare: baseline '{}' is no level of {}", comparison.baseline, factor->name),
        fmt::format("one of {}", fmt::join(levels, ", ")));
  } else if (levels.size() == 1 && draft.is_expandable) {
    const std::string what = fmt::format("compare: {} has one level only", factor->name);
    if (draft.names_set.count(factor->name) > 0) {
      problems.Warning(comparison.factor_place, what + " since --set", "nothing will be compared");
    } else {
      problems.Error(comparison.factor_place, what, "at least two, or no compare");
    }
  }
}

}  // namespace

void CheckDraft(Draft& draft, Problems& problems) {
  CheckTargets(draft, problems);
  CheckCommand(draft, problems);
  CheckSupport(draft, problems);
  CheckZips(draft, problems);
  CheckComparison(draft, problems);
}

void CheckVariants(const Draft& draft, Problems& problems) {
  CheckPolicyNodes(draft, problems);
  std::map<std::string, std::set<std::string>> arms;  // by comparison
  for (const SweepVariant& variant : draft.sweep.variants) {
    if (!variant.arm.empty()) arms[variant.comparison].insert(variant.arm);
    const Nanos needed = CommandedTime(variant.variant);
    if (!draft.trial_timeout || *draft.trial_timeout > needed) continue;
    problems.Error(
        draft.trial_timeout_place,
        fmt::format("limits.trial_timeout: {} is no longer than warm-up and duration, {}",
                    FormatDuration(*draft.trial_timeout), FormatDuration(needed)),
        "more, or leave it out");
  }
  const Factor* const factor =
      draft.comparison ? draft.FindFactor(draft.comparison->factor) : nullptr;
  if (factor == nullptr || factor->levels.size() < 2) return;
  for (const auto& [comparison, present] : arms) {
    const bool has_baseline = present.count(draft.sweep.compare_baseline) > 0;
    if (has_baseline && present.size() > 1) continue;
    problems.Warning(draft.comparison->factor_place,
                     fmt::format("compare: '{}' has {} only", comparison, fmt::join(present, ", ")),
                     "it will not be compared");
  }
}

}  // namespace pipeyard::spec
