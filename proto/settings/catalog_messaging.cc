// Defaults are those of hackbench (docs/WORKLOADS.md), where it has the option.
#include <array>

#include "proto/settings/catalog.h"

namespace pipeyard::settings::catalog {
namespace {

constexpr std::array<std::string_view, 1> kMessaging{"messaging"};

constexpr std::array<Row, 6> kRows{{
    {.name = "duration",
     .kind = Kind::kDuration,
     .default_value = 0,
     .max = 24 * kHour,
     .zero_word = "none",
     .workloads = kMessaging,
     .help = "time after which senders begin no further round; none: until all loops are done"},
    {.name = "fds",
     .kind = Kind::kCount,
     .default_value = 20,
     .min = 1,
     .max = 1024,
     .workloads = kMessaging,
     .help = "senders, receivers and pipes of each group"},
    {.name = "groups",
     .kind = Kind::kCount,
     .default_value = 10,
     .min = 1,
     .max = 1024,
     .workloads = kMessaging,
     .help = "groups of senders and receivers"},
    {.name = "loops",
     .kind = Kind::kCount,
     .default_value = 100,
     .min = 1,
     .max = 1'000'000'000,
     .workloads = kMessaging,
     .help = "rounds of each sender, of one message to each receiver of its group"},
    {.name = "message_bytes",
     .kind = Kind::kBytes,
     .default_value = 100,
     .min = 1,
     .max = 64 * kMiB,
     .workloads = kMessaging,
     .help = "bytes of each message"},
    {.name = "pipe_bytes",
     .kind = Kind::kBytes,
     .default_value = 64 * kKiB,
     .min = 4 * kKiB,
     .max = 2 * kGiB,
     .workloads = kMessaging,
     .help = "size of each pipe, rounded up to a power of two of pages"},
}};

}  // namespace

std::span<const Row> MessagingRows() { return kRows; }

}  // namespace pipeyard::settings::catalog
