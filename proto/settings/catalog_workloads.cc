#include <array>

#include "proto/settings/catalog.h"

namespace pipeyard::settings::catalog {
namespace {

constexpr std::array<std::string_view, 2> kBoth{"engine", "kernel"};
constexpr std::array<std::string_view, 1> kEngine{"engine"};
constexpr std::array<std::string_view, 1> kCommand{"command"};

// The order in which messages and docs list them.
constexpr std::array<WorkloadDefinition, 7> kWorkloads{{
    {.name = "messaging", .targets = kBoth},
    {.name = "transfer", .targets = kBoth},
    {.name = "churn", .targets = kBoth},
    {.name = "fault", .targets = kBoth},
    {.name = "bulk", .targets = kEngine},
    {.name = "bandwidth", .targets = kBoth},
    {.name = "command", .targets = kCommand, .declares_metrics = false},
}};

}  // namespace

std::span<const WorkloadDefinition> WorkloadRows() { return kWorkloads; }

}  // namespace pipeyard::settings::catalog
