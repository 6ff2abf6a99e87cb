#include "controller/report/run_text.h"

#include <fmt/format.h>

#include <map>
#include <utility>
#include <vector>

#include "controller/report/table.h"
#include "controller/report/words.h"

namespace pipeyard::report {
namespace {

Tone StateTone(const std::string& state) {
  if (state == "failed" || state == "missing" || state == "timeout" || state == "lost") {
    return Tone::kBad;
  }
  if (state == "canceled" || state == "void") return Tone::kUnsure;
  if (state == "not_applicable") return Tone::kQuiet;
  return Tone::kPlain;
}

template <typename Map>
std::string LabelWords(const Map& labels) {
  const std::map<std::string, std::string> sorted(labels.begin(), labels.end());
  std::string text;
  for (const auto& [name, value] : sorted) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, value);
  }
  return Printable(text);
}

std::string TrialName(const v1::Cell& cell, const v1::Trial& trial) {
  return fmt::format("{}/{}/{}", Printable(cell.host()), Printable(cell.variant_id()),
                     trial.index());
}

std::string OutcomeOf(const v1::Attempt& attempt) {
  return attempt.outcome().empty() ? "running" : Printable(attempt.outcome());
}

// "6 ok", "5 ok, 1 failed", by state of the trials; then how many attempts that took where it is
// more than one each.
std::string TrialWords(const v1::Cell& cell) {
  std::vector<std::pair<std::string, int>> counts;
  int attempts = 0;
  for (const v1::Trial& trial : cell.trials()) {
    attempts += trial.attempts_size();
    auto found = counts.begin();
    while (found != counts.end() && found->first != trial.state()) ++found;
    if (found == counts.end()) found = counts.insert(found, {trial.state(), 0});
    ++found->second;
  }
  std::string text;
  for (const auto& [state, count] : counts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, Printable(state));
  }
  if (attempts > cell.trials_size()) text += fmt::format(" in {} attempts", attempts);
  return text;
}

std::string CellTable(const v1::Run& run, bool use_colour) {
  Table table({{"host"}, {"variant"}, {"settings"}, {"state"}, {"trials"}, {"reason"}});
  for (const v1::Cell& cell : run.cells()) {
    table.Row({Printable(cell.host()), Printable(cell.variant_id()), Printable(cell.variant_text()),
               TableCell(Printable(cell.state()), StateTone(cell.state())), TrialWords(cell),
               Printable(cell.reason())});
  }
  return table.empty() ? "" : "\ncells\n" + table.Render(use_colour);
}

std::string AttemptTable(const v1::Run& run, bool use_colour) {
  Table table({{"trial"},
               {"block", Align::kRight},
               {"state"},
               {"attempt", Align::kRight},
               {"outcome"},
               {"took", Align::kRight},
               {"reason"}});
  bool is_begun = false;
  for (const v1::Cell& cell : run.cells()) {
    for (const v1::Trial& trial : cell.trials()) {
      for (const v1::Attempt& attempt : trial.attempts()) {
        is_begun = true;
        if (attempt.outcome() == "ok") continue;
        table.Row({TrialName(cell, trial), std::to_string(trial.block()), Printable(trial.state()),
                   std::to_string(attempt.number()),
                   TableCell(OutcomeOf(attempt), StateTone(attempt.outcome())),
                   attempt.elapsed_ns() > 0 ? SpanWords(attempt.elapsed_ns()) : "-",
                   Printable(attempt.reason())});
      }
    }
  }
  if (!is_begun) return "\nno attempt was begun\n";
  return table.empty() ? "\nevery attempt so far was ok\n"
                       : "\nattempts that were not ok\n" + table.Render(use_colour);
}

// "1667450" rather than "1.66745e+06": the two numbers are to be compared by eye.
std::string PlainNumber(double value) {
  return value >= 1e4 && value < 1e15 ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
}

