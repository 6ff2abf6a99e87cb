#include "controller/report/json_parts.h"

#include <nlohmann/json.hpp>

namespace pipeyard::report {
namespace {

Json ValueJson(const v1::Value& value) {
  switch (value.kind_case()) {
    case v1::Value::kFlag:
      return value.flag();
    case v1::Value::kInteger:
      return value.integer();
    case v1::Value::kNumber:
      return value.number();
    case v1::Value::kText:
      return value.text();
    case v1::Value::kJson: {
      Json parsed = Json::parse(value.json(), nullptr, /*allow_exceptions=*/false);
      return parsed.is_discarded() ? Json(value.json()) : parsed;
    }
    case v1::Value::KIND_NOT_SET:
      break;
  }
  return nullptr;
}

}  // namespace

std::string Dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json Schema(const char* name) { return Json{{"schema", std::string("pipeyard.") + name + "/v1"}}; }

void Append(const Json& from, Json* to) {
  for (const auto& [name, value] : from.items()) (*to)[name] = value;
}

Json Maybe(bool has, double value) { return has ? Json(value) : Json(nullptr); }

Json OrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json TimeOrNull(int64_t utc_ns) { return utc_ns == 0 ? Json(nullptr) : Json(utc_ns); }

const char* DirectionName(v1::Direction better) {
  if (better == v1::DIRECTION_HIGHER) return "higher";
  if (better == v1::DIRECTION_LOWER) return "lower";
  return "none";
}

Json SortedObject(const std::map<std::string, std::string>& map) {
  Json json = Json::object();
  for (const auto& [name, value] : map) json[name] = value;
  return json;
}

Json SummaryJson(const v1::RunSummary& run) {
  return {{"run", run.run_id()},
          {"sweep", run.sweep()},
          {"state", run.state()},
          {"created_utc_ns", TimeOrNull(run.created_utc_ns())},
          {"ended_utc_ns", TimeOrNull(run.ended_utc_ns())},
          {"hosts", run.hosts()},
          {"variants", run.variants()},
          {"trials", run.trials()},
          {"trials_done", run.trials_done()},
          {"note", run.note()},
          {"labels", SortedObject(SortedMap(run.labels()))}};
}

Json SettingsJson(const v1::VariantSettings& settings) {
  Json json = Json::object();
  for (const v1::Setting& setting : settings.settings()) {
    json[setting.name()] = ValueJson(setting.value());
  }
  return json;
}

Json ProblemJson(uint32_t line, uint32_t column, const std::string& what, const std::string& meant,
                 bool is_warning) {
  return {{"line", line},
          {"column", column},
          {"what", what},
          {"meant", meant},
          {"warning", is_warning}};
}

Json ProblemsJson(const google::protobuf::RepeatedPtrField<v1::SpecProblem>& problems) {
  Json json = Json::array();
  for (const v1::SpecProblem& problem : problems) {
    json.push_back(ProblemJson(problem.line(), problem.column(), problem.what(), problem.meant(),
                               problem.is_warning()));
  }
  return json;
}

}  // namespace pipeyard::report
