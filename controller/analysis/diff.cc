#include "controller/analysis/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "controller/analysis/cell_diff.h"
#include "controller/analysis/compare.h"
#include "controller/analysis/samples.h"
#include "controller/analysis/summary.h"
#include "controller/analysis/switches.h"

namespace pipeyard::analysis {
namespace {

constexpr double kAlpha = 0.05;
constexpr int kMaxWarnings = 100;

bool IsBlocked(const storage::RunRecord& run) { return run.order_kind == "blocked"; }

// Counts, exit status and the cut of a list of warnings that nobody would read.
void Summarize(v1::DiffResponse* response) {
  uint32_t tests = 0;
  std::vector<const v1::DiffRow*> rows;
  for (const v1::DiffRow& row : response->rows()) {
    rows.push_back(&row);
    if (row.has_p() && row.min_p() <= kAlpha) ++tests;
  }
  response->set_tests(tests);
  response->set_expected_false_positives(tests * kAlpha);
  response->set_exit_status(ExitStatus(rows));
  if (const int count = response->warnings_size(); count > kMaxWarnings) {
    response->mutable_warnings()->DeleteSubrange(kMaxWarnings, count - kMaxWarnings);
    response->add_warnings(fmt::format("and {} more warnings", count - kMaxWarnings));
  }
}

bool HasComparison(const v1::DiffResponse& response) {
  return std::any_of(response.rows().begin(), response.rows().end(),
                     [](const v1::DiffRow& row) { return row.a().n() > 0 && row.b().n() > 0; });
}

void AppendReferences(const CellSamples& cell, v1::DiffResponse* response) {
  for (const MetricSeries& series : cell.Metrics()) {
    if (series.values.empty()) continue;
    std::vector<double> values;
    std::set<std::string> boots;
    for (const Value& value : series.values) {
      values.push_back(value.value);
      boots.insert(value.boot);
    }
    v1::ReferenceRow* row = response->add_references();
    row->set_host(cell.host);
    row->set_variant(cell.variant->text);
    row->set_metric(series.name);
    row->set_unit(series.unit);
    row->set_better(series.better);
    row->set_modelled(ModelledWords(cell));
    row->mutable_side()->set_n(static_cast<uint32_t>(values.size()));
    row->mutable_side()->set_median(*Median(values));
    row->mutable_side()->set_mad(*Mad(values));
    row->mutable_side()->set_boots(static_cast<uint32_t>(boots.size()));
  }
}

// The cells of one comparison: one host, all settings but the compared factor equal.
struct Comparison {
  const CellSamples* baseline = nullptr;
  std::vector<const CellSamples*> levels;
};

// In the order of the cells.
std::vector<Comparison> GroupByComparison(const std::vector<CellSamples>& cells,
                                          const std::string& baseline) {
  std::vector<Comparison> comparisons;
  std::map<std::pair<std::string, std::string>, size_t> index;
  for (const CellSamples& cell : cells) {
    if (cell.variant->arm.empty()) continue;
    const auto [found, is_new] =
        index.try_emplace({cell.host_id, cell.variant->comparison}, comparisons.size());
    if (is_new) comparisons.emplace_back();
    Comparison& comparison = comparisons[found->second];
    if (cell.variant->arm == baseline) {
      comparison.baseline = &cell;
    } else {
      comparison.levels.push_back(&cell);
    }
  }
  return comparisons;
}

std::string DescribeCells(const std::vector<CellSamples>& cells) {
  constexpr size_t kMaxListed = 8;
  std::string text;
  for (size_t i = 0; i < cells.size() && i < kMaxListed; ++i) {
    const CellSamples& cell = cells[i];
    text += fmt::format("{}{}, {}: {} of {} trials have a sample", i == 0 ? "" : "; ", cell.host,
                        cell.variant->text.empty() ? cell.variant->variant_id : cell.variant->text,
                        cell.samples.size(), cell.num_trials);
  }
  if (cells.size() > kMaxListed)
    text += fmt::format("; and {} more cells", cells.size() - kMaxListed);
  return text;
}

// What identifies a cell when two runs are laid side by side; empty parts match anything.
using MatchKey = std::pair<std::string, std::string>;  // host id, variant id

struct Matching {
  bool across_hosts = false;
  bool across_variants = false;

