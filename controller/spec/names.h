// Names and values of settings in a sweep: the one grammar of factors, zip, exclude, compare and
// --set.
//
// A bare name is a parameter of the workload, else engine.X, placement.X, knob.X, target, command.
// Thread safety: pure functions over a catalog that is immutable.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "controller/spec/draft.h"
#include "controller/spec/node.h"
#include "controller/spec/problems.h"
#include "proto/settings/definition.h"

namespace pipeyard::spec {

// The definition that `name` has in a sweep of `workload` (nullptr: unknown workload, then any
// workload's will do). Reports an unknown name, with the nearest known one, and returns nullptr.
const settings::Definition* ResolveName(const settings::WorkloadDefinition* workload,
                                        std::string_view name, Place place, Problems& problems);

// The typed value of `node` for a setting; reports what is wrong with it, but not that it is not
// supported yet: --set may still replace it.
std::optional<Level> ReadLevel(const settings::Definition& definition, std::string_view name,
                               const Node& node, Problems& problems);

// Reports a value that this version does not execute.
void CheckLevelSupported(const settings::WorkloadDefinition* workload, std::string_view name,
                         const Level& level, Problems& problems);

// YAML splits `[interleave:0,1]` into two texts and makes of `{cpus: 0-3,8}` a second key. These
// report the broken halves, and say how to quote them. True where `map.entries[index]` or
// `list.items[index]` belongs to one.
bool IsBrokenHalf(const Node& map_or_list, size_t index);
void ReportBrokenHalves(const Node& map_or_list, std::string_view about, Problems& problems);

}  // namespace pipeyard::spec
