// A stored run for tests, built cell by cell with readable numbers.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "storage/records.h"
#include "storage/store.h"

namespace pipeyard::analysis::testing {

// What one trial of a cell ended with. No value = the outcome was not ok.
struct TrialSpec {
  std::optional<double> throughput;
  storage::Outcome outcome = storage::Outcome::kOk;
  std::string boot = "boot-1";
};

// Builds a blocked run of sweep "prealloc" that compares engine.page_cache with baseline two-page.
// Trial i of a cell is in block i.
class RunBuilder {
 public:
  explicit RunBuilder(std::string run_id) {
    run.run_id = std::move(run_id);
    run.sweep = "prealloc";
    run.order_kind = "blocked";
    run.compare_factor = "engine.page_cache";
    run.compare_baseline = "two-page";
    run.state = storage::RunState::kFinished;
  }

  // A variant whose id follows from its text.
  uint32_t Variant(const std::string& comparison, const std::string& arm) {
    storage::VariantRecord variant;
    variant.variant_index = static_cast<uint32_t>(run.variants.size());
    variant.arm = arm;
    variant.comparison = comparison;
    variant.text = comparison;
    if (!arm.empty()) {
      variant.text += (comparison.empty() ? "" : ";") + ("engine.page_cache=" + arm);
    }
    variant.variant_id = fmt::format("{:016x}", std::hash<std::string>()(variant.text));
    variant.settings.set_workload("transfer");
    variant.settings.set_workload_version(1);
    run.variants.push_back(variant);
    return variant.variant_index;
  }

  void Cell(const std::string& host, uint32_t variant, const std::vector<TrialSpec>& trials) {
    storage::CellRecord cell;
    cell.host_id = "id-of-" + host;
    cell.host_name = host;
    cell.variant_index = variant;
    for (const TrialSpec& spec : trials) {
      const auto index = static_cast<uint32_t>(cell.trials.size() + 1);
      const bool is_ok = spec.outcome == storage::Outcome::kOk;
      cell.trials.push_back({index, index, 0,
                             is_ok ? storage::TrialState::kDone
                             : spec.outcome == storage::Outcome::kVoid
                                 ? storage::TrialState::kVoid
                                 : storage::TrialState::kFailed});
      Attempt(cell, index, spec);
    }
    run.cells.push_back(cell);
  }

  void Values(const std::string& host, uint32_t variant, const std::vector<double>& throughput,
              const std::string& boot = "boot-1") {
    std::vector<TrialSpec> trials;
    for (double value : throughput) trials.push_back({value, storage::Outcome::kOk, boot});
    Cell(host, variant, trials);
  }

  void Attempt(const storage::CellRecord& cell, uint32_t trial_index, const TrialSpec& spec) {
    storage::AttemptData data;
    data.trial = {run.run_id, cell.host_id, cell.variant_index, trial_index};
    data.block = trial_index;
    data.attempt.attempt_id = fmt::format("{}-attempt-{}", run.run_id, attempts.size() + 1);
    data.attempt.number = 1;
    data.attempt.outcome = spec.outcome;
    data.attempt.boot_id = spec.boot;
    data.attempt.ended_utc = static_cast<int64_t>(attempts.size() + 1);
    data.emulated = emulated;
    data.inert_switches = inert_switches;
    if (spec.throughput) {
      v1::Metric metric;
      metric.set_name("throughput");
      metric.set_unit(unit);
      metric.set_reducer("rate");
      metric.set_better(v1::DIRECTION_HIGHER);
      metric.set_value(*spec.throughput);
      data.metrics.push_back(metric);
    }
    attempts.push_back(std::move(data));
  }

  storage::RunRecord run;
  std::vector<storage::AttemptData> attempts;
  // Of the attempts that follow.
  bool emulated = false;
  std::vector<std::string> inert_switches;
  std::string unit = "B/s";
};

// Six blocks of a baseline, and of what is better by a fifth.
inline const std::vector<double> kBase{100, 101, 99, 102, 98, 100.5};
inline const std::vector<double> kBetter{120, 121, 119, 122, 118, 120.5};

// One host, the two of them as two-page and prealloc.
inline RunBuilder TwoArms(const std::string& run_id = "run-a", const std::string& boot = "boot-1") {
  RunBuilder builder(run_id);
  builder.Values("vera", builder.Variant("writers=1", "two-page"), kBase, boot);
  builder.Values("vera", builder.Variant("writers=1", "prealloc"), kBetter, boot);
  return builder;
}

}  // namespace pipeyard::analysis::testing
