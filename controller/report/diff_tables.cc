#include "controller/report/diff_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

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

// `line_count` is what the line's column n says.
std::string CompactWords(const v1::DiffRow& row, const std::string& line_count) {
  const std::string& verdict = row.verdict();
  if (verdict == "missing" || verdict == "inert") return verdict;
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

}  // namespace

std::string FullTable(const Rows& rows, const Layout& layout, bool use_colour) {
  const v1::DiffRow& first = *rows.front();
  std::vector<Column> columns = Layout::WhereColumns();
  for (const Column& column :
       {Column{"A", Align::kRight}, Column{"B", Align::kRight}, Column{"change", Align::kRight},
        Column{"95% interval"}, Column{"p", Align::kRight}, Column{"n", Align::kRight},
        Column{"verdict"}, Column{"time"}, Column{"detects", Align::kRight}, Column{"needs"},
        Column{"lost"}}) {
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
    cells.emplace_back(ModelledWords(row->modelled(), row->unit()), Tone::kUnsure);
    cells.emplace_back(DetectsWords(*row));
    cells.emplace_back(NeedsWords(*row));
    cells.emplace_back(LossWords(*row), Tone::kUnsure);
    table.Row(std::move(cells));
  }
  return fmt::format("\n{} ({})\n{}", Printable(first.metric()), DirectionWords(first.better()),
                     table.Render(use_colour));
}

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
  columns.push_back({"time"});
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
    cells.emplace_back(ModelledWords(first.modelled(), first.unit()), Tone::kUnsure);
    cells.emplace_back(LossWords(first), Tone::kUnsure);
    table.Row(std::move(cells));
  }
  return fmt::format("\nlatency ({}), change of each with its verdict; all numbers: -o json\n{}",
                     DirectionWords(rows.front()->better()), table.Render(use_colour));
}

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
              {"n", Align::kRight},
              {"time"}});
  const auto host_of = [&](const v1::ReferenceRow& row) {
    return layout.hosts.size() == 1 && layout.hosts.contains(row.host()) ? ""
                                                                         : Printable(row.host());
  };
  for (const v1::ReferenceRow& row : diff.references()) {
    if (!row.metric().starts_with("latency")) {
      full.Row({host_of(row),
                Printable(layout.ConfigOf(row.variant())),
                Printable(row.metric()),
                MedianWords(row.side(), row.unit()),
                row.side().has_mad() ? FormatQuantity(row.side().mad(), row.unit()) : "-",
                std::to_string(row.side().n()),
                {ModelledWords(row.modelled(), row.unit()), Tone::kUnsure}});
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
  columns.push_back({"time"});
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
    const v1::ReferenceRow& any = *line.begin()->second;
    cells.emplace_back(ModelledWords(any.modelled(), any.unit()), Tone::kUnsure);
    compact.Row(std::move(cells));
  }
  return text + "\nlatency of the references, medians\n" + compact.Render(use_colour);
}

std::string CounterTable(const v1::DiffResponse& diff, const Layout& layout, bool use_colour) {
  std::vector<Column> columns = Layout::WhereColumns();
  for (const Column& column :
       {Column{"counter"}, Column{"median A", Align::kRight}, Column{"median B", Align::kRight},
        Column{"change", Align::kRight}, Column{"time"}}) {
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
      cells.emplace_back(ModelledWords(row.modelled(), counter.unit()), Tone::kUnsure);
      table.Row(std::move(cells));
    }
  }
  if (table.empty()) return "";
  return "\nwhat the mechanism did (medians over the trials; most changed first, rare events and "
         "what "
         "one side lacks last)\n" +
         table.Render(use_colour);
}

}  // namespace pipeyard::report
