#include "controller/report/diff_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "controller/report/diff_layout.h"
#include "controller/report/diff_tables.h"
#include "controller/report/table.h"
#include "controller/report/words.h"

namespace pipeyard::report {
namespace {

// So many warnings that differ in their place only are told as one.
constexpr size_t kManyPlaces = 3;

bool IsLatency(const v1::DiffRow& row) { return row.metric().starts_with("latency"); }

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

struct Tally {
  uint32_t improved = 0, regressed = 0, changed = 0, unchanged = 0, inconclusive = 0, missing = 0;
  uint32_t inert = 0;

  void Add(const std::string& verdict) {
    ++(verdict == "improved"    ? improved
       : verdict == "regressed" ? regressed
       : verdict == "changed"   ? changed
       : verdict == "unchanged" ? unchanged
       : verdict == "missing"   ? missing
       : verdict == "inert"     ? inert
                                : inconclusive);
  }
  bool operator==(const Tally&) const = default;
  uint32_t total() const {
    return improved + regressed + changed + unchanged + inconclusive + missing + inert;
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
    if (tally.inert == tally.total()) {
      line = fmt::format("{}: {} against {} is inert in {}: nothing in which they differ can act",
                         metrics, SideWords(diff, first.b_label, "B"),
                         SideWords(diff, first.row->a_label(), "A"), tally.inert);
      text += "  " + Paint(line, Tone::kQuiet, use_colour) + "\n";
      continue;
    }
    add(tally.changed, "changed");
    add(tally.unchanged, "unchanged");
    add(tally.inconclusive, "inconclusive");
    add(tally.missing, "missing");
    add(tally.inert, "inert");
    if (const std::string modelled = ModelledWords(first.row->modelled(), first.row->unit());
        !modelled.empty()) {
      line += "; " + modelled;
    }
    text += "  " + Paint(line, tone, use_colour) + "\n";
  }
  text += fmt::format(
      "{} compared: {} improved, {} regressed, {}{} unchanged, {} inconclusive, {} missing{}\n",
      all.total(), all.improved, all.regressed,
      all.changed > 0 ? fmt::format("{} changed, ", all.changed) : "", all.unchanged,
      all.inconclusive, all.missing, all.inert > 0 ? fmt::format(", {} inert", all.inert) : "");
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
