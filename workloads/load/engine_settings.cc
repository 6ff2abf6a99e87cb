#include "workloads/load/engine_settings.h"

#include <optional>
#include <string>
#include <utility>

#include "proto/settings/structure.h"

namespace pipeyard::load {
namespace {

Result<memory::FastpathSwitches> FastpathOf(const settings::Variant& variant) {
  PIPEYARD_ASSIGN_OR_RETURN(const bool all,
                            pipe::ParseOnOff("engine.fastpath", variant.Text("engine.fastpath")));
  memory::FastpathSwitches switches;
  const std::pair<const char*, bool*> paths[] = {{"engine.fastpath_fault", &switches.fault},
                                                 {"engine.fastpath_page", &switches.page},
                                                 {"engine.fastpath_bulk", &switches.bulk},
                                                 {"engine.fastpath_slab", &switches.slab}};
  for (const auto& [name, is_on] : paths) {
    const std::string& text = variant.Text(name);
    *is_on = all;
    if (text == "as-fastpath") continue;
    PIPEYARD_ASSIGN_OR_RETURN(*is_on, pipe::ParseOnOff(name, text));
  }
  return switches;
}

Result<std::optional<memory::Policy>> PolicyOf(const settings::Variant& variant) {
  const bool is_own = !variant.Text("engine.policy").empty();
  const char* const name = is_own ? "engine.policy" : "placement.memory";
  const std::string& text = variant.Text(name);
  if (text.empty()) return std::optional<memory::Policy>();
  Result<memory::Policy> policy = memory::ParsePolicy(text);
  if (!policy.ok()) return policy.status().WithContext(name);
  return std::optional<memory::Policy>(std::move(*policy));
}

Status ReadTopologyInto(const settings::Variant& variant, pipe::EngineConfig& config) {
  Result<std::optional<settings::TopologySetting>> setting =
      settings::ReadTopologySetting(variant.Json("engine.topology"));
  if (!setting.ok()) return setting.status().WithContext("engine.topology");
  if (!setting->has_value()) return Status::Ok();
  const settings::TopologySetting& given = **setting;
  numa::EmulatedTopology topology;
  for (const settings::TopologyNode& node : given.nodes) {
    topology.nodes.push_back({static_cast<int>(node.cpus), node.memory_bytes});
  }
  topology.distances = given.distances;
  config.topology = std::move(topology);
  config.remote_access = Nanos(given.remote_access_ns);
  return Status::Ok();
}

}  // namespace

Result<pipe::EngineConfig> EngineConfigOf(const settings::Variant& variant) {
  pipe::EngineConfig config;
  PIPEYARD_ASSIGN_OR_RETURN(
      config.metadata_placement,
      memory::ParseMetadataPlacement(variant.Text("engine.metadata_placement")));
  PIPEYARD_ASSIGN_OR_RETURN(config.page_cache,
                            pipe::ParsePageCache(variant.Text("engine.page_cache")));
  PIPEYARD_ASSIGN_OR_RETURN(config.interleave_bulk,
                            memory::ParseBulkAlgorithm(variant.Text("engine.interleave_bulk")));
  PIPEYARD_ASSIGN_OR_RETURN(config.fastpath, FastpathOf(variant));
  PIPEYARD_ASSIGN_OR_RETURN(config.policy, PolicyOf(variant));
  PIPEYARD_ASSIGN_OR_RETURN(config.slab, memory::ParseSlabForm(variant.Text("engine.slab")));
  config.defrag_ratio = static_cast<int>(variant.Integer("engine.defrag_ratio"));
  PIPEYARD_ASSIGN_OR_RETURN(
      config.has_accounting,
      pipe::ParseOnOff("engine.accounting", variant.Text("engine.accounting")));
  config.memory_limit_bytes = static_cast<uint64_t>(variant.Integer("engine.memory_limit"));
  PIPEYARD_ASSIGN_OR_RETURN(config.page_source,
                            pipe::ParsePageSource(variant.Text("engine.page_source")));
  config.wait_spin = Nanos(variant.Integer("engine.wait_spin"));
  PIPEYARD_ASSIGN_OR_RETURN(config.wakeup, pipe::ParseWakeup(variant.Text("engine.wakeup")));
  PIPEYARD_ASSIGN_OR_RETURN(config.poll_wakeup,
                            pipe::ParsePollWakeup(variant.Text("engine.poll_wakeup")));
  PIPEYARD_RETURN_IF_ERROR(ReadTopologyInto(variant, config));
  return config;
}

bool IsEmulated(const settings::Variant& variant) {
  if (variant.target != "engine") return false;
  const auto topology = settings::ReadTopologySetting(variant.Json("engine.topology"));
  return !topology.ok() || topology->has_value();
}

}  // namespace pipeyard::load
