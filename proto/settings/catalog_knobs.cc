// The known knobs; the default of each is to leave it as the host has it. A knob outside this list
// is refused.
#include <array>

#include "proto/settings/catalog.h"

namespace pipeyard::settings::catalog {
namespace {

constexpr std::array<Row, 15> kRows{{
    {.name = "knob.aslr", .is_supported = false, .help = "kernel.randomize_va_space"},
    {.name = "knob.cstate_limit",
     .is_supported = false,
     .help = "deepest exit latency of idle states, by a held /dev/cpu_dma_latency"},
    {.name = "knob.drop_caches", .is_supported = false, .help = "vm.drop_caches before each trial"},
    {.name = "knob.governor", .is_supported = false, .help = "cpufreq governor of every CPU"},
    {.name = "knob.ksm", .is_supported = false, .help = "/sys/kernel/mm/ksm/run"},
    {.name = "knob.numa_balancing", .is_supported = false, .help = "kernel.numa_balancing"},
    {.name = "knob.pipe_max_size", .is_supported = false, .help = "fs.pipe-max-size"},
    {.name = "knob.pipe_user_pages_hard", .is_supported = false, .help = "fs.pipe-user-pages-hard"},
    {.name = "knob.pipe_user_pages_soft", .is_supported = false, .help = "fs.pipe-user-pages-soft"},
    {.name = "knob.swappiness", .is_supported = false, .help = "vm.swappiness"},
    {.name = "knob.transparent_hugepage",
     .is_supported = false,
     .help = "/sys/kernel/mm/transparent_hugepage/enabled"},
    {.name = "knob.transparent_hugepage_defrag",
     .is_supported = false,
     .help = "/sys/kernel/mm/transparent_hugepage/defrag"},
    {.name = "knob.turbo",
     .is_supported = false,
     .help = "whether CPUs may exceed their nominal frequency"},
    {.name = "knob.weighted_interleave",
     .is_supported = false,
     .help = "auto, or weights such as \"0=3,1=1\""},
    {.name = "knob.zone_reclaim_mode", .is_supported = false, .help = "vm.zone_reclaim_mode"},
}};

}  // namespace

std::span<const Row> KnobRows() { return kRows; }

}  // namespace pipeyard::settings::catalog
