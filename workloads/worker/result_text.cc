#include "workloads/worker/result_text.h"

#include <fmt/format.h>

#include <map>

#include "base/units.h"

namespace pipeyard::worker {
namespace {

std::string OutcomeWord(v1::Outcome outcome) {
  switch (outcome) {
    case v1::OUTCOME_OK:
      return "ok";
    case v1::OUTCOME_VOID:
      return "void";
    case v1::OUTCOME_FAILED:
      return "failed";
    case v1::OUTCOME_NOT_APPLICABLE:
      return "not_applicable";
    default:
      return v1::Outcome_Name(outcome);
  }
}

std::string OutcomeLine(const v1::WorkerResult& result) {
  std::string line = OutcomeWord(result.outcome());
  if (!result.reason_code().empty()) {
    line += fmt::format(" ({}): {}", result.reason_code(), result.reason_text());
  }
  return line + "\n";
}

std::string CounterText(const v1::Counter& counter) {
  if (counter.unit() == "ns") return FormatQuantity(static_cast<double>(counter.value()), "ns");
  return fmt::format("{}{}", counter.value(),
                     counter.unit() == "count" ? "" : " " + counter.unit());
}

std::string PlacementLine(const v1::Placement& placement) {
  std::string line = fmt::format("{} ({}):", placement.memory(), placement.evidence());
  const std::map<int32_t, int64_t> sorted(placement.pages_per_node().begin(),
                                          placement.pages_per_node().end());
  const char* const unit = placement.memory() == "engine-objects" ? "objects" : "pages";
  for (const auto& [node, count] : sorted)
    line += fmt::format(" node {}: {} {}", node, count, unit);
  return line + "\n";
}

std::string SelfCheckLine(const v1::SelfCheck& check) {
  return fmt::format("self-check {} {}: expected {:.6g}, measured {:.6g}, tolerance {:.2f} %\n",
                     check.name(), check.passed() ? "passed" : "FAILED", check.expected(),
                     check.measured(), check.tolerance() * 100);
}

}  // namespace

std::string ResultText(const v1::WorkerResult& result) {
  std::string text = OutcomeLine(result);
  for (const v1::Metric& metric : result.metrics()) {
    text += fmt::format("  {:<32} {}\n", metric.name(),
                        metric.has_value() ? FormatQuantity(metric.value(), metric.unit())
                                           : "- (" + metric.absent_reason() + ")");
  }
  for (const v1::Counter& counter : result.counters()) {
    text += fmt::format("  {:<32} {}\n", counter.name(), CounterText(counter));
  }
  for (const v1::ResolvedValue& value : result.resolved()) {
    text += fmt::format("{} {} became {}\n", value.name(), value.as_written(), value.resolved());
  }
  for (const v1::Placement& placement : result.placements()) text += PlacementLine(placement);
  for (const v1::SelfCheck& check : result.self_checks()) text += SelfCheckLine(check);
  for (const std::string& name : result.inert_switches()) text += "inert: " + name + "\n";
  if (result.emulated()) text += "emulated topology: time effects are modelled\n";
  return text;
}

}  // namespace pipeyard::worker
