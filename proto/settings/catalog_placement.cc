#include <array>

#include "proto/settings/catalog.h"

namespace pipeyard::settings::catalog {
namespace {

constexpr std::array<Row, 2> kRows{{
    {.name = "placement.cpus",
     .is_supported = false,
     .help = "node0, \"0-3,8\", spread, one-per-core, 50%cpus; absent: as inherited"},
    {.name = "placement.memory",
     .is_supported = false,
     .help = "memory policy of the worker, such as \"bind:0\"; absent: as inherited"},
}};

}  // namespace

std::span<const Row> PlacementRows() { return kRows; }

}  // namespace pipeyard::settings::catalog
