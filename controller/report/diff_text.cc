#include "controller/report/diff_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/units.h"
#include "controller/report/table.h"
#include "controller/report/words.h"

namespace pipeyard::report {
namespace {

// Counters of one configuration that stand in the text; all are in the JSON.
constexpr int kMaxCounters = 6;
// Smaller relative changes of a counter explain nothing.
constexpr double kMinCounterChange = 0.01;
constexpr double kFewEvents = 10;
// So many warnings that differ in their place only are told as one.
constexpr size_t kManyPlaces = 3;

using Rows = std::vector<const v1::DiffRow*>;

bool IsLatency(const v1::DiffRow& row) { return row.metric().starts_with("latency"); }

std::string MedianWords(const v1::Side& side, std::string_view unit) {
  return side.has_median() ? FormatQuantity(side.median(), unit) : "-";
}

// "1 void, 2 failed, 1 pair dropped"; empty where nothing was lost.
std::string LossWords(const v1::DiffRow& row) {
  std::string text;
  const auto add = [&](uint32_t count, std::string_view what) {
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, what);
  };
  add(row.void_attempts(), "void");
  add(row.failed_attempts(), "failed");
  add(row.dropped_pairs(), row.dropped_pairs() == 1 ? "pair dropped" : "pairs dropped");
  return text;
}

// What the tables of one diff have in common.
struct Layout {
  explicit Layout(const v1::DiffResponse& diff) {
    for (const v1::DiffRow& row : diff.rows()) {
      hosts.insert(row.host());
      b_labels.insert(row.b_label());
      // A row without p was not tested, whatever test it was meant for.
      is_paired |= row.has_p() && row.test() == "signed-rank";
      is_over_boots |= row.has_p() && row.test().ends_with("/boots");
      is_two_sample |= row.has_p() && row.test() == "mann-whitney";
      is_emulated |= row.emulated();
      is_open |= !DetectsWords(row).empty() || !NeedsWords(row).empty();
      thresholds.insert(row.min_change());
      const std::vector<std::string> settings = Settings(row.variant());
      if (&row == &diff.rows(0)) {
        common = settings;
      } else {
        std::erase_if(common, [&](const std::string& setting) {
          return std::find(settings.begin(), settings.end(), setting) == settings.end();
        });
      }
    }
  }

  // "writers=1" and "readers=5" of "writers=1;readers=5"; a pair of variants is one piece.
  static std::vector<std::string> Settings(const std::string& variant) {
    std::vector<std::string> settings;
    if (variant.find(" vs ") != std::string::npos) return {variant};
    for (size_t begin = 0; begin < variant.size();) {
      const size_t end = std::min(variant.find(';', begin), variant.size());
      settings.push_back(variant.substr(begin, end - begin));
      begin = end + 1;
    }
    return settings;
  }

  static std::string Join(const std::vector<std::string>& settings) {
    std::string text;
    for (const std::string& setting : settings) text += (text.empty() ? "" : ";") + setting;
    return text;
  }

  std::string CommonWords() const { return Join(common); }

  // What of the variant is not said once for all by the heading.
  std::string ConfigOf(const std::string& variant) const {
    std::vector<std::string> settings = Settings(variant);
    std::erase_if(settings, [&](const std::string& setting) {
      return std::find(common.begin(), common.end(), setting) != common.end();
    });
    return Join(settings);
  }

  // Columns that would say the same in every row stay empty, and the table leaves them out.
  std::vector<TableCell> Where(const v1::DiffRow& row) const {
    return {hosts.size() > 1 ? Printable(row.host()) : "", Printable(ConfigOf(row.variant())),
            b_labels.size() > 1 ? Printable(row.b_label()) : ""};
  }
  static std::vector<Column> WhereColumns() { return {{"host"}, {"config"}, {"B"}}; }

