#include "controller/analysis/cell_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "controller/analysis/compare.h"
#include "controller/analysis/fisher.h"
#include "controller/analysis/summary.h"
#include "controller/analysis/switches.h"

namespace pipeyard::analysis {
namespace {

// Void attempts of one arm against the other: at this p and below the arms did not meet the same
// conditions.
constexpr double kVoidImbalance = 0.05;
// As many equal values are no longer taken for chance.
constexpr size_t kSuspiciousRepeats = 4;

std::vector<double> Plain(const std::vector<Value>& values) {
  std::vector<double> plain;
  for (const Value& value : values) plain.push_back(value.value);
  return plain;
}

std::set<std::string> Boots(const std::vector<Value>& values) {
  std::set<std::string> boots;
  for (const Value& value : values) boots.insert(value.boot);
  return boots;
}

std::vector<double> MedianPerBoot(const std::vector<Value>& values) {
  std::map<std::string, std::vector<double>> by_boot;
  for (const Value& value : values) by_boot[value.boot].push_back(value.value);
  std::vector<double> medians;
  for (const auto& [boot, of_boot] : by_boot) medians.push_back(*Median(of_boot));
  return medians;
}

// What pairing by block gives.
struct Pairing {
  std::vector<Pair> pairs;
  std::vector<uint32_t> lacking;  // blocks with a value on one side only
  std::vector<uint32_t> split;    // blocks whose sides ran in different boots
};

Pairing PairByBlock(const std::vector<Value>& a, const std::vector<Value>& b) {
  std::map<uint32_t, std::pair<const Value*, const Value*>> blocks;
  for (const Value& value : a) blocks[value.block].first = &value;
  for (const Value& value : b) blocks[value.block].second = &value;
  Pairing pairing;
  for (const auto& [block, sides] : blocks) {
    if (sides.first == nullptr || sides.second == nullptr) {
      pairing.lacking.push_back(block);
    } else if (sides.first->boot != sides.second->boot) {
      pairing.split.push_back(block);
    } else {
      pairing.pairs.push_back({sides.first->value, sides.second->value});
    }
  }
  return pairing;
}

std::string ListBlocks(const std::vector<uint32_t>& blocks) {
  std::string list;
  for (uint32_t block : blocks) list += fmt::format("{}{}", list.empty() ? "" : ", ", block);
  return list;
}

// The metrics of a cell repeat what befell its trials; only the newest warnings can be the same.
void Warn(v1::DiffResponse* response, std::string text) {
  constexpr int kNewest = 32;
  const int count = response->warnings_size();
  for (int i = std::max(0, count - kNewest); i < count; ++i) {
    if (response->warnings(i) == text) return;
  }
  response->add_warnings(std::move(text));
}

class RowBuilder {
 public:
  RowBuilder(const CellPair& pair, v1::DiffResponse* response)
      : pair_(pair),
        response_(response),
        where_(pair.variant.empty() ? pair.host : pair.host + ", " + pair.variant) {
    if (pair.a == nullptr || pair.b == nullptr) return;
    for (const std::string& name : InertDifference(*pair.a, *pair.b))
      inert_ += (inert_.empty() ? "" : ", ") + name;
  }

  void Append(const MetricSeries& a, const MetricSeries& b) {
    const MetricSeries& known = a.name.empty() ? b : a;
    if (IsDeclaredAbsent(a, b)) {
      Warn(response_, fmt::format("{}: {} has no value: {}", where_, known.name,
                                  known.absent_reason.empty() ? "absent" : known.absent_reason));
      return;
    }
    v1::DiffRow* row = response_->add_rows();
    row->set_host(pair_.host);
    row->set_variant(pair_.variant);
    row->set_metric(known.name);
    row->set_unit(known.unit);
    row->set_a_label(pair_.a_label);
    row->set_b_label(pair_.b_label);
    Test(a.values, b.values, OptionsOf(a, b), row);
    WarnOfValues(a, pair_.a_label);
    WarnOfValues(b, pair_.b_label);
    CountLosses(row);
    if (!inert_.empty() && !a.values.empty() && !b.values.empty()) MakeInert(row);
  }

 private:
  // The sides stay; what compares them goes, so that nobody reads a ratio of two equal things.
  void MakeInert(v1::DiffRow* row) {
    row->clear_effect();
    row->clear_p();
    row->clear_min_p();
    row->clear_mde();
    row->set_need_more(0);
    row->set_verdict(Name(Verdict::kInert));
    row->set_reason(inert_);
  }

  static bool IsDeclaredAbsent(const MetricSeries& a, const MetricSeries& b) {
    return a.values.empty() && b.values.empty() && a.num_not_finite + b.num_not_finite == 0;
  }

