// EngineConfig: the engine's switches, one field each, as sweeps write them (`engine.NAME`).
// Defaults are the baseline: the kernel before the four changes. What each value does is in
// kernel-mechanisms.md, named with the enumerators.
//
// Thread safety: a value.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/status.h"
#include "base/units.h"
#include "workloads/memory/fastpath.h"
#include "workloads/memory/interleave.h"
#include "workloads/memory/metadata_placement.h"
#include "workloads/memory/object_allocator.h"
#include "workloads/memory/page_source.h"
#include "workloads/memory/policy.h"
#include "workloads/numa/topology.h"

namespace pipeyard::pipe {

// How a pipe keeps data pages between uses (A7).
enum class PageCache {
  kTwoPage,     // two pages per pipe; what they do not cover is allocated under the pipe's mutex
  kOnePage,     // one page per pipe
  kPreallocV1,  // as two-page; writes of a page or more allocate up to eight in bulk before the
                // mutex is taken, used after the cached ones
  kPrealloc,    // writes of more than a page allocate up to eight, one by one, before the mutex is
                // taken, used before the cached ones
  kPool,        // one pool of eight per pipe, filled before the mutex is taken, trimmed to two
};

// When a read wakes a writer (A3).
enum class Wakeup {
  kWasFull,  // the rule of 2025: when it freed a slot of a full pipe
  kAlways,   // every read that took anything
};

// When a write into a pipe with data wakes readers all the same (A4, H6).
enum class PollWakeup {
  kPollUsage,      // once anybody has ever polled or watched either end
  kNone,           // never
  kEdgeConsumers,  // while an edge-triggered watch exists
};

struct EngineConfig {
  memory::MetadataPlacement metadata_placement = memory::MetadataPlacement::kAnyNode;
  PageCache page_cache = PageCache::kTwoPage;
  memory::BulkAlgorithm interleave_bulk = memory::BulkAlgorithm::kSplitCarry;
  memory::FastpathSwitches fastpath;  // change 4, per path (D)
  // Of every worker at first. Absent: the default policy.
  std::optional<memory::Policy> policy;
  // Of weighted interleave without weights of its own.
  memory::WeightTable host_weights;
  memory::SlabForm slab = memory::SlabForm::kSheaves;
  int defrag_ratio = 100;  // 0..100
  bool has_accounting = true;
  uint64_t memory_limit_bytes = 0;  // 0: none
  memory::PageSource page_source = memory::PageSource::kResident;
  // How long a reader or writer that must wait looks again and again before it sleeps. 0: sleeps at
  // once, as the kernel does.
  Nanos wait_spin{0};
  Wakeup wakeup = Wakeup::kWasFull;
  PollWakeup poll_wakeup = PollWakeup::kPollUsage;
  // Absent: the host's.
  std::optional<numa::EmulatedTopology> topology;
  // On an emulated topology: what a cache line of pipe metadata costs that lies on another node and
  // was last written by another virtual CPU.
  Nanos remote_access{0};
};

// Values as sweeps write them; those of the other switches stand with their types. Errors:
// kInvalidArgument lists the words that are meant.
Result<PageCache> ParsePageCache(std::string_view text);
std::string_view PageCacheName(PageCache page_cache);
Result<memory::PageSource> ParsePageSource(std::string_view text);
std::string_view PageSourceName(memory::PageSource source);
Result<Wakeup> ParseWakeup(std::string_view text);
std::string_view WakeupName(Wakeup wakeup);
Result<PollWakeup> ParsePollWakeup(std::string_view text);
std::string_view PollWakeupName(PollWakeup poll_wakeup);
// "on", "off". `name` is the setting's, for the error.
Result<bool> ParseOnOff(std::string_view name, std::string_view text);

}  // namespace pipeyard::pipe
