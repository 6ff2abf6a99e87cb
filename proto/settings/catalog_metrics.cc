#include <array>

#include "proto/settings/catalog.h"

namespace pipeyard::settings::catalog {
namespace {

// Latency is that of write calls.
constexpr std::array<MetricDefinition, 7> kTransfer{{
    {.name = "throughput", .unit = "B/s", .better = "higher", .reducer = "rate"},
    {.name = "latency_mean", .unit = "ns", .better = "lower", .reducer = "mean"},
    {.name = "latency_p50",
     .unit = "ns",
     .better = "lower",
     .reducer = "p50",
     .may_be_absent = true},
    {.name = "latency_p90",
     .unit = "ns",
     .better = "lower",
     .reducer = "p90",
     .may_be_absent = true},
    {.name = "latency_p99",
     .unit = "ns",
     .better = "lower",
     .reducer = "p99",
     .may_be_absent = true},
    {.name = "latency_p999",
     .unit = "ns",
     .better = "lower",
     .reducer = "p999",
     .may_be_absent = true},
    {.name = "latency_max", .unit = "ns", .better = "lower", .reducer = "max"},
}};

// Those that hackbench prints, its time and the rate that follows from it.
constexpr std::array<MetricDefinition, 2> kMessaging{{
    {.name = "message_rate", .unit = "1/s", .better = "higher", .reducer = "rate"},
    {.name = "time", .unit = "ns", .better = "lower", .reducer = "total"},
}};

// Requests are timed without giving the pages back, the rate with it.
constexpr std::array<MetricDefinition, 4> kBulk{{
    {.name = "page_rate", .unit = "1/s", .better = "higher", .reducer = "rate"},
    {.name = "time_per_page",
     .unit = "ns",
     .better = "lower",
     .reducer = "mean",
     .may_be_absent = true},
    {.name = "request_p50",
     .unit = "ns",
     .better = "lower",
     .reducer = "p50",
     .may_be_absent = true},
    {.name = "request_p99",
     .unit = "ns",
     .better = "lower",
     .reducer = "p99",
     .may_be_absent = true},
}};

// An operation is one creation with the close of an older pipe, or one resize.
constexpr std::array<MetricDefinition, 4> kChurn{{
    {.name = "operation_rate", .unit = "1/s", .better = "higher", .reducer = "rate"},
    {.name = "time_per_operation",
     .unit = "ns",
     .better = "lower",
     .reducer = "mean",
     .may_be_absent = true},
    {.name = "operation_p50",
     .unit = "ns",
     .better = "lower",
     .reducer = "p50",
     .may_be_absent = true},
    {.name = "operation_p99",
     .unit = "ns",
     .better = "lower",
     .reducer = "p99",
     .may_be_absent = true},
}};

// What pft prints, and the time that its tasks took for a page.
constexpr std::array<MetricDefinition, 3> kFault{{
    {.name = "fault_rate", .unit = "1/s", .better = "higher", .reducer = "rate"},
    {.name = "cpu_fault_rate",
     .unit = "1/s",
     .better = "higher",
     .reducer = "rate",
     .may_be_absent = true},
    {.name = "time_per_fault", .unit = "ns", .better = "lower", .reducer = "mean"},
}};

// Bytes of each array once, as STREAM counts.
constexpr std::array<MetricDefinition, 1> kBandwidth{{
    {.name = "bandwidth", .unit = "B/s", .better = "higher", .reducer = "rate"},
}};

}  // namespace

std::span<const MetricDefinition> BandwidthMetrics() { return kBandwidth; }
std::span<const MetricDefinition> FaultMetrics() { return kFault; }
std::span<const MetricDefinition> ChurnMetrics() { return kChurn; }
std::span<const MetricDefinition> BulkMetrics() { return kBulk; }
std::span<const MetricDefinition> TransferMetrics() { return kTransfer; }
std::span<const MetricDefinition> MessagingMetrics() { return kMessaging; }

}  // namespace pipeyard::settings::catalog