  CompareOptions OptionsOf(const MetricSeries& a, const MetricSeries& b) {
    const MetricSeries& known = a.name.empty() ? b : a;
    CompareOptions options;
    options.better = ToBetter(known.better);
    if (!a.name.empty() && !b.name.empty() && a.better != b.better) {
      Warn(response_, fmt::format("{}: the sides disagree on which direction of {} is better",
                                  where_, known.name));
      options.better = Better::kNone;
    }
    double min_change = 0;
    bool is_set = false;
    for (const auto* table : {pair_.min_change_a, pair_.min_change_b}) {
      if (table == nullptr) continue;
      if (const auto found = table->find(known.name); found != table->end()) {
        min_change = std::max(min_change, found->second);
        is_set = true;
      }
    }
    if (is_set) options.min_change = min_change;
    return options;
  }

  void Test(const std::vector<Value>& a, const std::vector<Value>& b, const CompareOptions& options,
            v1::DiffRow* row) {
    if (pair_.has_blocks && !a.empty() && !b.empty()) {
      const Pairing pairing = PairByBlock(a, b);
      if (pairing.pairs.empty() && !pairing.split.empty()) {
        TestOverBoots(a, b, options, row);
      } else {
        ComparePaired(pairing.pairs, options, row);
        row->set_dropped_pairs(
            static_cast<uint32_t>(pairing.lacking.size() + pairing.split.size()));
        WarnOfPairs(row->metric(), pairing);
      }
    } else if (a.empty() || b.empty() || Boots(a) == Boots(b)) {
      CompareIndependent(Plain(a), Plain(b), options, row);
    } else {
      TestOverBoots(a, b, options, row);
    }
    row->mutable_a()->set_boots(static_cast<uint32_t>(Boots(a).size()));
    row->mutable_b()->set_boots(static_cast<uint32_t>(Boots(b).size()));
  }

  static void TestOverBoots(const std::vector<Value>& a, const std::vector<Value>& b,
                            const CompareOptions& options, v1::DiffRow* row) {
    const std::vector<double> medians_a = MedianPerBoot(a);
    const std::vector<double> medians_b = MedianPerBoot(b);
    CompareIndependent(medians_a, medians_b, options, row);
    row->set_test(kTestOverBoots);
    row->mutable_a()->set_n(static_cast<uint32_t>(a.size()));
    row->mutable_b()->set_n(static_cast<uint32_t>(b.size()));
    const size_t fewest = std::min(medians_a.size(), medians_b.size());
    if (fewest < kMinBoots) {
      row->set_verdict(Name(Verdict::kInconclusive));
      row->set_reason("too-few-boots");
      row->set_need_more(static_cast<uint32_t>(kMinBoots - fewest));
    }
  }

  void WarnOfPairs(const std::string& metric, const Pairing& pairing) {
    // A trial that ended without a sample lacks every metric and is told once, with the first; a
    // percentile of too few operations is lacking by itself.
    if (first_metric_.empty()) first_metric_ = metric;
    if (!pairing.lacking.empty() && told_.insert(pairing.lacking).second) {
      Warn(response_,
           fmt::format("{}: pairs dropped, one side has no {}: block {}", where_,
                       metric == first_metric_ ? "value" : metric, ListBlocks(pairing.lacking)));
    }
    if (!pairing.split.empty()) {
      Warn(response_, fmt::format("{}: pairs dropped, a reboot lies between their sides: block {}",
                                  where_, ListBlocks(pairing.split)));
    }
  }

  void WarnOfValues(const MetricSeries& series, const std::string& label) {
    if (series.num_not_finite > 0) {
      Warn(response_, fmt::format("{}: {} of {} is not a finite number in {} trials; left out",
                                  where_, series.name, label, series.num_not_finite));
    }
    const std::vector<Value>& values = series.values;
    const bool is_constant = values.size() >= kSuspiciousRepeats &&
                             std::all_of(values.begin(), values.end(), [&](const Value& value) {
                               return value.value == values.front().value;
                             });
    if (is_constant) {
      Warn(response_,
           fmt::format("{}: {} of {} is the same number ({}) in all {} trials: suspicious", where_,
                       series.name, label, values.front().value, values.size()));
    }
  }

  void CountLosses(v1::DiffRow* row) {
    const CellSamples empty;
    const CellSamples& a = pair_.a != nullptr ? *pair_.a : empty;
    const CellSamples& b = pair_.b != nullptr ? *pair_.b : empty;
    row->set_void_attempts(a.num_void + b.num_void);
    row->set_failed_attempts(a.num_failed + b.num_failed);
    const bool is_decided =
        row->verdict() != Name(Verdict::kInconclusive) && row->verdict() != Name(Verdict::kMissing);
    if (is_decided &&
        FisherExact(a.num_void, a.num_attempts, b.num_void, b.num_attempts) <= kVoidImbalance) {
      row->set_verdict(Name(Verdict::kInconclusive));
      row->set_reason("void-imbalance");
      row->set_need_more(0);
    }
  }

