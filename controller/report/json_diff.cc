#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "controller/report/json.h"
#include "controller/report/json_parts.h"

namespace pipeyard::report {
namespace {

Json SideJson(const v1::Side& side) {
  return {{"n", side.n()},
          {"median", Maybe(side.has_median(), side.median())},
          {"boots", side.boots() == 0 ? Json(nullptr) : Json(side.boots())},
          {"mad", Maybe(side.has_mad(), side.mad())}};
}

Json EffectJson(const v1::Effect& effect) {
  const auto bounds = [](bool has_low, double low, bool has_high, double high) {
    return Json::array({Maybe(has_low, low), Maybe(has_high, high)});
  };
  return {{"kind", OrNull(effect.kind())},
          {"value", Maybe(effect.has_value(), effect.value())},
          {"ci95", bounds(effect.has_ci95_low(), effect.ci95_low(), effect.has_ci95_high(),
                          effect.ci95_high())},
          {"ci90", bounds(effect.has_ci90_low(), effect.ci90_low(), effect.has_ci90_high(),
                          effect.ci90_high())}};
}

// What stat and diff rows share.
void AddComparison(const v1::DiffRow& row, Json* json) {
  (*json)["better"] = DirectionName(row.better());
  (*json)["a"] = SideJson(row.a());
  (*json)["b"] = SideJson(row.b());
  (*json)["effect"] = EffectJson(row.effect());
  (*json)["p"] = Maybe(row.has_p(), row.p());
  (*json)["min_p"] = Maybe(row.has_min_p(), row.min_p());
  (*json)["mde"] = Maybe(row.has_mde(), row.mde());
  (*json)["verdict"] = row.verdict();
  (*json)["reason"] = row.reason();
  (*json)["test"] = row.test();
  (*json)["min_change"] = row.min_change();
  (*json)["need_more"] = row.need_more();
  (*json)["a_label"] = row.a_label();
  (*json)["b_label"] = row.b_label();
}

Json RowJson(const v1::DiffRow& row) {
  Json json{{"host", row.host()},
            {"variant", row.variant()},
            {"metric", row.metric()},
            {"unit", row.unit()}};
  AddComparison(row, &json);
  json["counters"] = Json::array();
  for (const v1::DiffRow::CounterDelta& counter : row.counters()) {
    json["counters"].push_back({{"name", counter.name()},
                                {"unit", counter.unit()},
                                {"a", Maybe(counter.has_a(), counter.a())},
                                {"b", Maybe(counter.has_b(), counter.b())}});
  }
  json["dropped_pairs"] = row.dropped_pairs();
  json["void_attempts"] = row.void_attempts();
  json["failed_attempts"] = row.failed_attempts();
  json["emulated"] = row.emulated();
  json["modelled"] = OrNull(row.modelled());
  return json;
}

Json DiffObject(const v1::DiffResponse& diff) {
  Json json = Schema("diff");
  json["a"] = diff.a();
  json["b"] = diff.b();
  json["sweep"] = diff.sweep();
  json["factor"] = OrNull(diff.factor());
  json["baseline"] = OrNull(diff.baseline());
  json["rows"] = Json::array();
  for (const v1::DiffRow& row : diff.rows()) json["rows"].push_back(RowJson(row));
  json["references"] = Json::array();
  for (const v1::ReferenceRow& row : diff.references()) {
    json["references"].push_back({{"host", row.host()},
                                  {"variant", row.variant()},
                                  {"metric", row.metric()},
                                  {"unit", row.unit()},
                                  {"better", DirectionName(row.better())},
                                  {"side", SideJson(row.side())},
                                  {"modelled", OrNull(row.modelled())}});
  }
  json["warnings"] = std::vector<std::string>(diff.warnings().begin(), diff.warnings().end());
  json["tests"] = diff.tests();
  json["expected_false_positives"] = diff.expected_false_positives();
  json["exit"] = diff.exit_status();
  return json;
}

}  // namespace

std::string DiffJson(const v1::DiffResponse& diff) { return Dump(DiffObject(diff)); }

std::string StatJson(const v1::DiffRow& row) {
  Json json = Schema("stat");
  AddComparison(row, &json);
  return Dump(json);
}

std::string WatchJson(const v1::RunProgress& progress, const v1::DiffResponse* diff) {
  Json json = Schema("watch");
  Append(SummaryJson(progress.summary()), &json);
  json["exit"] = progress.exit_status();
  json["diff"] = diff != nullptr ? DiffObject(*diff) : Json(nullptr);
  return Dump(json);
}

}  // namespace pipeyard::report
