// An engine that a workload takes pages of instead of pipes.
//
// Private to workloads/load. Thread safety: CountByNode() by the task whose tally it is; the rest
// by the owner.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "proto/settings/variant.h"
#include "workloads/load/engine_target.h"
#include "workloads/load/judgement.h"
#include "workloads/load/memory_limit.h"
#include "workloads/load/node_tally.h"
#include "workloads/memory/page_allocator.h"

namespace pipeyard::load {

// An engine without pipes, whose workers can hold `num_pages` pages together, all of them on one
// node where the policy says so. As EngineTarget::Create(); not_applicable/memory_limit, too, where
// the nodes that the policy allows are too small (those of an emulated topology are as large as it
// says), or engine.memory_limit is.
Judgement CreatePageTarget(const settings::Variant& variant, int num_workers, uint64_t num_pages,
                           std::vector<MemoryLimit> memory, std::unique_ptr<EngineTarget>& target);

// Adds `amount` for each page to its node. Neighbours of one node are counted at once.
void CountByNode(const memory::PageAllocator& allocator, std::span<const memory::PageId> pages,
                 uint64_t amount, NodeTally& tally);

}  // namespace pipeyard::load