  const CellPair& pair_;
  v1::DiffResponse* response_;
  const std::string where_;
  std::string first_metric_;
  // Switches that the sides differ in and that cannot act; empty where a difference can.
  std::string inert_;
  // Lists of blocks without a pair that were warned of.
  std::set<std::vector<uint32_t>> told_;
};

// Counter values by name and unit, over the samples of one side.
using CounterValues = std::map<std::pair<std::string, std::string>, std::vector<double>>;

CounterValues CountersOf(const CellSamples* cell) {
  CounterValues values;
  if (cell == nullptr) return values;
  for (const storage::AttemptData* data : cell->samples) {
    for (const v1::Counter& counter : data->counters) {
      values[{counter.name(), counter.unit()}].push_back(static_cast<double>(counter.value()));
    }
  }
  return values;
}

// 0 = equal, 1 = from or to nothing; absent on one side counts as the largest.
double RelativeChange(const v1::DiffRow::CounterDelta& delta) {
  if (!delta.has_a() || !delta.has_b()) return 2;
  const double largest = std::max(std::fabs(delta.a()), std::fabs(delta.b()));
  return largest == 0 ? 0 : std::fabs(delta.b() - delta.a()) / largest;
}

std::vector<v1::DiffRow::CounterDelta> CompareCounters(const CellSamples* a, const CellSamples* b) {
  const CounterValues of_a = CountersOf(a);
  const CounterValues of_b = CountersOf(b);
  std::map<std::pair<std::string, std::string>, v1::DiffRow::CounterDelta> by_name;
  for (const auto& [name, values] : of_a) by_name[name].set_a(*Median(values));
  for (const auto& [name, values] : of_b) by_name[name].set_b(*Median(values));
  std::vector<v1::DiffRow::CounterDelta> deltas;
  for (auto& [name, delta] : by_name) {
    delta.set_name(name.first);
    delta.set_unit(name.second);
    deltas.push_back(std::move(delta));
  }
  std::stable_sort(deltas.begin(), deltas.end(),
                   [](const v1::DiffRow::CounterDelta& x, const v1::DiffRow::CounterDelta& y) {
                     return RelativeChange(x) > RelativeChange(y);
                   });
  return deltas;
}

// Names that both sides have, with another unit: they are two metrics, and neither is converted.
void WarnOfUnits(const CellPair& pair, const std::vector<MetricSeries>& a,
                 const std::vector<MetricSeries>& b, v1::DiffResponse* response) {
  for (const MetricSeries& x : a) {
    for (const MetricSeries& y : b) {
      if (x.name == y.name && (x.unit != y.unit || x.reducer != y.reducer)) {
        Warn(response,
             fmt::format("{}: {} is {} of {} in {} and {} of {} in {}: not compared", pair.host,
                         x.name, x.reducer, x.unit, pair.a_label, y.reducer, y.unit, pair.b_label));
      }
    }
  }
}

}  // namespace

Status AppendCellRows(const CellPair& pair, v1::DiffResponse* response) {
  if (pair.a != nullptr && pair.b != nullptr && !pair.a->samples.empty() &&
      !pair.b->samples.empty() && pair.a->IsEmulated() != pair.b->IsEmulated()) {
    const std::string what = fmt::format(
        "{}: {} ran on {} and {} on {} topology: times of an emulated topology are "
        "modelled",
        pair.host, pair.a_label, pair.a->IsEmulated() ? "an emulated" : "the real", pair.b_label,
        pair.b->IsEmulated() ? "an emulated" : "the real");
    if (!pair.is_forced) {
      return InvalidArgument(what + " and are not compared with real ones (--force compares them)");
    }
    Warn(response, what);
  }
  const std::vector<MetricSeries> of_a =
      pair.a != nullptr ? pair.a->Metrics() : std::vector<MetricSeries>();
  const std::vector<MetricSeries> of_b =
      pair.b != nullptr ? pair.b->Metrics() : std::vector<MetricSeries>();
  const auto same_as = [](const MetricSeries& wanted) {
    return [&wanted](const MetricSeries& series) {
      return series.name == wanted.name && series.unit == wanted.unit &&
             series.reducer == wanted.reducer;
    };
  };
  const int first_row = response->rows_size();
  const MetricSeries none;
  RowBuilder builder(pair, response);
  for (const MetricSeries& series : of_a) {
    const auto match = std::find_if(of_b.begin(), of_b.end(), same_as(series));
    builder.Append(series, match != of_b.end() ? *match : none);
  }
  for (const MetricSeries& series : of_b) {
    if (std::none_of(of_a.begin(), of_a.end(), same_as(series))) builder.Append(none, series);
  }
  WarnOfUnits(pair, of_a, of_b, response);

  const std::vector<v1::DiffRow::CounterDelta> counters = CompareCounters(pair.a, pair.b);
  const std::string modelled = ModelledWords(pair.a, pair.b);
  const bool is_emulated =
      (pair.a != nullptr && pair.a->IsEmulated()) || (pair.b != nullptr && pair.b->IsEmulated());
  for (int i = first_row; i < response->rows_size(); ++i) {
    v1::DiffRow* row = response->mutable_rows(i);
    row->set_emulated(is_emulated);
    row->set_modelled(modelled);
    row->mutable_counters()->Assign(counters.begin(), counters.end());
  }
  return Status::Ok();
}

}  // namespace pipeyard::analysis
