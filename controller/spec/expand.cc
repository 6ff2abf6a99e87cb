#include "controller/spec/expand.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "controller/spec/check.h"
#include "proto/settings/parse.h"

namespace pipeyard::spec {
namespace {

using settings::Definition;
using settings::Value;
using settings::Variant;

// A trial may take its own time five times over, and as long again as it takes to start on a loaded
// machine.
constexpr Nanos kTimeoutBase = Seconds(30);
constexpr int kTimeoutFactor = 5;
// For workloads that end by themselves.
constexpr Nanos kTimeoutUntimed = Minutes(10);

// One level of each factor, by the factor's position in the draft.
using Combination = std::vector<size_t>;

// Factors that advance together, by position; one alone is an axis too.
using Axis = std::vector<size_t>;

size_t PositionOf(const Draft& draft, std::string_view name) {
  return static_cast<size_t>(draft.FindFactor(name) - draft.factors.data());
}

std::vector<Axis> AxesOf(const Draft& draft) {
  std::vector<Axis> axes;
  std::set<size_t> seen;
  for (size_t i = 0; i < draft.factors.size(); ++i) {
    if (seen.count(i) > 0) continue;
    Axis axis{i};
    for (const ZipGroup& group : draft.zips) {
      const auto& names = group.names;
      if (std::find(names.begin(), names.end(), draft.factors[i].name) == names.end()) continue;
      for (const std::string& name : names) {
        if (const size_t other = PositionOf(draft, name); other != i) axis.push_back(other);
      }
    }
    seen.insert(axis.begin(), axis.end());
    axes.push_back(std::move(axis));
  }
  return axes;
}

// The product of the axes, the first varying slowest. Empty after a problem.
std::vector<Combination> Product(const Draft& draft, const std::vector<Axis>& axes,
                                 Problems& problems) {
  size_t size = 1;
  for (const Axis& axis : axes) {
    size *= draft.factors[axis.front()].levels.size();
    if (size > kMaxVariants) {
      problems.Error(
          draft.factors.front().place,
          fmt::format("the product of the factors has more than {} combinations", kMaxVariants),
          "fewer factors or levels, or zip");
      return {};
    }
  }
  std::vector<Combination> combinations;
  combinations.reserve(size);
  for (size_t n = 0; n < size; ++n) {
    Combination combination(draft.factors.size());
    size_t rest = n;
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
      const size_t levels = draft.factors[axis->front()].levels.size();
      for (const size_t factor : *axis) combination[factor] = rest % levels;
      rest /= levels;
    }
    combinations.push_back(std::move(combination));
  }
  return combinations;
}

// What the combination gives a setting, or its default; nullptr where there is neither.
const Value* ValueIn(const Draft& draft, const Combination& combination, const std::string& name) {
  for (size_t i = 0; i < draft.factors.size(); ++i) {
    if (draft.factors[i].name == name) return &draft.factors[i].levels[combination[i]].value;
  }
  if (const Setting* setting = draft.FindSetting(name)) return &setting->level.value;
  const Definition* definition =
      draft.workload == nullptr ? nullptr : settings::FindDefinition(draft.workload->name, name);
  return definition == nullptr ? nullptr : &definition->default_value;
}

bool Matches(const Draft& draft, const Combination& combination, const Exclusion& exclusion) {
  return std::all_of(exclusion.match.begin(), exclusion.match.end(), [&](const Setting& wanted) {
    const Value* const value = ValueIn(draft, combination, wanted.name);
    return value != nullptr && *value == wanted.level.value;
  });
}

void Exclude(const Draft& draft, std::vector<Combination>& combinations, Problems& problems) {
  std::vector<bool> is_excluded(combinations.size(), false);
  for (const Exclusion& exclusion : draft.exclusions) {
    bool has_match = false;
    for (size_t i = 0; i < combinations.size(); ++i) {
      if (!Matches(draft, combinations[i], exclusion)) continue;
      is_excluded[i] = true;
      has_match = true;
    }
    if (has_match) continue;
    const bool is_emptied =
        std::any_of(exclusion.match.begin(), exclusion.match.end(),
                    [&](const Setting& wanted) { return draft.names_set.count(wanted.name) > 0; });
    if (is_emptied) {
      problems.Warning(exclusion.place, "exclude: excludes nothing since --set");
    } else {
      problems.Error(exclusion.place, "exclude: excludes nothing",
                     "levels that the factors have together");
    }
  }
  std::vector<Combination> kept;
  for (size_t i = 0; i < combinations.size(); ++i) {
    if (!is_excluded[i]) kept.push_back(std::move(combinations[i]));
  }
  combinations = std::move(kept);
  if (combinations.empty()) {
    problems.Error(draft.exclusions.front().place, "exclude: nothing is left to run");
  }
}

Nanos UsualTimeout(const Variant& variant) {
  const Nanos commanded = CommandedTime(variant);
  return commanded == Nanos(0) ? kTimeoutUntimed : kTimeoutBase + kTimeoutFactor * commanded;
}

class VariantMaker {
 public:
  VariantMaker(Draft& draft, const std::vector<Axis>& axes) : draft_(draft) {
    for (const Factor& factor : draft.factors) names_.push_back(factor.name);
    std::set<size_t> compared;
    for (const Axis& axis : axes) {
      if (!draft.comparison) break;
      const size_t position = PositionOf(draft, draft.comparison->factor);
      if (std::find(axis.begin(), axis.end(), position) == axis.end()) continue;
      compared.insert(axis.begin(), axis.end());
    }
    for (size_t i = 0; i < names_.size(); ++i) {
      if (compared.count(i) == 0) names_beside_compared_.push_back(names_[i]);
    }
  }

