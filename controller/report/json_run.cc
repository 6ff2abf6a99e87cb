#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "controller/report/json.h"
#include "controller/report/json_parts.h"

namespace pipeyard::report {
namespace {

Json AttemptJson(const v1::Attempt& attempt) {
  Json json{{"id", attempt.attempt_id()},         {"outcome", OrNull(attempt.outcome())},
            {"reason", attempt.reason()},         {"number", attempt.number()},
            {"elapsed_ns", attempt.elapsed_ns()}, {"boot", OrNull(attempt.boot_id())}};
  json["metrics"] = Json::array();
  for (const v1::Metric& metric : attempt.metrics()) {
    json["metrics"].push_back({{"metric", metric.name()},
                               {"unit", metric.unit()},
                               {"better", DirectionName(metric.better())},
                               {"reducer", metric.reducer()},
                               {"value", Maybe(metric.has_value(), metric.value())},
                               {"absent_reason", metric.absent_reason()}});
  }
  json["counters"] = Json::array();
  for (const v1::Counter& counter : attempt.counters()) {
    json["counters"].push_back(
        {{"name", counter.name()}, {"unit", counter.unit()}, {"value", counter.value()}});
  }
  json["placements"] = Json::array();
  for (const v1::Placement& placement : attempt.placements()) {
    const std::map<int32_t, int64_t> sorted(placement.pages_per_node().begin(),
                                            placement.pages_per_node().end());
    Json nodes = Json::object();
    for (const auto& [node, pages] : sorted) nodes[std::to_string(node)] = pages;
    json["placements"].push_back({{"memory", placement.memory()},
                                  {"evidence", placement.evidence()},
                                  {"pages_per_node", std::move(nodes)}});
  }
  json["self_checks"] = Json::array();
  for (const v1::SelfCheck& check : attempt.self_checks()) {
    json["self_checks"].push_back({{"name", check.name()},
                                   {"passed", check.passed()},
                                   {"expected", check.expected()},
                                   {"measured", check.measured()},
                                   {"tolerance", check.tolerance()}});
  }
  json["inert_switches"] =
      std::vector<std::string>(attempt.inert_switches().begin(), attempt.inert_switches().end());
  json["emulated"] = attempt.emulated();
  return json;
}

Json CellJson(const v1::Cell& cell) {
  Json json{{"host", cell.host()},
            {"variant", cell.variant_id()},
            {"state", cell.state()},
            {"reason", cell.reason()},
            {"host_id", cell.host_id()},
            {"text", cell.variant_text()},
            {"workload", cell.settings().workload()},
            {"workload_version", cell.settings().workload_version()},
            {"target", cell.settings().target()},
            {"settings", SettingsJson(cell.settings())}};
  json["trials"] = Json::array();
  for (const v1::Trial& trial : cell.trials()) {
    Json attempts = Json::array();
    for (const v1::Attempt& attempt : trial.attempts()) attempts.push_back(AttemptJson(attempt));
    json["trials"].push_back({{"index", trial.index()},
                              {"block", trial.block()},
                              {"state", trial.state()},
                              {"attempts", std::move(attempts)}});
  }
  return json;
}

}  // namespace

std::string RunListJson(const v1::ListRunsResponse& runs) {
  Json json = Schema("runs");
  json["runs"] = Json::array();
  for (const v1::RunSummary& run : runs.runs()) json["runs"].push_back(SummaryJson(run));
  json["next_page"] = OrNull(runs.next_page_token());
  return Dump(json);
}

std::string RunJson(const v1::Run& run) {
  Json json = Schema("run");
  Append(SummaryJson(run.summary()), &json);
  json["exit"] = run.exit_status();
  json["compare"] = nullptr;
  if (!run.compare_factor().empty()) {
    json["compare"] = {{"factor", run.compare_factor()}, {"baseline", run.compare_baseline()}};
  }
  json["order_seed"] = run.order_seed();
  json["sweep_yaml"] = run.sweep_yaml();
  json["cells"] = Json::array();
  for (const v1::Cell& cell : run.cells()) json["cells"].push_back(CellJson(cell));
  return Dump(json);
}

std::string SubmitJson(const v1::SubmitSweepResponse& response) {
  Json json = Schema("submit");
  json["run"] = OrNull(response.run_id());
  json["problems"] = ProblemsJson(response.problems());
  return Dump(json);
}

std::string CancelJson(const v1::RunProgress& progress) {
  Json json = Schema("cancel");
  Append(SummaryJson(progress.summary()), &json);
  return Dump(json);
}

}  // namespace pipeyard::report
