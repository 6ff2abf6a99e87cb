// The tables that definition.cc assembles the catalog from; nobody else reads them.
//
// One file a group, constexpr rows, so that a diff of a table is a diff of the contract
// (catalog_test.cc holds every row against a golden listing).
//
// Thread safety: immutable.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

#include "proto/settings/definition.h"

namespace pipeyard::settings::catalog {

// A Definition before its default is a Value. Texts of a kStructure are its canonical JSON.
struct Row {
  std::string_view name;
  Kind kind = Kind::kText;
  std::variant<bool, int64_t, std::string_view> default_value = std::string_view();
  int64_t min = 0;
  int64_t max = INT64_MAX;
  std::string_view zero_word = {};
  std::span<const std::string_view> choices = {};
  std::span<const std::string_view> unsupported_choices = {};
  std::span<const std::string_view> workloads = {};
  std::span<const std::string_view> targets = {};
  bool is_supported = true;
  std::string_view help = {};
  Status (*check_text)(std::string_view) = nullptr;
};

inline constexpr int64_t kKiB = int64_t{1} << 10;
inline constexpr int64_t kMiB = int64_t{1} << 20;
inline constexpr int64_t kGiB = int64_t{1} << 30;
inline constexpr int64_t kMillisecond = 1'000'000;
inline constexpr int64_t kSecond = 1'000'000'000;
inline constexpr int64_t kHour = 3600 * kSecond;

std::span<const WorkloadDefinition> WorkloadRows();
std::span<const Row> TransferRows();   // parameters of transfer, alone or shared with others
std::span<const Row> ParameterRows();  // parameters of the other workloads
std::span<const Row> EngineRows();     // engine.*
std::span<const Row> PlacementRows();  // placement.*
std::span<const Row> KnobRows();       // knob.*
std::span<const MetricDefinition> BandwidthMetrics();
std::span<const MetricDefinition> BulkMetrics();
std::span<const MetricDefinition> ChurnMetrics();
std::span<const MetricDefinition> FaultMetrics();
std::span<const MetricDefinition> TransferMetrics();
std::span<const MetricDefinition> MessagingMetrics();
std::span<const Row> MessagingRows();  // parameters of messaging alone

}  // namespace pipeyard::settings::catalog
