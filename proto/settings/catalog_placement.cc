#include <array>

#include "proto/settings/catalog.h"
#include "proto/settings/cpu_text.h"
#include "proto/settings/policy_text.h"

namespace pipeyard::settings::catalog {
namespace {

constexpr std::array<Row, 2> kRows{{
    {.name = "placement.cpus",
     .help = "node0, \"0-3,8\", spread, one-per-core, 50%cpus, node role; absent: as inherited",
     .check_text = CheckCpuText},
    {.name = "placement.memory",
     .help = "memory policy of the worker, such as \"bind:0\"; absent: as inherited",
     .check_text = CheckPolicyText},
}};

}  // namespace

std::span<const Row> PlacementRows() { return kRows; }

}  // namespace pipeyard::settings::catalog
