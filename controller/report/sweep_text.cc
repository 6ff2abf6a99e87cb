#include "controller/report/sweep_text.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <vector>

#include "controller/report/table.h"
#include "controller/report/words.h"

namespace pipeyard::report {
namespace {

std::string OrderWords(spec::OrderKind order) {
  switch (order) {
    case spec::OrderKind::kBlocked:
      return "blocked";
    case spec::OrderKind::kRandom:
      return "random";
    case spec::OrderKind::kListed:
      return "listed";
  }
  return "blocked";
}

std::string Listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + Printable(name);
  return text;
}

std::string Listed(const std::map<std::string, std::string>& pairs) {
  std::vector<std::string> texts;
  for (const auto& [name, value] : pairs) texts.push_back(name + "=" + value);
  return Listed(texts);
}

std::string HostWords(const spec::HostSelector& hosts) {
  std::string text;
  const auto add = [&](std::string_view what, const std::string& list) {
    if (!list.empty()) text += fmt::format("{}{} {}", text.empty() ? "" : "; ", what, list);
  };
  add("names", Listed(hosts.names));
  add("class", Listed(hosts.classes));
  add("labels", Listed(hosts.labels));
  add("not labels", Listed(hosts.not_labels));
  if (hosts.min_nodes > 1) add("at least", Plural(hosts.min_nodes, "node"));
  return text.empty() ? "every host" : text;
}

// Settings that are equal in every variant that has them, as a person writes them.
std::map<std::string, std::string> FixedSettings(const spec::Sweep& sweep) {
  std::map<std::string, std::set<std::string>> values;
  for (const spec::SweepVariant& variant : sweep.variants) {
    for (const auto& [name, value] : variant.variant.values) {
      values[name].insert(settings::DisplayValue(variant.variant.workload, name, value));
    }
  }
  std::map<std::string, std::string> fixed;
  for (const auto& [name, texts] : values) {
    if (texts.size() == 1) fixed[name] = *texts.begin();
  }
  return fixed;
}

}  // namespace

std::string SweepText(const spec::Sweep& sweep, bool use_colour) {
  std::string text;
  const auto line = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) text += fmt::format("{:<12} {}\n", name, value);
  };
  line("sweep", Printable(sweep.name));
  line("workload", Printable(sweep.workload));
  line("hosts", HostWords(sweep.hosts));
  line("expect", Listed(sweep.expect));
  if (!sweep.compare_factor.empty()) {
    line("compare", fmt::format("{}, baseline {}", Printable(sweep.compare_factor),
                                Printable(sweep.compare_baseline)));
  }
  line("repetitions", sweep.repetitions_min == sweep.repetitions_max
                          ? std::to_string(sweep.repetitions_min)
                          : fmt::format("{} to {}", sweep.repetitions_min, sweep.repetitions_max));
  line("order", OrderWords(sweep.order) + (sweep.seed ? fmt::format(", seed {}", *sweep.seed)
                                                      : ", seed drawn at submit"));
  line("limits",
       fmt::format("{}, host_wait {}, on_crash {}", Plural(sweep.attempts_limit, "attempt"),
                   FormatDuration(sweep.host_wait),
                   sweep.stops_host_on_crash ? "stop-host" : "retry"));
  line("labels", Listed(sweep.labels));
  text += "\nsettings equal in every variant\n";
  Table fixed({{"name"}, {"value"}}, "  ");
  for (const auto& [name, value] : FixedSettings(sweep)) {
    // A knob that is not commanded has no value.
    if (!value.empty()) fixed.Row({Printable(name), Printable(value)});
  }
  text += fixed.Render(use_colour);
  text += fmt::format("\n{}\n", Plural(sweep.variants.size(), "variant"));
  Table table({{"id"}, {"target"}, {"settings"}, {"arm"}, {"trial_timeout", Align::kRight}}, "  ");
  for (const spec::SweepVariant& variant : sweep.variants) {
    table.Row({variant.variant_id, Printable(variant.variant.target), Printable(variant.text),
               Printable(variant.arm), FormatDuration(variant.trial_timeout)});
  }
  return text + table.Render(use_colour);
}

std::string PlanText(const v1::Plan& plan, bool use_colour) {
  std::string text;
  Table table({{"host"},
               {"state"},
               {"cells", Align::kRight},
               {"blocks", Align::kRight},
               {"trials", Align::kRight},
               {"expected", Align::kRight},
               {"not applicable", Align::kRight}});
  Table excluded({{"host"}, {"variant"}, {"settings"}, {"reason"}});
  for (const v1::Plan::HostPlan& host : plan.hosts()) {
    table.Row({Printable(host.host()),
               TableCell(host.is_connected() ? "connected" : "away",
                         host.is_connected() ? Tone::kGood : Tone::kUnsure),
               std::to_string(host.cells()), std::to_string(host.blocks()),
               std::to_string(host.trials()), SpanWords(host.expected_ns()),
               std::to_string(host.not_applicable_size())});
    for (const auto& cell : host.not_applicable()) {
      excluded.Row({Printable(host.host()), Printable(cell.variant_id()),
                    Printable(cell.variant_text()), Printable(cell.reason())});
    }
  }
  text += table.empty() ? "no host would run this sweep\n" : table.Render(use_colour);
  if (!excluded.empty()) text += "\nnot applicable\n" + excluded.Render(use_colour);
  if (!plan.notes().empty()) {
    text += "\nnotes\n";
    for (const std::string& note : plan.notes()) text += "  " + Printable(note) + "\n";
  }
  return text;
}

std::string ProblemsText(const google::protobuf::RepeatedPtrField<v1::SpecProblem>& problems,
                         std::string_view file_name) {
  std::string text;
  for (const v1::SpecProblem& problem : problems) {
    const spec::Problem same{problem.line(), problem.column(), problem.what(), problem.meant(),
                             problem.is_warning()};
    text += Printable(same.Format(file_name)) + "\n";
  }
  return text;
}

}  // namespace pipeyard::report
