// Pieces of the JSON objects that several of them share. Internal to this library: callers use
// json.h.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "pipeyard/v1/control.pb.h"

namespace pipeyard::report {

using Json = nlohmann::ordered_json;

// Indented text with a newline at the end; bytes that are no UTF-8 are replaced.
std::string Dump(const Json& json);
// An object that begins with "schema": "pipeyard.NAME/v1".
Json Schema(const char* name);
// Adds the members of `from`, in their order.
void Append(const Json& from, Json* to);

Json Maybe(bool has, double value);
Json OrNull(const std::string& text);
Json TimeOrNull(int64_t utc_ns);

const char* DirectionName(v1::Direction better);
// Keys sorted: protobuf maps have no order.
Json SortedObject(const std::map<std::string, std::string>& map);
template <typename Map>
std::map<std::string, std::string> SortedMap(const Map& map) {
  return {map.begin(), map.end()};
}

Json SummaryJson(const v1::RunSummary& run);
Json SettingsJson(const v1::VariantSettings& settings);
Json ProblemJson(uint32_t line, uint32_t column, const std::string& what, const std::string& meant,
                 bool is_warning);
Json ProblemsJson(const google::protobuf::RepeatedPtrField<v1::SpecProblem>& problems);

}  // namespace pipeyard::report
