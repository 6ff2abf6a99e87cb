// Sweep: a sweep file after reading, checking and expanding; what the CLI validates and the
// controller makes a run of.
//
// Reading never throws and never stops at the first problem. Every key of the grammar
// (docs/SWEEPS.md) parses; one that this version does not execute is a problem "not supported yet".
//
// Thread safety: values and pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "proto/settings/variant.h"
#include "proto/yaml/problems.h"

namespace pipeyard::spec {

using yaml::Problem;

struct HostSelector {  // ANDed; empty lists restrict nothing
  std::vector<std::string> classes;
  std::vector<std::string> names;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> not_labels;
  uint32_t min_nodes = 1;
};

enum class OrderKind { kBlocked, kRandom, kListed };

struct SweepVariant {
  settings::Variant variant;
  std::string variant_id;
  std::string text;  // the settings that vary within the sweep
  std::string arm;   // level of the compared factor as written; empty for a variant without it
  std::string comparison;  // `text` without the compared factor
  Nanos trial_timeout{0};
};

struct Sweep {
  std::string name;
  std::string workload;
  HostSelector hosts;
  std::map<std::string, std::string> expect;
  std::string compare_factor;    // "engine.page_cache"; empty without compare
  std::string compare_baseline;  // a level as written
  std::vector<SweepVariant>
      variants;  // in file order, merged where equal; never empty in a valid sweep
  uint32_t repetitions_min = 6;
  uint32_t repetitions_max = 6;
  OrderKind order = OrderKind::kBlocked;
  std::optional<uint64_t> seed;  // absent: drawn at submit and stored
  uint32_t attempts_limit = 3;
  Nanos host_wait = Minutes(10);
  bool stops_host_on_crash = true;
  std::map<std::string, double> min_change;  // by metric, fraction; absent: 2 %
  std::map<std::string, std::string> labels;
  int32_t priority = 0;
};

struct ReadResult {
  // Meaningful only where no problem is an error.
  Sweep sweep;
  std::vector<Problem> problems;  // by line, then column
  bool ok() const;
};

// Reads `yaml`; `sets` are `--set NAME=VALUE` texts, applied in order. Limits: 1 MiB of text, 64
// levels deep, 10,000 variants.
ReadResult ReadSweep(std::string_view yaml, const std::vector<std::string>& sets);

}  // namespace pipeyard::spec