  std::set<std::string> hosts;
  std::set<std::string> b_labels;
  std::set<double> thresholds;
  bool is_paired = false;
  bool is_over_boots = false;
  bool is_two_sample = false;
  bool is_emulated = false;
  bool is_open = false;
  // Settings that every row has; the heading says them.
  std::vector<std::string> common;
};

std::string Heading(const v1::DiffResponse& diff, const Layout& layout) {
  std::string text;
  if (diff.factor().empty()) {
    text = fmt::format("diff of {}, run {} against run {}\n", Printable(diff.sweep()),
                       ShortId(diff.a()), ShortId(diff.b()));
  } else {
    text = fmt::format("diff of {}, run {}, along {}\n", Printable(diff.sweep()), ShortId(diff.a()),
                       Printable(diff.factor()));
  }
  const v1::DiffRow& first = diff.rows(0);
  text += fmt::format(
      "A = {}{}, B = {}", Printable(first.a_label()), diff.factor().empty() ? "" : " (baseline)",
      layout.b_labels.size() == 1 ? Printable(first.b_label()) : "as each row says");
  if (layout.hosts.size() == 1) text += fmt::format("; host {}", Printable(first.host()));
  if (!layout.common.empty()) text += "\neverywhere: " + Printable(layout.CommonWords());
  text += fmt::format(
      "\nchange = B against A in a typical {} (not that of the medians), with its exact 95% "
      "interval\n",
      layout.is_paired ? "block" : "pair of values");
  std::string tests;
  const auto add = [&](bool is_used, std::string_view name) {
    if (is_used) tests += (tests.empty() ? "" : ", ") + std::string(name);
  };
  add(layout.is_paired, "signed-rank over blocks");
  add(layout.is_two_sample, "Mann-Whitney");
  add(layout.is_over_boots, "Mann-Whitney over one median a boot");
  text += fmt::format("p = {}, not adjusted", tests.empty() ? "none" : tests);
  if (layout.thresholds.size() == 1) {
    text += fmt::format("; smallest change worth a verdict: {}",
                        PercentWords(*layout.thresholds.begin()));
  }
  text += "\n";
  if (layout.is_open) {
    text +=
        "detects = smallest change that 4 of 5 such runs would find; needs = what would probably "
        "settle it\n";
  }
  if (layout.is_emulated) {
    text += "emulated topology: time effects are modelled, only placement counts are evidence\n";
  }
  return text;
}

std::string FullTable(const Rows& rows, const Layout& layout, bool use_colour) {
  const v1::DiffRow& first = *rows.front();
  std::vector<Column> columns = Layout::WhereColumns();
  for (const Column& column :
       {Column{"A", Align::kRight}, Column{"B", Align::kRight}, Column{"change", Align::kRight},
        Column{"95% interval"}, Column{"p", Align::kRight}, Column{"n", Align::kRight},
        Column{"verdict"}, Column{"detects", Align::kRight}, Column{"needs"}, Column{"lost"}}) {
    columns.push_back(column);
  }
  columns[3].header = "median A";
  columns[4].header = "median B";
  Table table(columns);
  for (const v1::DiffRow* row : rows) {
    std::vector<TableCell> cells = layout.Where(*row);
    cells.emplace_back(MedianWords(row->a(), row->unit()));
    cells.emplace_back(MedianWords(row->b(), row->unit()));
    cells.emplace_back(EffectWords(*row));
    cells.emplace_back(IntervalWords(*row));
    cells.emplace_back(ProbabilityWords(*row));
    cells.emplace_back(CountWords(*row));
    cells.emplace_back(BareVerdictWords(*row), VerdictTone(*row));
    cells.emplace_back(DetectsWords(*row));
    cells.emplace_back(NeedsWords(*row));
    cells.emplace_back(LossWords(*row), Tone::kUnsure);
    table.Row(std::move(cells));
  }
  return fmt::format("\n{} ({})\n{}", Printable(first.metric()), DirectionWords(first.better()),
                     table.Render(use_colour));
}

// `line_count` is what the line's column n says.
std::string CompactWords(const v1::DiffRow& row, const std::string& line_count) {
  const std::string& verdict = row.verdict();
  if (verdict == "missing") return "missing";
  const std::string_view word = verdict == "improved"    ? "better"
                                : verdict == "regressed" ? "worse"
                                : verdict == "unchanged" ? "same"
                                : verdict == "changed"   ? "changed"
                                                         : "unclear";
  const std::string count = CountWords(row);
  return fmt::format("{} {}{}", EffectWords(row), word,
                     count == line_count ? ""
                                         : fmt::format(" (n {})", row.a().n() == row.b().n()
                                                                      ? fmt::to_string(row.a().n())
                                                                      : count));
}

// "p99" of "latency_p99".
std::string ShortMetric(const std::string& metric) {
  const size_t cut = metric.find('_');
  return Printable(cut == std::string::npos ? metric : metric.substr(cut + 1));
}

// One line a configuration, one column a latency metric.
std::string CompactTable(const Rows& rows, const Layout& layout, bool use_colour) {
  std::vector<std::string> metrics;
  using Where = std::array<std::string, 3>;
  std::vector<Where> order;
  std::map<Where, std::map<std::string, const v1::DiffRow*>> lines;
  for (const v1::DiffRow* row : rows) {
    if (std::find(metrics.begin(), metrics.end(), row->metric()) == metrics.end()) {
      metrics.push_back(row->metric());
    }
    const Where where{row->host(), row->variant(), row->b_label()};
    if (!lines.contains(where)) order.push_back(where);
    lines[where][row->metric()] = row;
  }
  std::vector<Column> columns = Layout::WhereColumns();
  for (const std::string& metric : metrics) {
    columns.push_back({ShortMetric(metric), Align::kRight});
  }
  columns.push_back({"n", Align::kRight});
  columns.push_back({"lost"});
  Table table(columns);
  for (const Where& where : order) {
    const auto& line = lines[where];
    // Percentiles may have fewer values than the others; those say so themselves.
    const v1::DiffRow& first =
        *std::max_element(line.begin(), line.end(), [](const auto& x, const auto& y) {
           return x.second->a().n() + x.second->b().n() < y.second->a().n() + y.second->b().n();
         })->second;
    std::vector<TableCell> cells = layout.Where(first);
    for (const std::string& metric : metrics) {
      const auto found = line.find(metric);
      if (found == line.end()) {
        cells.emplace_back("-");
      } else {
        cells.emplace_back(CompactWords(*found->second, CountWords(first)),
                           VerdictTone(*found->second));
      }
    }
    cells.emplace_back(CountWords(first));
    cells.emplace_back(LossWords(first), Tone::kUnsure);
    table.Row(std::move(cells));
  }
  return fmt::format("\nlatency ({}), change of each with its verdict; all numbers: -o json\n{}",
                     DirectionWords(rows.front()->better()), table.Render(use_colour));
}

// Throughput and the like with a row each, latencies as the compared ones: a line a configuration.
std::string ReferenceTables(const v1::DiffResponse& diff, const Layout& layout, bool use_colour) {
  using Where = std::pair<std::string, std::string>;
  std::vector<std::string> metrics;
  std::vector<Where> order;
  std::map<Where, std::map<std::string, const v1::ReferenceRow*>> lines;
  Table full({{"host"},
              {"config"},
              {"metric"},
              {"median", Align::kRight},
              {"MAD", Align::kRight},
              {"n", Align::kRight}});
  const auto host_of = [&](const v1::ReferenceRow& row) {
    return layout.hosts.size() == 1 && layout.hosts.contains(row.host()) ? ""
                                                                         : Printable(row.host());
  };
  for (const v1::ReferenceRow& row : diff.references()) {
    if (!row.metric().starts_with("latency")) {
      full.Row({host_of(row), Printable(layout.ConfigOf(row.variant())), Printable(row.metric()),
                MedianWords(row.side(), row.unit()),
                row.side().has_mad() ? FormatQuantity(row.side().mad(), row.unit()) : "-",
                std::to_string(row.side().n())});
      continue;
    }
    if (std::find(metrics.begin(), metrics.end(), row.metric()) == metrics.end()) {
      metrics.push_back(row.metric());
    }
    const Where where{row.host(), row.variant()};
    if (!lines.contains(where)) order.push_back(where);
    lines[where][row.metric()] = &row;
  }
  std::string text = "\nfor reference, not compared (variants without the compared factor)\n" +
                     (full.empty() ? "" : full.Render(use_colour));
  if (order.empty()) return text;
  std::vector<Column> columns{{"host"}, {"config"}};
  for (const std::string& metric : metrics) {
    columns.push_back({ShortMetric(metric), Align::kRight});
  }
  columns.push_back({"n", Align::kRight});
  Table compact(columns);
  for (const Where& where : order) {
    const auto& line = lines[where];
    uint32_t largest_n = 0;
    for (const auto& [metric, row] : line) largest_n = std::max(largest_n, row->side().n());
    std::vector<TableCell> cells{host_of(*line.begin()->second),
                                 Printable(layout.ConfigOf(where.second))};
    for (const std::string& metric : metrics) {
      const auto found = line.find(metric);
      if (found == line.end()) {
        cells.emplace_back("-");
        continue;
      }
      const v1::Side& side = found->second->side();
      cells.emplace_back(MedianWords(side, found->second->unit()) +
                         (side.n() == largest_n ? "" : fmt::format(" (n {})", side.n())));
    }
    cells.emplace_back(std::to_string(largest_n));
    compact.Row(std::move(cells));
  }
  return text + "\nlatency of the references, medians\n" + compact.Render(use_colour);
}

bool IsShown(const v1::DiffRow::CounterDelta& counter) {
  if (!counter.has_a() || !counter.has_b()) return true;
  const double largest = std::max(std::abs(counter.a()), std::abs(counter.b()));
  return largest > 0 && std::abs(counter.b() - counter.a()) / largest >= kMinCounterChange;
}

// What one side cannot have (an engine's counter in the kernel) or a handful of events explains
// little, however large its relative change is.
bool IsTelling(const v1::DiffRow::CounterDelta& counter) {
  return counter.has_a() && counter.has_b() &&
         (counter.unit() != "count" ||
          std::max(std::abs(counter.a()), std::abs(counter.b())) >= kFewEvents);
}

std::string CounterTable(const v1::DiffResponse& diff, const Layout& layout, bool use_colour) {
  std::vector<Column> columns = Layout::WhereColumns();
  for (const Column& column :
       {Column{"counter"}, Column{"median A", Align::kRight}, Column{"median B", Align::kRight},
        Column{"change", Align::kRight}}) {
    columns.push_back(column);
  }
  Table table(columns);
  std::set<std::array<std::string, 3>> seen;
  for (const v1::DiffRow& row : diff.rows()) {
    if (!seen.insert({row.host(), row.variant(), row.b_label()}).second) continue;
    std::vector<TableCell> where = layout.Where(row);
    std::vector<const v1::DiffRow::CounterDelta*> counters;
    for (const bool is_telling : {true, false}) {
      for (const v1::DiffRow::CounterDelta& counter : row.counters()) {
        if (IsShown(counter) && IsTelling(counter) == is_telling) counters.push_back(&counter);
      }
    }
    int shown = 0;
    for (const v1::DiffRow::CounterDelta* delta : counters) {
      if (shown == kMaxCounters) break;
      const v1::DiffRow::CounterDelta& counter = *delta;
      std::vector<TableCell> cells = shown++ == 0 ? where : std::vector<TableCell>(3, "");
      const auto value = [&](bool has, double x) {
        return has ? FormatQuantity(x, counter.unit()) : std::string("-");
      };
      const auto maybe = [](bool has, double x) {
        return has ? std::optional<double>(x) : std::nullopt;
      };
      cells.emplace_back(Printable(counter.name()));
      cells.emplace_back(value(counter.has_a(), counter.a()));
      cells.emplace_back(value(counter.has_b(), counter.b()));
      cells.emplace_back(ChangeWords(maybe(counter.has_a(), counter.a()),
                                     maybe(counter.has_b(), counter.b()), counter.unit()));
      table.Row(std::move(cells));
    }
  }
  if (table.empty()) return "";
  return "\nwhat the mechanism did (medians over the trials; most changed first, rare events and "
         "what "
         "one side lacks last)\n" +
         table.Render(use_colour);
}

struct Tally {
  uint32_t improved = 0, regressed = 0, changed = 0, unchanged = 0, inconclusive = 0, missing = 0;

