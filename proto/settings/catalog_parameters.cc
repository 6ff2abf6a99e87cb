// Parameters of the workloads that parse but are not executed yet: their defaults are released with
// the workload, not before.
#include <array>

#include "proto/settings/catalog.h"

namespace pipeyard::settings::catalog {
namespace {

constexpr std::array<std::string_view, 1> kChurn{"churn"};
constexpr std::array<std::string_view, 1> kFault{"fault"};
constexpr std::array<std::string_view, 1> kBulk{"bulk"};
constexpr std::array<std::string_view, 1> kBandwidth{"bandwidth"};
constexpr std::array<std::string_view, 1> kCommand{"command"};
constexpr std::array<std::string_view, 4> kTasked{"bandwidth", "bulk", "churn", "fault"};
constexpr std::array<std::string_view, 2> kRegional{"bandwidth", "fault"};
constexpr std::array<std::string_view, 1> kEngine{"engine"};
constexpr std::array<std::string_view, 2> kPaths{"fault", "page"};
constexpr std::array<std::string_view, 2> kChurnOperations{"create", "resize"};
constexpr std::array<std::string_view, 4> kBandwidthOperations{"read", "write", "copy", "triad"};

constexpr std::array<Row, 12> kRows{{
    {.name = "accounted",
     .kind = Kind::kFlag,
     .default_value = false,
     .workloads = kBulk,
     .help = "charge the pages to the attempt's memory controller"},
    {.name = "cachelines",
     .kind = Kind::kCount,
     .default_value = 1,
     .min = 1,
     .max = 64,
     .workloads = kFault,
     .help = "cache lines written in each page"},
    {.name = "command", .workloads = kCommand, .help = "name of a file in the agent's commands.d"},
    {.name = "held_slots",
     .kind = Kind::kCount,
     .default_value = 0,
     .max = 65536,
     .workloads = kChurn,
     .help = "slots that hold data while the pipe is resized"},
    {.name = "operation",
     .kind = Kind::kChoice,
     .default_value = "read",
     .choices = kBandwidthOperations,
     .workloads = kBandwidth,
     .help = "what is done with the memory"},
    {.name = "operation",
     .kind = Kind::kChoice,
     .default_value = "create",
     .choices = kChurnOperations,
     .workloads = kChurn,
     .help = "create and close pipes, or resize them"},
    {.name = "pages",
     .kind = Kind::kCount,
     .default_value = 8,
     .min = 1,
     .max = 65536,
     .workloads = kBulk,
     .help = "pages asked for by one call"},
    {.name = "path",
     .kind = Kind::kChoice,
     .default_value = "fault",
     .choices = kPaths,
     .workloads = kFault,
     .targets = kEngine,
     .help = "which of the engine's paths allocates: page faults, or single pages (alloc_page)"},
    {.name = "pipe_bytes",
     .kind = Kind::kBytes,
     .default_value = 64 * kKiB,
     .min = 4 * kKiB,
     .max = 2 * kGiB,
     .workloads = kChurn,
     .help = "size of each pipe"},
    {.name = "region_bytes",
     .kind = Kind::kBytes,
     .default_value = 256 * kMiB,
     .min = 64 * kKiB,
     .max = 16384 * kGiB,
     .workloads = kRegional,
     .help = "size of the memory that all tasks share out"},
    {.name = "tasks",
     .kind = Kind::kCount,
     .default_value = 1,
     .min = 1,
     .max = 1024,
     .workloads = kTasked,
     .help = "workers"},
    {.name = "window",
     .kind = Kind::kCount,
     .default_value = 1,
     .min = 1,
     .max = 65536,
     .workloads = kChurn,
     .help = "pipes that live at a time, of each worker"},
}};

}  // namespace

std::span<const Row> ParameterRows() { return kRows; }

}  // namespace pipeyard::settings::catalog