  // Appends the variant of a combination unless it equals an earlier one.
  void Add(const Combination& combination, Problems& problems) {
    std::map<std::string, Value> given;
    std::string target;
    const auto give = [&](const std::string& name, const Value& value) {
      if (name == "target") {
        target = std::get<std::string>(value);
      } else {
        given[name] = value;
      }
    };
    for (const Setting& setting : draft_.settings) give(setting.name, setting.level.value);
    for (size_t i = 0; i < combination.size(); ++i) {
      give(names_[i], draft_.factors[i].levels[combination[i]].value);
    }
    if (target.empty()) target = std::string(draft_.workload->targets.front());
    Result<Variant> variant =
        settings::MakeVariant(std::string(draft_.workload->name), target, given);
    if (!variant.ok()) {
      problems.Error(draft_.workload_place, "workload", variant.status());
      return;
    }
    std::string id = settings::VariantId(*variant);
    if (!ids_.insert(id).second) return;
    SweepVariant made;
    made.variant = *std::move(variant);
    made.variant_id = std::move(id);
    made.text = settings::VariantText(made.variant, names_);
    made.comparison = settings::VariantText(made.variant, names_beside_compared_);
    made.arm = ArmOf(combination, made.variant);
    made.trial_timeout = draft_.trial_timeout.value_or(UsualTimeout(made.variant));
    draft_.sweep.variants.push_back(std::move(made));
  }

 private:
  std::string ArmOf(const Combination& combination, const Variant& variant) const {
    if (!draft_.comparison) return {};
    const std::string& factor = draft_.comparison->factor;
    if (factor != "target" && variant.values.count(factor) == 0) return {};
    const size_t position = PositionOf(draft_, factor);
    return draft_.factors[position].levels[combination[position]].text;
  }

  Draft& draft_;
  std::vector<std::string> names_;
  std::vector<std::string> names_beside_compared_;
  std::set<std::string> ids_;
};

}  // namespace

void ExpandDraft(Draft& draft, Problems& problems) {
  CheckDraft(draft, problems);
  if (!draft.is_expandable) return;
  const std::vector<Axis> axes = AxesOf(draft);
  std::vector<Combination> combinations = Product(draft, axes, problems);
  if (combinations.empty()) return;
  Exclude(draft, combinations, problems);
  if (problems.has_errors()) return;
  VariantMaker maker(draft, axes);
  for (const Combination& combination : combinations) maker.Add(combination, problems);
  CheckVariants(draft, problems);
}

}  // namespace pipeyard::spec
