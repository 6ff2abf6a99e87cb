// The only file here that includes nlohmann/json. Its exceptions end in this file.
#include "proto/settings/structure.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/units.h"

namespace pipeyard::settings {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxBytes = 64 * 1024;
constexpr int kMaxDepth = 16;
constexpr size_t kMaxNodes = 64;
constexpr int64_t kMaxCpus = 4096;
// What the engine takes (numa::MakeEmulated(), memory::PageAllocator): a test of controller/cli
// holds these against it. The page is the smallest that hosts have; some have larger ones.
constexpr int64_t kMaxCpusOfAllNodes = 65535;
constexpr int64_t kPageBytes = 4096;
// From numa(7): distances are relative to 10, the distance to itself; 255 means unreachable.
constexpr int64_t kLocalDistance = 10;
constexpr int64_t kMaxDistance = 254;
constexpr int64_t kUsualRemoteDistance = 20;

Result<Json> Parse(std::string_view text) {
  if (text.size() > kMaxBytes) return InvalidArgument("is longer than 64 KiB");
  std::vector<std::set<std::string>> keys;
  std::string refused;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kMaxDepth && refused.empty()) refused = "is nested too deeply";
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end && !keys.empty()) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.empty() &&
        !keys.back().insert(parsed.get<std::string>()).second && refused.empty()) {
      refused = fmt::format("has the key '{}' twice", parsed.get<std::string>());
    }
    return refused.empty();
  };
  Json json = Json::parse(text, watch, /*allow_exceptions=*/false);
  if (!refused.empty()) return InvalidArgument(refused);
  if (json.is_discarded()) return InvalidArgument("is no valid JSON");
  return json;
}

// Reads leaves that are texts as written (from a sweep) or integers in base units (from a canonical
// text).
class TopologyReader {
 public:
  Result<Json> Read(const Json& input) {
    if (input == "host") return input;
    if (!input.is_object()) return InvalidArgument("is no topology; 'host' or a map was meant");
    Json out = Json::object();
    for (const auto& [key, value] : input.items()) {
      if (key != "nodes" && key != "distances" && key != "remote_access") {
        return InvalidArgument(fmt::format(
            "has the unknown key '{}'; nodes, distances or remote_access was meant", key));
      }
    }
    if (!input.contains("nodes")) return InvalidArgument("lacks nodes");
    PIPEYARD_ASSIGN_OR_RETURN(out["nodes"], ReadNodes(input["nodes"]));
    PIPEYARD_ASSIGN_OR_RETURN(
        out["distances"], ReadDistances(input.contains("distances") ? input["distances"] : Json(),
                                        out["nodes"].size()));
    int64_t remote_access = 0;
    if (input.contains("remote_access")) {
      PIPEYARD_ASSIGN_OR_RETURN(
          remote_access, Leaf(input["remote_access"], "remote_access", Unit::kDuration, 1'000'000));
    }
    out["remote_access"] = remote_access;
    return out;
  }

 private:
  enum class Unit { kCount, kBytes, kDuration };

  static Result<int64_t> LeafText(const std::string& text, Unit unit) {
    if (unit == Unit::kBytes) return ParseBytes(text);
    if (unit == Unit::kDuration) {
      PIPEYARD_ASSIGN_OR_RETURN(const Nanos duration, ParseDuration(text));
      return duration.count();
    }
    const Json number = Json::parse(text, nullptr, false);
    if (!number.is_number_unsigned() || number.get<uint64_t>() > INT32_MAX) {
      return InvalidArgument(fmt::format("'{}' is no whole number", text.substr(0, 60)));
    }
    return number.get<int64_t>();
  }

  static Result<int64_t> Leaf(const Json& leaf, const std::string& path, Unit unit, int64_t max) {
    int64_t value = -1;
    if (leaf.is_string()) {
      Result<int64_t> read = LeafText(leaf.get<std::string>(), unit);
      if (!read.ok()) return read.status().WithContext(path);
      value = *read;
    } else if (leaf.is_number_unsigned() && leaf.get<uint64_t>() <= INT64_MAX) {
      value = leaf.get<int64_t>();
    } else {
      return InvalidArgument(path + " is no number");
    }
    if (value > max) return InvalidArgument(fmt::format("{} is above {}", path, max));
    return value;
  }

