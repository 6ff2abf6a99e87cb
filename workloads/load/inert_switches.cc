#include "workloads/load/inert_switches.h"

#include <string_view>

#include "proto/settings/definition.h"
#include "workloads/load/engine_settings.h"

namespace pipeyard::load {
namespace {

using numa::PolicyMode;

// What a workload reaches of the engine. Source: kernel-mechanisms.md E, and the loops here.
struct Reach {
  bool has_pipes = true;          // there are pipes
  bool has_writes = true;         // anybody writes to one
  bool is_charged = true;         // what it allocates is charged where accounting is on
  bool has_allocations = true;    // takes pages while it is measured
  bool has_bulk = false;          // asks for several pages in one request itself
  bool has_faults = false;        // allocates for faults of a mapping
  bool has_single_pages = false;  // asks for single pages itself
  bool creates_pipes = false;     // while it is measured, not only before
  bool polls = false;             // anybody polls or watches a pipe
  int64_t longest_write_bytes = 0;
};

Reach ReachOf(const settings::Variant& variant) {
  Reach reach;
  if (variant.workload == "churn") {
    // Data is written before anything is measured.
    reach.creates_pipes = true;
    reach.has_writes = false;
  }
  if (variant.workload == "bulk") {
    reach.has_writes = false;
    reach.has_pipes = false;
    reach.is_charged = variant.Flag("accounted");
    reach.has_bulk = variant.Integer("pages") > 1;
  }
  if (variant.workload == "fault" || variant.workload == "bandwidth") {
    reach.has_pipes = false;
    reach.has_writes = false;
    // The memory of `bandwidth` is there before anything is measured.
    const bool is_measured = variant.workload == "fault";
    const bool is_page_path =
        is_measured && variant.target == "engine" && variant.Text("path") == "page";
    reach.has_faults = is_measured && !is_page_path;
    reach.is_charged = is_measured;
    reach.has_allocations = is_measured;
    reach.has_single_pages = is_page_path;
  }
  if (variant.values.count("message_bytes") != 0) {
    reach.longest_write_bytes = variant.Integer("message_bytes");
  }
  return reach;
}

// Everything that can make a difference, with what cannot act at its baseline.
struct EffectiveSwitches {
  memory::MetadataPlacement metadata_placement = memory::MetadataPlacement::kAnyNode;
  pipe::PageCache page_cache = pipe::PageCache::kTwoPage;
  memory::BulkAlgorithm interleave_bulk = memory::BulkAlgorithm::kSplitCarry;
  bool fastpath_fault = false;
  bool fastpath_page = false;
  bool fastpath_bulk = false;
  bool fastpath_slab = false;
  memory::Policy policy;
  memory::SlabForm slab = memory::SlabForm::kSheaves;
  int defrag_ratio = 0;
  bool has_accounting = false;
  uint64_t memory_limit_bytes = 0;
  memory::PageSource page_source = memory::PageSource::kResident;
  Nanos wait_spin{0};
  pipe::Wakeup wakeup = pipe::Wakeup::kWasFull;
  pipe::PollWakeup poll_wakeup = pipe::PollWakeup::kPollUsage;