std::string SelfCheckTable(const v1::Run& run, bool use_colour) {
  Table table({{"trial"},
               {"attempt", Align::kRight},
               {"check"},
               {"expected", Align::kRight},
               {"measured", Align::kRight},
               {"tolerance", Align::kRight}});
  for (const v1::Cell& cell : run.cells()) {
    for (const v1::Trial& trial : cell.trials()) {
      for (const v1::Attempt& attempt : trial.attempts()) {
        for (const v1::SelfCheck& check : attempt.self_checks()) {
          if (check.passed()) continue;
          table.Row({TrialName(cell, trial), std::to_string(attempt.number()),
                     TableCell(Printable(check.name()), Tone::kBad), PlainNumber(check.expected()),
                     PlainNumber(check.measured()), PercentWords(check.tolerance())});
        }
      }
    }
  }
  return table.empty() ? "" : "\nself-checks that failed\n" + table.Render(use_colour);
}

// Pages per node over the ok attempts of each cell.
std::string PlacementTable(const v1::Run& run, bool use_colour) {
  Table table({{"host"}, {"settings"}, {"memory"}, {"evidence"}, {"pages or objects per node"}});
  for (const v1::Cell& cell : run.cells()) {
    std::map<std::pair<std::string, std::string>, std::map<int32_t, int64_t>> sums;
    for (const v1::Trial& trial : cell.trials()) {
      for (const v1::Attempt& attempt : trial.attempts()) {
        if (attempt.outcome() != "ok") continue;
        for (const v1::Placement& placement : attempt.placements()) {
          auto& nodes = sums[{placement.memory(), placement.evidence()}];
          for (const auto& [node, pages] : placement.pages_per_node()) nodes[node] += pages;
        }
      }
    }
    for (const auto& [kind, nodes] : sums) {
      std::string where;
      for (const auto& [node, pages] : nodes) {
        where += fmt::format("{}node{} {}", where.empty() ? "" : ", ", node, pages);
      }
      table.Row({Printable(cell.host()), Printable(cell.variant_text()), Printable(kind.first),
                 Printable(kind.second), where});
    }
  }
  return table.empty() ? ""
                       : "\nwhere memory lay (sum over ok attempts)\n" + table.Render(use_colour);
}

}  // namespace

std::string RunListText(const v1::ListRunsResponse& runs, bool use_colour) {
  if (runs.runs().empty()) return "no runs\n";
  Table table({{"run"},
               {"sweep"},
               {"state"},
               {"done", Align::kRight},
               {"hosts", Align::kRight},
               {"variants", Align::kRight},
               {"created"},
               {"note"},
               {"labels"}});
  for (const v1::RunSummary& run : runs.runs()) {
    table.Row({ShortId(run.run_id()), Printable(run.sweep()),
               TableCell(Printable(run.state()), StateTone(run.state())),
               fmt::format("{}/{}", run.trials_done(), run.trials()), std::to_string(run.hosts()),
               std::to_string(run.variants()), UtcWords(run.created_utc_ns()),
               Printable(run.note()), LabelWords(run.labels())});
  }
  return table.Render(use_colour) +
         (runs.next_page_token().empty() ? "" : "older runs were left out\n");
}

std::string RunText(const v1::Run& run, bool use_colour) {
  const v1::RunSummary& summary = run.summary();
  std::string text =
      fmt::format("run      {}\nsweep    {}\nstate    {}, {} of {} trials done\ncreated  {}\n",
                  Printable(summary.run_id()), Printable(summary.sweep()),
                  Paint(Printable(summary.state()), StateTone(summary.state()), use_colour),
                  summary.trials_done(), summary.trials(), UtcWords(summary.created_utc_ns()));
  if (summary.ended_utc_ns() > 0) text += "ended    " + UtcWords(summary.ended_utc_ns()) + "\n";
  if (!run.compare_factor().empty()) {
    text += fmt::format("compare  {}, baseline {}\n", Printable(run.compare_factor()),
                        Printable(run.compare_baseline()));
  }
  text += fmt::format("seed     {}\n", run.order_seed());
  if (!summary.note().empty()) text += "note     " + Printable(summary.note()) + "\n";
  if (!summary.labels().empty()) text += "labels   " + LabelWords(summary.labels()) + "\n";
  text += CellTable(run, use_colour);
  text += AttemptTable(run, use_colour);
  text += SelfCheckTable(run, use_colour);
  text += PlacementTable(run, use_colour);
  return text;
}

std::string RunLine(const v1::RunSummary& summary) {
  return fmt::format("{} {} {}: {} of {} trials done", ShortId(summary.run_id()),
                     Printable(summary.sweep()), Printable(summary.state()), summary.trials_done(),
                     summary.trials());
}

}  // namespace pipeyard::report