  MatchKey KeyOf(const CellSamples& cell) const {
    return {across_hosts ? "" : cell.host_id, across_variants ? "" : cell.variant->variant_id};
  }
};

Status CheckUnique(const std::vector<CellSamples>& cells, const DiffOperand& operand,
                   const Matching& matching) {
  std::set<std::string> variants;
  std::set<std::string> hosts;
  for (const CellSamples& cell : cells) {
    variants.insert(cell.variant->text.empty() ? cell.variant->variant_id : cell.variant->text);
    hosts.insert(cell.host);
  }
  if (matching.across_variants && variants.size() > 1) {
    return InvalidArgument(fmt::format("'{}' is not one variant but {}: {} and {}, for example",
                                       operand.variant, variants.size(), *variants.begin(),
                                       *std::next(variants.begin())));
  }
  if (matching.across_hosts && hosts.size() > 1) {
    return InvalidArgument(fmt::format("'{}' is not one host but {}", operand.host, hosts.size()));
  }
  return Status::Ok();
}

Status CheckDistinct(const std::vector<CellSamples>& a, const std::vector<CellSamples>& b) {
  std::set<std::string> ids;
  for (const CellSamples& cell : a) {
    for (const storage::AttemptData* data : cell.samples) ids.insert(data->attempt.attempt_id);
  }
  for (const CellSamples& cell : b) {
    for (const storage::AttemptData* data : cell.samples) {
      if (ids.contains(data->attempt.attempt_id)) {
        return InvalidArgument(
            "both sides hold the same trials; name two runs, or two variants "
            "(RUN@VARIANT) or hosts (RUN/HOST) of one");
      }
    }
  }
  return Status::Ok();
}

std::string Joined(const std::string& a, const std::string& b) {
  return a == b ? a : a + " vs " + b;
}

std::string LabelOf(const CellSamples& cell, const Matching& matching) {
  std::string label = ShortId(cell.run_id);
  if (matching.across_hosts) label += "/" + cell.host;
  if (matching.across_variants) {
    label += "@" + (cell.variant->text.empty() ? cell.variant->variant_id : cell.variant->text);
  }
  return label;
}

std::string WhatDidNotMatch(const std::vector<CellSamples>& a, const std::vector<CellSamples>& b) {
  std::set<std::string> hosts_a, hosts_b, variants_a, variants_b, common;
  for (const CellSamples& cell : a) {
    hosts_a.insert(cell.host);
    variants_a.insert(cell.variant->variant_id);
  }
  for (const CellSamples& cell : b) {
    hosts_b.insert(cell.host);
    variants_b.insert(cell.variant->variant_id);
  }
  const auto num_common = [](const std::set<std::string>& x, const std::set<std::string>& y) {
    return std::count_if(x.begin(), x.end(), [&](const auto& item) { return y.contains(item); });
  };
  return fmt::format(
      "hosts: {} in a, {} in b, {} in both; variants: {} in a, {} in b, {} in both. a: {}. b: {}",
      hosts_a.size(), hosts_b.size(), num_common(hosts_a, hosts_b), variants_a.size(),
      variants_b.size(), num_common(variants_a, variants_b), DescribeCells(a), DescribeCells(b));
}

}  // namespace

Result<v1::DiffResponse> DiffRun(const storage::RunRecord& run,
                                 const std::vector<storage::AttemptData>& attempts,
                                 const DiffOperand& only, const DiffOptions& options) {
  // What is named and is not there comes first: it is no such thing, whatever the run compares.
  PIPEYARD_ASSIGN_OR_RETURN(const std::vector<CellSamples> cells,
                            SelectSamples(run, attempts, only));
  if (run.compare_factor.empty()) {
    return FailedPrecondition(fmt::format(
        "run {} has no `compare`: name what to compare it with, such as another run", run.run_id));
  }
  v1::DiffResponse response;
  response.set_a(run.run_id);
  response.set_b(run.run_id);
  response.set_sweep(run.sweep);
  response.set_factor(run.compare_factor);
  response.set_baseline(run.compare_baseline);
  for (const Comparison& comparison : GroupByComparison(cells, run.compare_baseline)) {
    if (comparison.baseline == nullptr) continue;
    for (const CellSamples* level : comparison.levels) {
      const CellPair pair{.a = comparison.baseline,
                          .b = level,
                          .has_blocks = IsBlocked(run),
                          .host = level->host,
                          .variant = level->variant->comparison,
                          .a_label = run.compare_baseline,
                          .b_label = level->variant->arm,
                          .min_change_a = &run.min_change,
                          .min_change_b = nullptr,
                          .is_forced = options.is_forced};
      PIPEYARD_RETURN_IF_ERROR(AppendCellRows(pair, &response));
    }
  }
  if (!HasComparison(response)) {
    return FailedPrecondition(
        fmt::format("run {}: nothing to compare along {} yet, no cell has samples both of the "
                    "baseline {} and of another level. {}",
                    run.run_id, run.compare_factor, run.compare_baseline, DescribeCells(cells)));
  }
  for (const CellSamples& cell : cells) {
    if (cell.variant->arm.empty()) AppendReferences(cell, &response);
  }
  Summarize(&response);
  return response;
}

Result<v1::DiffResponse> DiffRuns(const storage::RunRecord& run_a,
                                  const std::vector<storage::AttemptData>& attempts_a,
                                  const storage::RunRecord& run_b,
                                  const std::vector<storage::AttemptData>& attempts_b,
                                  const DiffOperand& only_a, const DiffOperand& only_b,
                                  const DiffOptions& options) {
  PIPEYARD_ASSIGN_OR_RETURN(const std::vector<CellSamples> a,
                            SelectSamples(run_a, attempts_a, only_a));
  PIPEYARD_ASSIGN_OR_RETURN(const std::vector<CellSamples> b,
                            SelectSamples(run_b, attempts_b, only_b));
  const Matching matching{.across_hosts = !only_a.host.empty() && !only_b.host.empty(),
                          .across_variants = !only_a.variant.empty() && !only_b.variant.empty()};
  PIPEYARD_RETURN_IF_ERROR(CheckUnique(a, only_a, matching));
  PIPEYARD_RETURN_IF_ERROR(CheckUnique(b, only_b, matching));
  PIPEYARD_RETURN_IF_ERROR(CheckDistinct(a, b));

  std::map<MatchKey, const CellSamples*> unmatched_b;
  for (const CellSamples& cell : b) unmatched_b[matching.KeyOf(cell)] = &cell;
  std::vector<std::pair<const CellSamples*, const CellSamples*>> matched;
  const bool b_is_restricted = !only_b.variant.empty() || !only_b.host.empty();
  for (const CellSamples& cell : a) {
    const auto found = unmatched_b.find(matching.KeyOf(cell));
    if (found != unmatched_b.end()) {
      matched.emplace_back(&cell, found->second);
      unmatched_b.erase(found);
    } else if (!b_is_restricted) {
      matched.emplace_back(&cell, nullptr);
    }
  }
  if (only_a.variant.empty() && only_a.host.empty()) {
    for (const auto& [key, cell] : unmatched_b) matched.emplace_back(nullptr, cell);
  }

  v1::DiffResponse response;
  response.set_a(run_a.run_id);
  response.set_b(run_b.run_id);
  response.set_sweep(Joined(run_a.sweep, run_b.sweep));
  const bool is_same_run = run_a.run_id == run_b.run_id;
  for (const auto& [of_a, of_b] : matched) {
    const CellSamples& x = of_a != nullptr ? *of_a : *of_b;
    const CellSamples& y = of_b != nullptr ? *of_b : *of_a;
    if (x.variant->settings.workload() != y.variant->settings.workload() ||
        x.variant->settings.workload_version() != y.variant->settings.workload_version()) {
      return InvalidArgument(
          fmt::format("workload {} version {} is not compared with {} version {}",
                      x.variant->settings.workload(), x.variant->settings.workload_version(),
                      y.variant->settings.workload(), y.variant->settings.workload_version()));
    }
    const CellPair pair{
        .a = of_a,
        .b = of_b,
        .has_blocks = is_same_run && IsBlocked(run_a) && x.host_id == y.host_id,
        .host = Joined(x.host, y.host),
        .variant = Joined(x.variant->text, y.variant->text),
        .a_label = of_a != nullptr ? LabelOf(*of_a, matching) : ShortId(run_a.run_id),
        .b_label = of_b != nullptr ? LabelOf(*of_b, matching) : ShortId(run_b.run_id),
        .min_change_a = &run_a.min_change,
        .min_change_b = &run_b.min_change,
        .is_forced = options.is_forced};
    PIPEYARD_RETURN_IF_ERROR(AppendCellRows(pair, &response));
  }
  if (!HasComparison(response)) {
    return FailedPrecondition(fmt::format("runs {} and {} have nothing in common to compare: {}",
                                          run_a.run_id, run_b.run_id, WhatDidNotMatch(a, b)));
  }
  Summarize(&response);
  return response;
}

}  // namespace pipeyard::analysis
