// Settings that are maps: their canonical JSON (compact, keys sorted bytewise), and
// engine.topology, the one there is.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "proto/settings/value.h"

namespace pipeyard::settings {

// Compact JSON with keys sorted bytewise. Limits: 64 KiB, 16 levels.
// Errors: kInvalidArgument: no JSON, a key twice, over a limit.
Result<JsonText> CanonicalJson(std::string_view text);

// A topology as a sweep has it: the word `host`, or JSON whose leaves are texts as written:
//   {"nodes":[{"cpus":"2","memory":"256MiB"},...],"distances":[["10","21"],["21","10"]],"remote_access":"120ns"}
// The result is in base units with what was left out filled in: distances 10 to itself and 20 to
// others, remote_access 0. Limits: 1 to 64 nodes; 4,096 CPUs a node and 65,535 over all nodes;
// memory 0, or from one page of 4 KiB to 1 PiB a node; distances 10 to 254, 10 exactly from a node
// to itself; at least one node with CPUs and one with memory. Errors: kInvalidArgument, naming the
// part ("nodes[1].memory: ...").
Result<JsonText> ParseTopology(std::string_view text);

// A topology as the engine takes it.
struct TopologyNode {
  int64_t cpus = 0;
  int64_t memory_bytes = 0;
};
struct TopologySetting {
  std::vector<TopologyNode> nodes;
  std::vector<std::vector<int>> distances;
  int64_t remote_access_ns = 0;
};
// nullopt for the host's. `json` is canonical. Errors: kInvalidArgument where it is not.
Result<std::optional<TopologySetting>> ReadTopologySetting(std::string_view json);

// Whether `json` is what ParseTopology could have returned.
Status CheckTopology(std::string_view json);

}  // namespace pipeyard::settings
