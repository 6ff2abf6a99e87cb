#include "controller/analysis/samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

namespace pipeyard::analysis {
namespace {

using CellKey = std::pair<std::string, uint32_t>;  // host id, variant index

std::vector<std::string> SplitPairs(std::string_view text) {
  std::vector<std::string> pairs;
  while (!text.empty()) {
    const size_t end = text.find(';');
    if (const std::string_view pair = text.substr(0, end); !pair.empty()) pairs.emplace_back(pair);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return pairs;
}

bool IsSelected(const storage::VariantRecord& variant, const std::string& wanted) {
  if (wanted.empty()) return true;
  if (wanted.find('=') == std::string::npos) return variant.variant_id.starts_with(wanted);
  const std::vector<std::string> have = SplitPairs(variant.text);
  const std::vector<std::string> want = SplitPairs(wanted);
  return std::all_of(want.begin(), want.end(), [&](const std::string& pair) {
    return std::find(have.begin(), have.end(), pair) != have.end();
  });
}

bool IsSelected(const storage::CellRecord& cell, const std::string& wanted) {
  return wanted.empty() || cell.host_name == wanted ||
         (wanted.size() >= 8 && cell.host_id.starts_with(wanted));
}

template <typename Items, typename Text>
std::string ListOf(const Items& items, Text text) {
  constexpr size_t kMaxListed = 12;
  std::set<std::string> seen;
  for (const auto& item : items) seen.insert(text(item));
  std::string list;
  size_t count = 0;
  for (const std::string& name : seen) {
    if (++count > kMaxListed) return list + fmt::format(" and {} more", seen.size() - kMaxListed);
    list += (list.empty() ? "" : ", ") + name;
  }
  return list;
}

Status CheckSelection(const storage::RunRecord& run, const DiffOperand& only) {
  if (std::none_of(run.variants.begin(), run.variants.end(),
                   [&](const auto& variant) { return IsSelected(variant, only.variant); })) {
    return NotFound(fmt::format("run {} has no variant '{}'; it has {}", run.run_id, only.variant,
                                ListOf(run.variants, [](const storage::VariantRecord& variant) {
                                  return fmt::format("{} ({})", variant.variant_id.substr(0, 8),
                                                     variant.text);
                                })));
  }
  if (std::none_of(run.cells.begin(), run.cells.end(),
                   [&](const auto& cell) { return IsSelected(cell, only.host); })) {
    return NotFound(
        fmt::format("run {} has no host '{}'; it has {}", run.run_id, only.host,
                    ListOf(run.cells, [](const auto& cell) { return cell.host_name; })));
  }
  return Status::Ok();
}

bool ComesFirst(const storage::AttemptData& x, const storage::AttemptData& y) {
  return std::tie(x.attempt.ended_utc, x.attempt.number) <
         std::tie(y.attempt.ended_utc, y.attempt.number);
}

// The sample of each done trial of one cell.
void TakeSamples(const storage::CellRecord& cell,
                 const std::vector<const storage::AttemptData*>& attempts, CellSamples* result) {
  std::map<uint32_t, const storage::AttemptData*> by_trial;
  for (const storage::AttemptData* data : attempts) {
    if (!data->attempt.outcome) continue;
    ++result->num_attempts;
    switch (*data->attempt.outcome) {
      case storage::Outcome::kOk: {
        const storage::AttemptData*& first = by_trial[data->trial.trial_index];
        if (first == nullptr || ComesFirst(*data, *first)) first = data;
        break;
      }
      case storage::Outcome::kVoid:
        ++result->num_void;
        break;
      case storage::Outcome::kFailed:
      case storage::Outcome::kTimeout:
      case storage::Outcome::kLost:
        ++result->num_failed;
        break;
      case storage::Outcome::kCanceled:
      case storage::Outcome::kNotApplicable:
        break;
    }
  }
  result->num_trials = static_cast<uint32_t>(cell.trials.size());
  for (const storage::TrialRecord& trial : cell.trials) {
    if (trial.state != storage::TrialState::kDone) continue;
    const auto found = by_trial.find(trial.trial_index);
    if (found != by_trial.end()) result->samples.push_back(found->second);
  }
}

MetricSeries& SeriesOf(const v1::Metric& metric, std::vector<MetricSeries>* all) {
  for (MetricSeries& series : *all) {
    if (series.name == metric.name() && series.unit == metric.unit() &&
        series.reducer == metric.reducer()) {
      return series;
    }
  }
  MetricSeries series;
  series.name = metric.name();
  series.unit = metric.unit();
  series.reducer = metric.reducer();
  series.better = metric.better();
  return all->emplace_back(std::move(series));
}

}  // namespace

bool CellSamples::IsEmulated() const {
  return std::any_of(samples.begin(), samples.end(),
                     [](const storage::AttemptData* data) { return data->emulated; });
}

std::vector<MetricSeries> CellSamples::Metrics() const {
  std::vector<MetricSeries> all;
  for (const storage::AttemptData* data : samples) {
    for (const v1::Metric& metric : data->metrics) {
      MetricSeries& series = SeriesOf(metric, &all);
      if (!metric.has_value()) {
        if (series.absent_reason.empty()) series.absent_reason = metric.absent_reason();
      } else if (!std::isfinite(metric.value())) {
        ++series.num_not_finite;
      } else {
        const std::string& boot = data->attempt.boot_id;
        // A boot that is not known is the run's own: it never counts as shared with another run.
        series.values.push_back({data->block, boot.empty() ? run_id : boot, metric.value()});
      }
    }
  }
  return all;
}

Result<std::vector<CellSamples>> SelectSamples(const storage::RunRecord& run,
                                               const std::vector<storage::AttemptData>& attempts,
                                               const DiffOperand& only) {
  PIPEYARD_RETURN_IF_ERROR(CheckSelection(run, only));
  std::map<CellKey, std::vector<const storage::AttemptData*>> by_cell;
  std::set<std::string> ids;
  for (const storage::AttemptData& data : attempts) {
    if (!ids.insert(data.attempt.attempt_id).second) {
      return InvalidArgument(
          fmt::format("run {}: attempt {} is listed twice", run.run_id, data.attempt.attempt_id));
    }
    by_cell[{data.trial.host_id, data.trial.variant_index}].push_back(&data);
  }

  std::vector<CellSamples> cells;
  for (const storage::CellRecord& cell : run.cells) {
    const auto variant = std::find_if(
        run.variants.begin(), run.variants.end(),
        [&](const auto& candidate) { return candidate.variant_index == cell.variant_index; });
    if (variant == run.variants.end() || !IsSelected(cell, only.host) ||
        !IsSelected(*variant, only.variant)) {
      continue;
    }
    CellSamples samples;
    samples.run_id = run.run_id;
    samples.host_id = cell.host_id;
    samples.host = cell.host_name;
    samples.variant = &*variant;
    TakeSamples(cell, by_cell[{cell.host_id, cell.variant_index}], &samples);
    cells.push_back(std::move(samples));
  }
  if (cells.empty()) {
    return NotFound(fmt::format("run {} has no cell of host '{}' and variant '{}'", run.run_id,
                                only.host, only.variant));
  }
  std::stable_sort(cells.begin(), cells.end(), [](const CellSamples& x, const CellSamples& y) {
    return std::tie(x.host, x.host_id, x.variant->variant_index) <
           std::tie(y.host, y.host_id, y.variant->variant_index);
  });
  return cells;
}

std::string ShortId(const std::string& id) { return id.substr(0, 13); }

}  // namespace pipeyard::analysis
