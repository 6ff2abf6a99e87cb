#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "controller/report/json.h"
#include "controller/report/json_parts.h"
#include "proto/settings/variant.h"

namespace pipeyard::report {
namespace {

Json HostObject(const v1::Host& host) {
  const v1::HostFacts& facts = host.facts();
  Json nodes = Json::array();
  for (const v1::NumaNode& node : facts.nodes()) {
    nodes.push_back(
        {{"id", node.id()}, {"cpus", node.cpus()}, {"memory_bytes", node.memory_bytes()}});
  }
  Json distances = Json::array();
  const int n = facts.nodes_size();
  for (int row = 0; n > 0 && facts.distances_size() == n * n && row < n; ++row) {
    Json line = Json::array();
    for (int column = 0; column < n; ++column) line.push_back(facts.distances(row * n + column));
    distances.push_back(std::move(line));
  }
  return {{"host", host.name()},
          {"host_id", host.host_id()},
          {"state", host.state()},
          {"boot", OrNull(host.boot_id())},
          {"first_seen_utc_ns", TimeOrNull(host.first_seen_utc_ns())},
          {"last_seen_utc_ns", TimeOrNull(host.last_seen_utc_ns())},
          {"running", OrNull(host.running())},
          {"agent_version", host.agent_version()},
          {"labels", SortedObject(SortedMap(host.labels()))},
          {"capabilities",
           std::vector<std::string>(host.capabilities().begin(), host.capabilities().end())},
          {"facts",
           {{"kernel", facts.kernel_release()},
            {"machine", facts.machine()},
            {"cpu_model", facts.cpu_model()},
            {"online_cpus", facts.online_cpus()},
            {"memory_bytes", facts.memory_bytes()},
            {"page_size_bytes", facts.page_size_bytes()},
            {"hypervisor", OrNull(facts.hypervisor())},
            {"nodes", std::move(nodes)},
            {"distances", std::move(distances)},
            {"more", SortedObject(SortedMap(facts.more()))}}}};
}

const char* OrderName(spec::OrderKind order) {
  if (order == spec::OrderKind::kRandom) return "random";
  if (order == spec::OrderKind::kListed) return "listed";
  return "blocked";
}

Json SweepJson(const spec::Sweep& sweep) {
  Json json{{"sweep", sweep.name},
            {"workload", sweep.workload},
            {"hosts",
             {{"class", sweep.hosts.classes},
              {"names", sweep.hosts.names},
              {"labels", SortedObject(SortedMap(sweep.hosts.labels))},
              {"not_labels", SortedObject(SortedMap(sweep.hosts.not_labels))},
              {"min_nodes", sweep.hosts.min_nodes}}},
            {"expect", SortedObject(SortedMap(sweep.expect))},
            {"compare", nullptr},
            {"repetitions", {{"min", sweep.repetitions_min}, {"max", sweep.repetitions_max}}},
            {"order",
             {{"kind", OrderName(sweep.order)},
              {"seed", sweep.seed ? Json(*sweep.seed) : Json(nullptr)}}},
            {"limits",
             {{"attempts", sweep.attempts_limit},
              {"host_wait_ns", sweep.host_wait.count()},
              {"on_crash", sweep.stops_host_on_crash ? "stop-host" : "retry"}}},
            {"min_change", Json::object()},
            {"labels", SortedObject(SortedMap(sweep.labels))},
            {"priority", sweep.priority}};
  if (!sweep.compare_factor.empty()) {
    json["compare"] = {{"factor", sweep.compare_factor}, {"baseline", sweep.compare_baseline}};
  }
  for (const auto& [metric, change] : sweep.min_change) json["min_change"][metric] = change;
  json["variants"] = Json::array();
  for (const spec::SweepVariant& variant : sweep.variants) {
    const v1::VariantSettings settings = settings::ToProto(variant.variant);
    json["variants"].push_back({{"variant", variant.variant_id},
                                {"text", variant.text},
                                {"arm", OrNull(variant.arm)},
                                {"comparison", variant.comparison},
                                {"target", variant.variant.target},
                                {"trial_timeout_ns", variant.trial_timeout.count()},
                                {"settings", SettingsJson(settings)}});
  }
  return json;
}

}  // namespace

std::string HostListJson(const v1::ListHostsResponse& hosts) {
  Json json = Schema("hosts");
  json["hosts"] = Json::array();
  for (const v1::Host& host : hosts.hosts()) json["hosts"].push_back(HostObject(host));
  return Dump(json);
}

std::string HostJson(const v1::Host& host) {
  Json json = Schema("host");
  Append(HostObject(host), &json);
  return Dump(json);
}

std::string ValidateJson(const spec::ReadResult& result) {
  Json json = Schema("sweep");
  json["valid"] = result.ok();
  json["problems"] = Json::array();
  for (const spec::Problem& problem : result.problems) {
    json["problems"].push_back(
        ProblemJson(problem.line, problem.column, problem.what, problem.meant, problem.is_warning));
  }
  if (result.ok()) Append(SweepJson(result.sweep), &json);
  return Dump(json);
}

std::string PlanJson(const v1::Plan& plan) {
  Json json = Schema("plan");
  json["problems"] = ProblemsJson(plan.problems());
  json["hosts"] = Json::array();
  for (const v1::Plan::HostPlan& host : plan.hosts()) {
    Json excluded = Json::array();
    for (const auto& cell : host.not_applicable()) {
      excluded.push_back({{"variant", cell.variant_id()},
                          {"text", cell.variant_text()},
                          {"reason", cell.reason()}});
    }
    json["hosts"].push_back({{"host", host.host()},
                             {"connected", host.is_connected()},
                             {"cells", host.cells()},
                             {"blocks", host.blocks()},
                             {"trials", host.trials()},
                             {"expected_ns", host.expected_ns()},
                             {"not_applicable", std::move(excluded)}});
  }
  json["notes"] = std::vector<std::string>(plan.notes().begin(), plan.notes().end());
  return Dump(json);
}

}  // namespace pipeyard::report