  void Add(const std::string& verdict) {
    ++(verdict == "improved"    ? improved
       : verdict == "regressed" ? regressed
       : verdict == "changed"   ? changed
       : verdict == "unchanged" ? unchanged
       : verdict == "missing"   ? missing
                                : inconclusive);
  }
  bool operator==(const Tally&) const = default;
  uint32_t total() const {
    return improved + regressed + changed + unchanged + inconclusive + missing;
  }
};

// "prealloc"; "writers=2" where the level alone would say nothing; runs as the heading names them.
std::string SideWords(const v1::DiffResponse& diff, const std::string& label,
                      std::string_view side) {
  if (diff.factor().empty()) return std::string(side);
  const bool is_bare = label.empty() || (label[0] >= '0' && label[0] <= '9') || label == "true" ||
                       label == "false" || label == "on" || label == "off" || label == "none";
  return Printable(is_bare ? diff.factor() + "=" + label : label);
}

std::string InWords(const v1::DiffResponse& diff, bool use_colour) {
  struct Line {
    std::string metric, b_label;
    Tally tally;
    const v1::DiffRow* row = nullptr;
  };
  Tally all;
  std::vector<Line> lines;
  for (const v1::DiffRow& row : diff.rows()) {
    all.Add(row.verdict());
    auto line = std::find_if(lines.begin(), lines.end(), [&](const Line& known) {
      return known.metric == row.metric() && known.b_label == row.b_label();
    });
    if (line == lines.end()) {
      line = lines.insert(lines.end(), {row.metric(), row.b_label(), {}, &row});
    }
    line->tally.Add(row.verdict());
  }
  std::string text = "\nin words\n";
  for (size_t i = 0; i < lines.size();) {
    const Line& first = lines[i];
    const Tally& tally = first.tally;
    std::string metrics = Printable(first.metric);
    // Metrics of which the same is to be said share a line.
    for (++i; i < lines.size() && lines[i].tally == tally && lines[i].b_label == first.b_label;
         ++i) {
      metrics += ", " + Printable(lines[i].metric);
    }
    const Tone tone = tally.regressed > 0  ? Tone::kBad
                      : tally.improved > 0 ? Tone::kGood
                                           : Tone::kPlain;
    std::string line =
        fmt::format("{}: {} is better than {} in {} of {}, worse in {}", metrics,
                    SideWords(diff, first.b_label, "B"), SideWords(diff, first.row->a_label(), "A"),
                    tally.improved, tally.total(), tally.regressed);
    const auto add = [&](uint32_t count, std::string_view what) {
      if (count > 0) line += fmt::format(", {} in {}", what, count);
    };
    add(tally.changed, "changed");
    add(tally.unchanged, "unchanged");
    add(tally.inconclusive, "inconclusive");
    add(tally.missing, "missing");
    text += "  " + Paint(line, tone, use_colour) + "\n";
  }
  text += fmt::format(
      "{} compared: {} improved, {} regressed, {}{} unchanged, {} inconclusive, {} missing\n",
      all.total(), all.improved, all.regressed,
      all.changed > 0 ? fmt::format("{} changed, ", all.changed) : "", all.unchanged,
      all.inconclusive, all.missing);
  text += fmt::format("p is not adjusted: {}, {:.2g} false {} to expect at 0.05\n",
                      Plural(diff.tests(), "test"), diff.expected_false_positives(),
                      diff.expected_false_positives() == 1 ? "positive" : "positives");
  return text;
}

// Each where it holds: "vm, writers=1: latency_p99 has no value"; what holds in many places once.
std::string Warnings(const v1::DiffResponse& diff, bool use_colour) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<std::string>> by_what;
  for (const std::string& warning : diff.warnings()) {
    const size_t cut = warning.find(": ");
    const std::string what = cut == std::string::npos ? warning : warning.substr(cut + 2);
    std::vector<std::string>& all = by_what[what];
    if (all.empty()) order.push_back(what);
    all.push_back(warning);
  }
  std::string text = "\nwarnings\n";
  const auto add = [&](const std::string& line) {
    text += "  " + Paint(Printable(line), Tone::kUnsure, use_colour) + "\n";
  };
  for (const std::string& what : order) {
    const std::vector<std::string>& all = by_what[what];
    if (all.size() >= kManyPlaces) {
      add(fmt::format("{} (in {} places; each: -o json)", what, all.size()));
    } else {
      for (const std::string& warning : all) add(warning);
    }
  }
  return text;
}

}  // namespace

