// Defaults are those of pipe_bench (docs/WORKLOADS.md), where it has the option.
#include <array>

#include "proto/settings/allocator_text.h"
#include "proto/settings/catalog.h"

namespace pipeyard::settings::catalog {
namespace {

constexpr std::array<std::string_view, 1> kTransfer{"transfer"};
constexpr std::array<std::string_view, 5> kTimed{"bandwidth", "bulk", "churn", "fault", "transfer"};
constexpr std::array<std::string_view, 5> kTasked{"bandwidth", "churn", "fault", "messaging",
                                                  "transfer"};
constexpr std::array<std::string_view, 6> kAllocating{"bandwidth", "bulk",      "churn",
                                                      "fault",     "messaging", "transfer"};
constexpr std::array<std::string_view, 2> kWorkers{"threads", "processes"};
constexpr std::array<std::string_view, 3> kPressure{"none", "stress-vm-50", "stress-vm-80"};

constexpr std::array<Row, 9> kRows{{
    {.name = "allocator",
     .default_value = "fresh",
     .workloads = kAllocating,
     .help = "fresh, or aged:NODE: partial slabs exist on that node before the warm-up",
     .check_text = CheckAllocatorText},
    {.name = "duration",
     .kind = Kind::kDuration,
     .default_value = 3 * kSecond,
     .min = kMillisecond,
     .max = 24 * kHour,
     .workloads = kTimed,
     .help = "measured time, after the warm-up"},
    {.name = "message_bytes",
     .kind = Kind::kBytes,
     .default_value = 64 * kKiB,
     .min = 1,
     .max = 64 * kMiB,
     .workloads = kTransfer,
     .help = "bytes of each write and of each read"},
    {.name = "pipe_bytes",
     .kind = Kind::kBytes,
     .default_value = kMiB,
     .min = 4 * kKiB,
     .max = 2 * kGiB,
     .workloads = kTransfer,
     .help = "size of the pipe, rounded up to a power of two of pages"},
    {.name = "pressure",
     .kind = Kind::kChoice,
     .default_value = "none",
     .choices = kPressure,
     .workloads = kTransfer,
     .help = "memory pressure by stress-ng while it runs"},
    {.name = "readers",
     .kind = Kind::kCount,
     .default_value = 1,
     .min = 1,
     .max = 1024,
     .workloads = kTransfer,
     .help = "workers that read from the one pipe"},
    {.name = "warmup",
     .kind = Kind::kDuration,
     .default_value = 500 * kMillisecond,
     .max = kHour,
     .workloads = kTimed,
     .help = "time the workload runs before measuring starts"},
    {.name = "workers",
     .kind = Kind::kChoice,
     .default_value = "threads",
     .choices = kWorkers,
     .workloads = kTasked,
     .help = "threads of one process, or processes"},
    {.name = "writers",
     .kind = Kind::kCount,
     .default_value = 1,
     .min = 1,
     .max = 1024,
     .workloads = kTransfer,
     .help = "workers that write to the one pipe"},
}};

}  // namespace

std::span<const Row> TransferRows() { return kRows; }

}  // namespace pipeyard::settings::catalog
