// The engine's switches. The default is the baseline: the kernel before the four changes.
#include <array>

#include "proto/settings/catalog.h"
#include "proto/settings/policy_text.h"

namespace pipeyard::settings::catalog {
namespace {

using Words = std::string_view;
constexpr std::array<Words, 1> kEngine{"engine"};
constexpr std::array<Words, 2> kOnOff{"on", "off"};
constexpr std::array<Words, 2> kOffOn{"off", "on"};
constexpr std::array<Words, 3> kPath{"as-fastpath", "off", "on"};
constexpr std::array<Words, 3> kMetadata{"any-node", "policy-node", "strict-policy"};
constexpr std::array<Words, 5> kCaches{"two-page", "one-page", "prealloc-v1", "prealloc", "pool"};
constexpr std::array<Words, 3> kInterleave{"split-carry", "single-step", "folded-carry"};
constexpr std::array<Words, 2> kSlab{"sheaves", "cpu-slab"};
constexpr std::array<Words, 2> kSource{"resident", "on-demand"};
constexpr std::array<Words, 2> kWakeup{"was-full", "always"};
constexpr std::array<Words, 3> kPoll{"poll-usage", "none", "edge-consumers"};

constexpr std::array<Row, 18> kRows{{
    {.name = "engine.accounting",
     .kind = Kind::kChoice,
     .default_value = "on",
     .choices = kOnOff,
     .targets = kEngine,
     .help = "charge pipe objects and pages to the attempt's memory controller"},
    {.name = "engine.defrag_ratio",
     .kind = Kind::kCount,
     .default_value = 100,
     .max = 100,
     .targets = kEngine,
     .help = "how readily a slab is taken from a remote node"},
    {.name = "engine.fastpath",
     .kind = Kind::kChoice,
     .default_value = "off",
     .choices = kOffOn,
     .targets = kEngine,
     .help = "single-node fastpath (change 4)"},
    {.name = "engine.fastpath_bulk",
     .kind = Kind::kChoice,
     .default_value = "as-fastpath",
     .choices = kPath,
     .targets = kEngine,
     .help = "the fastpath of bulk page allocation"},
    {.name = "engine.fastpath_fault",
     .kind = Kind::kChoice,
     .default_value = "as-fastpath",
     .choices = kPath,
     .targets = kEngine,
     .help = "the fastpath of page faults"},
    {.name = "engine.fastpath_page",
     .kind = Kind::kChoice,
     .default_value = "as-fastpath",
     .choices = kPath,
     .targets = kEngine,
     .help = "the fastpath of single pages"},
    {.name = "engine.fastpath_slab",
     .kind = Kind::kChoice,
     .default_value = "as-fastpath",
     .choices = kPath,
     .targets = kEngine,
     .help = "the fastpath of slab objects"},
    {.name = "engine.interleave_bulk",
     .kind = Kind::kChoice,
     .default_value = "split-carry",
     .choices = kInterleave,
     .targets = kEngine,
     .help = "bulk allocation under weighted interleave (change 3)"},
    {.name = "engine.memory_limit",
     .kind = Kind::kBytes,
     .default_value = 0,
     .zero_word = "none",
     .targets = kEngine,
     .help = "limit of the attempt's memory controller"},
    {.name = "engine.metadata_placement",
     .kind = Kind::kChoice,
     .default_value = "any-node",
     .choices = kMetadata,
     .targets = kEngine,
     .help = "where pipe objects and rings come from (change 1)"},
    {.name = "engine.page_cache",
     .kind = Kind::kChoice,
     .default_value = "two-page",
     .choices = kCaches,
     .targets = kEngine,
     .help = "where a write gets its pages (change 2)"},
    {.name = "engine.page_source",
     .kind = Kind::kChoice,
     .default_value = "resident",
     .choices = kSource,
     .targets = kEngine,
     .help = "pre-faulted arena, or pages given back to the kernel when free"},
    {.name = "engine.policy",
     .targets = kEngine,
     .help = "memory policy of the engine; absent: placement.memory",
     .check_text = CheckPolicyText},
    {.name = "engine.poll_wakeup",
     .kind = Kind::kChoice,
     .default_value = "poll-usage",
     .choices = kPoll,
     .targets = kEngine,
     .help = "which writes wake pollers of a pipe that holds data"},
    {.name = "engine.slab",
     .kind = Kind::kChoice,
     .default_value = "sheaves",
     .choices = kSlab,
     .targets = kEngine,
     .help = "generation of the slab allocator"},
    {.name = "engine.topology",
     .kind = Kind::kStructure,
     .default_value = "\"host\"",
     .targets = kEngine,
     .help = "host, or an emulated topology"},
    {.name = "engine.wait_spin",
     .kind = Kind::kDuration,
     .default_value = 0,
     .max = kSecond,
     .targets = kEngine,
     .help = "time to spin before sleeping"},
    {.name = "engine.wakeup",
     .kind = Kind::kChoice,
     .default_value = "was-full",
     .choices = kWakeup,
     .targets = kEngine,
     .help = "whether a read of a pipe that was not full wakes a writer"},
}};

}  // namespace

std::span<const Row> EngineRows() { return kRows; }

}  // namespace pipeyard::settings::catalog