std::string DiffText(const v1::DiffResponse& diff, bool use_colour) {
  if (diff.rows().empty()) return "nothing was compared\n";
  const Layout layout(diff);
  std::vector<std::string> order;
  std::map<std::string, Rows> full;
  Rows compact;
  const bool has_others = std::any_of(diff.rows().begin(), diff.rows().end(),
                                      [](const v1::DiffRow& row) { return !IsLatency(row); });
  for (const v1::DiffRow& row : diff.rows()) {
    if (has_others && IsLatency(row)) {
      compact.push_back(&row);
      continue;
    }
    Rows& rows = full[row.metric() + "\n" + row.unit()];
    if (rows.empty()) order.push_back(row.metric() + "\n" + row.unit());
    rows.push_back(&row);
  }

  std::string text = Heading(diff, layout);
  for (const std::string& key : order) text += FullTable(full[key], layout, use_colour);
  if (!compact.empty()) text += CompactTable(compact, layout, use_colour);
  if (!diff.references().empty()) text += ReferenceTables(diff, layout, use_colour);
  text += CounterTable(diff, layout, use_colour);
  text += InWords(diff, use_colour);
  if (!diff.warnings().empty()) text += Warnings(diff, use_colour);
  return text;
}

std::string StatText(const v1::DiffRow& row, bool use_colour) {
  Table table(
      {{""}, {"n", Align::kRight}, {"median", Align::kRight}, {"MAD", Align::kRight}, {"from"}});
  const auto add = [&](const char* name, const v1::Side& side, const std::string& label) {
    table.Row({name, std::to_string(side.n()), fmt::format("{:.6g}", side.median()),
               fmt::format("{:.4g}", side.mad()), Printable(label)});
  };
  add("A", row.a(), row.a_label());
  add("B", row.b(), row.b_label());
  std::string text = table.Render(use_colour);
  const bool is_ratio = row.effect().kind() == "ratio";
  text += fmt::format("change   {} {} (Hodges-Lehmann {}, exact 95% interval)\n", EffectWords(row),
                      IntervalWords(row), is_ratio ? "ratio B/A" : "shift B - A");
  text += fmt::format("p        {} (Mann-Whitney, two-sided; {} is the least these n can reach)\n",
                      ProbabilityWords(row), fmt::format("{:.2g}", row.min_p()));
  text += fmt::format("verdict  {}\n         {}; smallest change worth a verdict {}\n",
                      Paint(VerdictWords(row), VerdictTone(row), use_colour),
                      row.better() == v1::DIRECTION_NONE
                          ? "neither direction is better (--better higher|lower says which is)"
                          : DirectionWords(row.better()),
                      PercentWords(row.min_change()));
  return text;
}

}  // namespace pipeyard::report
