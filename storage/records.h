// The records that the store keeps, as plain values. Field names are those of the schema
// (docs/STORE.md).
//
// Times named *_utc are the controller's UTC nanoseconds, 0 where it has not happened, unless they
// say "agent". Thread safety: values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeyard/v1/agent.pb.h"
#include "pipeyard/v1/attempt.pb.h"
#include "pipeyard/v1/settings.pb.h"

namespace pipeyard::storage {

// States as stored and shown; the one transition table is controller/scheduler/transitions.h.
enum class RunState { kQueued, kRunning, kPaused, kFinished, kCanceled, kFailed };
enum class CellState { kRunning, kComplete, kMissing, kNotApplicable };
enum class TrialState {
  kPending,
  kLeased,
  kRunning,
  kDone,
  kVoid,
  kFailed,
  kNotApplicable,
  kCanceled
};
enum class Outcome { kOk, kVoid, kFailed, kTimeout, kLost, kCanceled, kNotApplicable };

const char* Name(RunState state);
const char* Name(CellState state);
const char* Name(TrialState state);
const char* Name(Outcome outcome);
std::optional<RunState> ParseRunState(std::string_view name);
std::optional<CellState> ParseCellState(std::string_view name);
std::optional<TrialState> ParseTrialState(std::string_view name);
std::optional<Outcome> ParseOutcome(std::string_view name);

struct HostRecord {
  std::string host_id;  // the agent's UUIDv7
  std::string name;     // unique
  std::string boot_id;
  std::string agent_version;
  std::map<std::string, std::string> labels;
  std::vector<std::string> capabilities;
  v1::HostFacts facts;
  int64_t first_seen_utc = 0;
  int64_t last_seen_utc = 0;
};

struct VariantRecord {
  uint32_t variant_index = 0;  // within the run, in file order
  std::string variant_id;      // 16 hex digits
  v1::VariantSettings settings;
  std::string text;  // settings that vary within the run: "writers=2;engine.page_cache=prealloc"
  std::string arm;   // level of the compared factor; empty for a variant without it
  std::string
      comparison;  // text without the compared factor: variants with equal ones are compared
};

struct TrialRecord {
  uint32_t trial_index = 0;  // from 1, within the cell
  uint32_t block = 0;        // from 1
  uint32_t position = 0;     // order on the host over the whole run, from 1
  TrialState state = TrialState::kPending;
};

struct AttemptRecord {
  std::string attempt_id;
  uint32_t number = 0;  // from 1, within the trial
  uint64_t epoch = 0;   // of the controller's start that assigned it
  int64_t leased_utc = 0;
  std::optional<Outcome> outcome;  // nullopt: not ended
  std::string reason_code;
  std::string reason_text;
  int64_t elapsed_ns = 0;
  std::string boot_id;
  int64_t ended_utc = 0;
  uint64_t frames_through = 0;  // frames 1..this are stored
  // What those frames measured. Filled by Store::LoadActiveRuns() for attempts that have not ended,
  // else empty: the judgement of the last frame needs the metrics of the earlier ones.
  std::vector<v1::Metric> metrics;
};

struct CellRecord {
  std::string host_id;
  std::string host_name;
  uint32_t variant_index = 0;
  CellState state = CellState::kRunning;
  std::string reason;
  std::vector<TrialRecord> trials;                   // by trial_index
  std::vector<std::vector<AttemptRecord>> attempts;  // parallel to trials, by number
};

struct RunRecord {
  std::string run_id;
  std::string request_id;
  std::string sweep;  // its name
  std::string file_name;
  std::string sweep_yaml;  // as the user sent it
  std::vector<std::string> sets;
  std::string note;
  std::map<std::string, std::string> labels;
  int32_t priority = 0;
  std::string order_kind;  // "blocked"
  uint64_t order_seed = 0;
  std::string compare_factor;
  std::string compare_baseline;
  uint32_t repetitions_min = 6;
  uint32_t repetitions_max = 6;
  uint32_t attempts_limit = 3;
  int64_t host_wait_ns = 0;
  bool stops_host_on_crash = true;
  // metric name -> smallest relative change worth a verdict
  std::map<std::string, double> min_change;
  // By variant_index: trial_timeout in ns (it may follow from the variant's duration).
  std::vector<int64_t> trial_timeout_ns;
  RunState state = RunState::kQueued;
  std::string reason;
  int64_t created_utc = 0;
  int64_t started_utc = 0;
  int64_t ended_utc = 0;
  std::vector<VariantRecord> variants;
  std::vector<CellRecord> cells;
};

// Names one trial of one run.
struct TrialKey {
  std::string run_id;
  std::string host_id;
  uint32_t variant_index = 0;
  uint32_t trial_index = 0;
  friend auto operator<=>(const TrialKey&, const TrialKey&) = default;
};

}  // namespace pipeyard::storage
