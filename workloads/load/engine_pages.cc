#include "workloads/load/engine_pages.h"

#include <fmt/format.h>

#include <utility>

#include "base/units.h"
#include "workloads/load/engine_settings.h"

namespace pipeyard::load {
namespace {

// The nodes of a policy without fallback; of any other, all.
bool MayGive(const memory::Policy& policy, numa::NodeId node) {
  return policy.mode != numa::PolicyMode::kBind || policy.nodes.Contains(node);
}

Judgement CheckNodeMemory(EngineTarget& target, uint64_t needed) {
  const memory::PageAllocator& allocator = target.engine().pages();
  const memory::Policy& policy = target.engine().worker(0).pages().policy.policy;
  uint64_t bytes = 0;
  for (const numa::PageRange& arena : allocator.arenas()) {
    if (MayGive(policy, arena.node)) bytes += arena.size_bytes;
  }
  if (needed <= bytes) return {};
  return NotApplicable(
      "memory_limit",
      fmt::format("the nodes of policy {} have {} here, and {} are needed for the region; give "
                  "nodes of engine.topology more memory, or take a smaller region_bytes",
                  memory::FormatPolicy(policy), FormatBytes(static_cast<int64_t>(bytes)),
                  FormatBytes(static_cast<int64_t>(needed))));
}

// Pages are charged where accounting is on; there is nothing to reclaim in a region that is in use.
Judgement CheckMemoryLimit(const settings::Variant& variant, int64_t needed) {
  const Result<pipe::EngineConfig> config = EngineConfigOf(variant);
  if (!config.ok()) return Failed("engine_setup", config.status().message());
  const auto limit = static_cast<int64_t>(config->memory_limit_bytes);
  if (!config->has_accounting || limit == 0 || needed <= limit) return {};
  return NotApplicable("memory_limit", fmt::format("engine.memory_limit is {}, and {} are needed "
                                                   "for the region",
                                                   FormatBytes(limit), FormatBytes(needed)));
}

}  // namespace

Judgement CreatePageTarget(const settings::Variant& variant, int num_workers, uint64_t num_pages,
                           std::vector<MemoryLimit> memory, std::unique_ptr<EngineTarget>& target) {
  EngineRequest request;
  request.num_workers = num_workers;
  request.extra_pages = num_pages;
  if (Judgement created = EngineTarget::Create(variant, request, std::move(memory), target);
      !created.ok()) {
    return created;
  }
  const uint64_t bytes = num_pages * target->engine().pages().page_bytes();
  if (Judgement fits = CheckMemoryLimit(variant, static_cast<int64_t>(bytes)); !fits.ok()) {
    return fits;
  }
  return CheckNodeMemory(*target, bytes);
}

void CountByNode(const memory::PageAllocator& allocator, std::span<const memory::PageId> pages,
                 uint64_t amount, NodeTally& tally) {
  for (size_t begin = 0; begin < pages.size();) {
    const uint32_t node = allocator.NodeIndexOf(pages[begin]);
    size_t end = begin + 1;
    while (end < pages.size() && allocator.NodeIndexOf(pages[end]) == node) ++end;
    tally.Add(allocator.NodeOf(pages[begin]), (end - begin) * amount);
    begin = end;
  }
}

}  // namespace pipeyard::load