  friend bool operator==(const EffectiveSwitches&, const EffectiveSwitches&) = default;
};

// Preallocation needs a write of a page (v1), or of more than one (A7).
pipe::PageCache EffectiveCache(pipe::PageCache cache, const Reach& reach, int64_t page_bytes) {
  const bool is_idle =
      (cache == pipe::PageCache::kPrealloc && reach.longest_write_bytes <= page_bytes) ||
      (cache == pipe::PageCache::kPreallocV1 && reach.longest_write_bytes < page_bytes);
  return is_idle ? pipe::PageCache::kTwoPage : cache;
}

EffectiveSwitches Reduce(const pipe::EngineConfig& config, const Reach& reach,
                         const numa::Topology& topology, int64_t page_bytes) {
  const int num_nodes = topology.memory_nodes().Count();
  const bool has_several_nodes = num_nodes > 1;
  EffectiveSwitches effective;
  effective.has_accounting = config.has_accounting && reach.is_charged;
  effective.memory_limit_bytes = effective.has_accounting ? config.memory_limit_bytes : 0;
  if (reach.has_allocations) effective.page_source = config.page_source;
  if (reach.has_writes) {
    effective.page_cache = EffectiveCache(config.page_cache, reach, page_bytes);
    effective.wait_spin = config.wait_spin;
    effective.wakeup = config.wakeup;
  }
  if (reach.polls) effective.poll_wakeup = config.poll_wakeup;

  // Accounted bulk returns one page at most (B3), and a request for one page is none.
  const bool has_cache_bulk = effective.page_cache == pipe::PageCache::kPreallocV1 &&
                              reach.longest_write_bytes > page_bytes;
  const bool has_bulk = (reach.has_bulk || has_cache_bulk) && !effective.has_accounting;
  if (num_nodes == 1 && !topology.is_emulated()) {
    effective.fastpath_fault = config.fastpath.fault && reach.has_faults;
    effective.fastpath_page = config.fastpath.page && (reach.has_writes || reach.has_single_pages);
    effective.fastpath_bulk = config.fastpath.bulk && has_bulk;
    effective.fastpath_slab = config.fastpath.slab && reach.creates_pipes;
  }
  if (has_several_nodes) {
    if (config.policy && config.policy->mode != PolicyMode::kLocal) {
      effective.policy = *config.policy;
    }
    // Without a policy there is nobody to ask: the CPU's node is what the slab takes anyway, unless
    // it is asked for by name, which policy-node does.
    const bool is_unasked = config.metadata_placement == memory::MetadataPlacement::kStrictPolicy &&
                            (!config.policy || config.policy->mode == PolicyMode::kDefault);
    if (reach.has_pipes) {
      if (!is_unasked) effective.metadata_placement = config.metadata_placement;
      effective.defrag_ratio = config.defrag_ratio;
    }
    const bool is_weighted = effective.policy.mode == PolicyMode::kWeightedInterleave &&
                             effective.policy.nodes.Count() > 1;
    if (has_bulk && is_weighted) effective.interleave_bulk = config.interleave_bulk;
  }
  // On one node the form of the slab changes the time of allocations only, and where it matters.
  if (reach.creates_pipes || (has_several_nodes && reach.has_pipes)) effective.slab = config.slab;
  return effective;
}

bool IsAtDefault(const settings::Variant& variant, const settings::Definition& definition) {
  return variant.values.at(std::string(definition.name)) == definition.default_value;
}

}  // namespace

Result<std::vector<std::string>> InertSwitches(const settings::Variant& variant,
                                               const numa::Topology& topology, int64_t page_bytes) {
  std::vector<std::string> inert;
  const Reach reach = ReachOf(variant);
  // Aging leaves slabs behind, and only pipes are made of their objects.
  if (!reach.has_pipes && variant.Text("allocator") != "fresh") inert.push_back("allocator");
  if (variant.target != "engine") return inert;
  PIPEYARD_ASSIGN_OR_RETURN(const pipe::EngineConfig config, EngineConfigOf(variant));
  const EffectiveSwitches given = Reduce(config, reach, topology, page_bytes);
  // Whether a variant behaves as the given one.
  const auto is_same = [&](const settings::Variant& other) -> Result<bool> {
    PIPEYARD_ASSIGN_OR_RETURN(const pipe::EngineConfig other_config, EngineConfigOf(other));
    return Reduce(other_config, reach, topology, page_bytes) == given;
  };
  // Of two that command the same, each alone seems idle; together they are not. So those found
  // idle stay at their default while the next is judged.
  settings::Variant without = variant;
  for (const auto& [name, value] : variant.values) {
    const settings::Definition* definition = settings::FindDefinition(variant.workload, name);
    // An emulated topology is no switch of a mechanism, it is where the mechanisms run.
    if (definition == nullptr || !name.starts_with("engine.") || name == "engine.topology" ||
        IsAtDefault(variant, *definition)) {
      continue;
    }
    settings::Variant alone = variant;
    alone.values[name] = definition->default_value;
    PIPEYARD_ASSIGN_OR_RETURN(const bool is_idle_alone, is_same(alone));
    if (!is_idle_alone) continue;
    without.values[name] = definition->default_value;
    PIPEYARD_ASSIGN_OR_RETURN(const bool is_idle, is_same(without));
    if (is_idle) {
      inert.push_back(name);
    } else {
      without.values[name] = value;
    }
  }
  return inert;
}

}  // namespace pipeyard::load
