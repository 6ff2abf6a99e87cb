// Draft: a sweep between reading and expanding: its settings and factors, typed and placed.
//
// Thread safety: values.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/units.h"
#include "controller/spec/node.h"
#include "controller/spec/sweep.h"
#include "proto/settings/definition.h"

namespace pipeyard::spec {

struct Level {
  settings::Value value;
  std::string text;  // as written
  Place place;
};

struct Setting {
  std::string name;  // "writers", "engine.page_cache", "target"
  Place place;       // of the name
  Level level;
};

struct Factor {
  std::string name;
  Place place;
  std::vector<Level> levels;  // not empty and all different where the draft is expandable
};

struct ZipGroup {
  std::vector<std::string> names;
  Place place;
};

struct Exclusion {
  std::vector<Setting> match;  // ANDed
  Place place;
};

struct Comparison {
  std::string factor;
  Place factor_place;
  std::string baseline;
  Place baseline_place;
};

struct Draft {
  Sweep sweep;  // all but what expansion fills in
  Place workload_place;
  const settings::WorkloadDefinition* workload =
      nullptr;                    // nullptr: absent or unknown, already reported
  std::vector<Setting> settings;  // with target
  bool has_target_key = false;    // even if its value is wrong
  std::vector<Factor> factors;    // in file order
  std::vector<ZipGroup> zips;
  std::vector<Exclusion> exclusions;
  std::optional<Comparison> comparison;
  std::optional<Nanos> trial_timeout;
  Place trial_timeout_place;
  std::set<std::string> names_set;  // by --set
  // False where a factor or zip had a problem: then nothing can be said about combinations.
  bool is_expandable = true;

  const Factor* FindFactor(std::string_view name) const;
  const Setting* FindSetting(std::string_view name) const;
};

}  // namespace pipeyard::spec