  static Result<Json> ReadNodes(const Json& input) {
    if (!input.is_array() || input.empty() || input.size() > kMaxNodes) {
      return InvalidArgument(fmt::format("nodes is no list of 1 to {} nodes", kMaxNodes));
    }
    Json out = Json::array();
    int64_t cpus = 0;
    int64_t memory = 0;
    for (size_t i = 0; i < input.size(); ++i) {
      const std::string path = fmt::format("nodes[{}]", i);
      if (!input[i].is_object()) return InvalidArgument(path + " is no map");
      for (const auto& [key, value] : input[i].items()) {
        if (key != "cpus" && key != "memory") {
          return InvalidArgument(
              fmt::format("{} has the unknown key '{}'; cpus or memory was meant", path, key));
        }
      }
      Json node = {{"cpus", 0}, {"memory", 0}};
      if (input[i].contains("cpus")) {
        PIPEYARD_ASSIGN_OR_RETURN(node["cpus"],
                                  Leaf(input[i]["cpus"], path + ".cpus", Unit::kCount, kMaxCpus));
      }
      if (input[i].contains("memory")) {
        PIPEYARD_ASSIGN_OR_RETURN(node["memory"], Leaf(input[i]["memory"], path + ".memory",
                                                       Unit::kBytes, int64_t{1} << 50));
      }
      const auto bytes = node["memory"].get<int64_t>();
      if (bytes > 0 && bytes < kPageBytes) {
        return InvalidArgument(
            fmt::format("{}.memory is {}, less than one page; 0, or {} and more was meant", path,
                        FormatBytes(bytes), FormatBytes(kPageBytes)));
      }
      cpus += node["cpus"].get<int64_t>();
      memory += bytes;
      out.push_back(std::move(node));
    }
    if (cpus == 0) return InvalidArgument("nodes: none has cpus");
    if (cpus > kMaxCpusOfAllNodes) {
      return InvalidArgument(fmt::format(
          "nodes: {} cpus in all; at most {} over all nodes was meant", cpus, kMaxCpusOfAllNodes));
    }
    if (memory == 0) return InvalidArgument("nodes: none has memory");
    return out;
  }

  static Result<Json> ReadDistances(const Json& input, size_t nodes) {
    Json out = Json::array();
    if (!input.is_null() && (!input.is_array() || input.size() != nodes)) {
      return InvalidArgument(fmt::format("distances has not {} rows, one a node", nodes));
    }
    for (size_t i = 0; i < nodes; ++i) {
      Json row = Json::array();
      if (!input.is_null() && (!input[i].is_array() || input[i].size() != nodes)) {
        return InvalidArgument(fmt::format("distances[{}] has not {} columns", i, nodes));
      }
      for (size_t j = 0; j < nodes; ++j) {
        int64_t distance = i == j ? kLocalDistance : kUsualRemoteDistance;
        if (!input.is_null()) {
          PIPEYARD_ASSIGN_OR_RETURN(
              distance, Leaf(input[i][j], fmt::format("distances[{}][{}]", i, j), Unit::kCount,
                             kMaxDistance));
        }
        if (distance < kLocalDistance || (i == j) != (distance == kLocalDistance)) {
          return InvalidArgument(fmt::format(
              "distances[{}][{}] is {}; 10 from a node to itself and more to others was meant", i,
              j, distance));
        }
        row.push_back(distance);
      }
      out.push_back(std::move(row));
    }
    return out;
  }
};

}  // namespace

Result<JsonText> CanonicalJson(std::string_view text) {
  try {
    PIPEYARD_ASSIGN_OR_RETURN(const Json json, Parse(text));
    return JsonText{json.dump()};
  } catch (const std::exception& e) {
    return InvalidArgument(fmt::format("is no valid JSON: {}", e.what()));
  }
}

Result<JsonText> ParseTopology(std::string_view text) {
  try {
    if (text == "host") return JsonText{"\"host\""};
    PIPEYARD_ASSIGN_OR_RETURN(const Json json, Parse(text));
    PIPEYARD_ASSIGN_OR_RETURN(const Json topology, TopologyReader().Read(json));
    return JsonText{topology.dump()};
  } catch (const std::exception& e) {
    return InvalidArgument(fmt::format("is no topology: {}", e.what()));
  }
}

Result<std::optional<TopologySetting>> ReadTopologySetting(std::string_view json) {
  PIPEYARD_RETURN_IF_ERROR(CheckTopology(json));
  try {
    const Json topology = Json::parse(json);
    if (topology == "host") return std::optional<TopologySetting>();
    TopologySetting setting;
    for (const Json& node : topology["nodes"]) {
      setting.nodes.push_back({node["cpus"].get<int64_t>(), node["memory"].get<int64_t>()});
    }
    setting.distances = topology["distances"].get<std::vector<std::vector<int>>>();
    setting.remote_access_ns = topology["remote_access"].get<int64_t>();
    return std::optional<TopologySetting>(std::move(setting));
  } catch (const std::exception& e) {
    return InvalidArgument(fmt::format("is no topology: {}", e.what()));
  }
}

Status CheckTopology(std::string_view json) {
  Result<JsonText> canonical = ParseTopology(json);
  if (!canonical.ok()) return canonical.status();
  if (canonical->text != json) return InvalidArgument("is not in canonical form");
  return Status::Ok();
}

}  // namespace pipeyard::settings
