// EngineConfig: the engine's switches, one field each, as sweeps write them (`engine.NAME`).
// Defaults are the baseline: the kernel before the four changes. A field stands here once the
// engine obeys it.
//
// Thread safety: a value.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/status.h"
#include "base/units.h"
#include "workloads/numa/topology.h"

namespace pipeyard::pipe {

// How a pipe keeps data pages between uses (kernel-mechanisms.md A7).
enum class PageCache {
  kTwoPage,   // two pages per pipe; what they do not cover is allocated under the pipe's mutex
  kPrealloc,  // up to eight pages are allocated before the mutex is taken, for writes of more than
              // a page
};

struct EngineConfig {
  PageCache page_cache = PageCache::kTwoPage;
  // How long a reader or writer that must wait looks again and again before it sleeps. 0: sleeps at
  // once, as the kernel does.
  Nanos wait_spin{0};
  // Absent: the host's.
  std::optional<numa::EmulatedTopology> topology;
};

// "two-page", "prealloc". Errors: kUnimplemented ("not supported yet") for the generations that the
// engine does not have, kInvalidArgument for other words.
Result<PageCache> ParsePageCache(std::string_view text);
std::string_view PageCacheName(PageCache page_cache);

}  // namespace pipeyard::pipe
