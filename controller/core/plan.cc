#include "controller/core/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace pipeyard::core {
namespace {

// The least number of blocks whose signed-rank test can reach 0.05 two-sided: 2 / 2^6 = 0.031.
constexpr uint32_t kBlocksForSignedRank = 6;
// The least number a side whose rank-sum test can: 2 / C(8, 4) = 0.029.
constexpr uint32_t kRepetitionsForRankSum = 4;

void AddTestNotes(const spec::Sweep& sweep, v1::Plan& plan) {
  if (sweep.compare_factor.empty()) {
    plan.add_notes("nothing is compared: `diff` of this run needs `compare`, or a second run");
  } else if (sweep.order == spec::OrderKind::kBlocked) {
    if (sweep.repetitions_max < kBlocksForSignedRank) {
      plan.add_notes(fmt::format("{} blocks are needed for a verdict at 0.05; this plan has {}",
                                 kBlocksForSignedRank, sweep.repetitions_max));
    }
  } else if (sweep.repetitions_max < kRepetitionsForRankSum) {
    plan.add_notes(
        fmt::format("{} repetitions an arm are needed for a verdict at 0.05; this plan has {}",
                    kRepetitionsForRankSum, sweep.repetitions_max));
  }
}

struct HostSum {
  v1::Plan::HostPlan plan;
  bool is_expected_known = true;
};

}  // namespace

v1::Plan PlanOf(const spec::Sweep& sweep, std::span<const scheduler::HostView> hosts) {
  v1::Plan plan;
  const Result<scheduler::BuiltRun> built =
      scheduler::BuildRun(sweep, hosts, scheduler::RunRequest());
  if (!built.ok()) {
    plan.add_notes(built.status().message());
    AddTestNotes(sweep, plan);
    return plan;
  }
  std::map<std::string, HostSum> by_name;
  for (const storage::CellRecord& cell : built->run.cells) {
    HostSum& sum = by_name[cell.host_name];
    const storage::VariantRecord& variant = built->run.variants[cell.variant_index];
    sum.plan.set_host(cell.host_name);
    if (cell.state == storage::CellState::kNotApplicable) {
      v1::Plan::HostPlan::NotApplicable& item = *sum.plan.add_not_applicable();
      item.set_variant_id(variant.variant_id);
      item.set_variant_text(variant.text);
      item.set_reason(cell.reason);
      continue;
    }
    const auto num_trials = static_cast<uint32_t>(cell.trials.size());
    sum.plan.set_cells(sum.plan.cells() + 1);
    sum.plan.set_trials(sum.plan.trials() + num_trials);
    for (const storage::TrialRecord& trial : cell.trials) {
      sum.plan.set_blocks(std::max(sum.plan.blocks(), trial.block));
    }
    const std::optional<Nanos> each = scheduler::ExpectedTrialTime(variant.settings);
    sum.is_expected_known = sum.is_expected_known && each.has_value();
    if (each) sum.plan.set_expected_ns(sum.plan.expected_ns() + each->count() * num_trials);
  }
  for (auto& [name, sum] : by_name) {
    const auto host = std::ranges::find_if(
        hosts, [&](const scheduler::HostView& view) { return view.record.name == name; });
    sum.plan.set_is_connected(host != hosts.end() && host->is_connected);
    if (!sum.is_expected_known) sum.plan.set_expected_ns(0);
    if (!sum.plan.is_connected()) {
      plan.add_notes(
          fmt::format("host {} is away: its trials fail when it does not come back within "
                      "host_wait ({})",
                      name, FormatDuration(sweep.host_wait)));
    }
    *plan.add_hosts() = std::move(sum.plan);
  }
  for (const scheduler::LeftOutHost& host : built->left_out) {
    plan.add_notes(fmt::format("left out: {} {}", host.host, host.reason));
  }
  AddTestNotes(sweep, plan);
  return plan;
}

}  // namespace pipeyard::core
