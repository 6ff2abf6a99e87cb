// The catalog of settings: every name of the sweep grammar with its kind, unit, default, allowed
// values and where it applies.
//
// A released default never changes, and a released name is never reused: variant ids depend on both
// (docs/SWEEPS.md, "Identity"). A setting that parses but is not executed yet has is_supported
// false; a sweep that sets it to anything but its default is refused as "not supported yet", never
// ignored.
//
// Thread safety: immutable. Ownership: everything returned lives for ever.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/status.h"
#include "proto/settings/value.h"

namespace pipeyard::settings {

enum class Kind {
  kFlag,       // true | false (on | off where choices say so)
  kCount,      // integer without a unit
  kBytes,      // size with a unit; a bare 0 is legal
  kDuration,   // duration with a unit; a bare 0 is legal
  kPercent,    // fraction, written "2%"
  kChoice,     // one of `choices`
  kText,       // free word, checked by the reader that executes it ("bind:0", "fresh | aged:NODE")
  kStructure,  // map or list (engine.topology)
};

struct Definition {
  std::string_view name =
      {};  // "writers", "engine.page_cache", "placement.cpus", "knob.swappiness"
  Kind kind = Kind::kText;
  Value default_value = {};
  int64_t min = 0;  // kCount, kBytes, kDuration: inclusive
  int64_t max = INT64_MAX;
  std::string_view zero_word =
      {};  // kBytes, kDuration: the word that stands for 0 ("none"); empty where there is none
  std::span<const std::string_view> choices = {};
  // Choices that parse but are not executed yet.
  std::span<const std::string_view> unsupported_choices = {};
  // Workloads whose bare parameter this is; empty for engine.*, placement.*, knob.*.
  std::span<const std::string_view> workloads = {};
  // Targets it applies to; empty = every target. engine.* applies to "engine" only.
  std::span<const std::string_view> targets = {};
  bool is_supported = true;
  std::string_view help = {};  // one line for docs and messages
  // kText: what else the word must obey; nullptr: nothing.
  Status (*check_text)(std::string_view) = nullptr;
};

struct WorkloadDefinition {
  std::string_view name;
  int64_t version = 1;
  std::span<const std::string_view> targets;  // that it can drive at all
  bool is_supported = true;                   // executed by this version
  // False: each of its commands has metrics and parameters of its own (docs/COMMANDS.md).
  bool declares_metrics = true;
};

std::span<const WorkloadDefinition> Workloads();
const WorkloadDefinition* FindWorkload(std::string_view name);

// Every definition, sorted by name, then workload.
std::span<const Definition> Definitions();
// The definition of `name` for `workload`; nullptr where the workload has no such setting.
// knob.NAME is found for any known knob. Of workload command every legal bare name is a parameter,
// of which only the host's command knows more.
const Definition* FindDefinition(std::string_view workload, std::string_view name);

// Whether a variant of this target has the setting at all (engine.* only of target engine).
bool AppliesTo(const Definition& definition, std::string_view target);

// The nearest known name for a message ("did you mean"), by edit distance at most 3; empty where
// none is near.
std::string_view NearestName(std::string_view name, std::span<const std::string_view> known);

// A metric that a workload declares. An attempt without every declared metric is failed. Workload
// command declares none itself: an attempt without any is failed, and its command has declared
// them.
struct MetricDefinition {
  std::string_view name = {};  // "throughput"
  std::string_view unit;       // "B/s"
  std::string_view better;     // "higher", "lower", "none"
  std::string_view reducer;    // "rate", "p99"
  bool may_be_absent = false;  // a percentile of too few operations is stored absent
};

std::span<const MetricDefinition> Metrics(std::string_view workload);

}  // namespace pipeyard::settings
