// The scheduler's working state. Private to controller/scheduler.
//
// Thread safety: confined to the controller's loop.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "pipeyard/v1/attempt.pb.h"
#include "storage/records.h"

namespace pipeyard::scheduler {

// Order in which a host takes the pending trials of a run. The last ended attempt's id grows with
// time and is empty before the first, so retries stand at the end of their block, in the order they
// came.
struct PendingKey {
  uint32_t block = 0;
  std::string last_ended_attempt;
  uint32_t position = 0;
  uint32_t cell_index = 0;
  uint32_t trial_index = 0;  // from 1
  friend auto operator<=>(const PendingKey&, const PendingKey&) = default;
};

struct Trial {
  uint32_t trial_index = 0;  // from 1
  uint32_t block = 0;
  uint32_t position = 0;
  storage::TrialState state = storage::TrialState::kPending;
  uint32_t num_ended = 0;    // attempts used up
  uint32_t last_number = 0;  // of the newest attempt
  std::string last_ended_attempt;
  std::vector<std::string> attempts;  // ids, oldest first
};

struct Cell {
  uint32_t cell_index = 0;
  uint32_t variant_index = 0;
  std::string host_id;
  std::string host_name;
  storage::CellState state = storage::CellState::kRunning;
  std::string reason;
  uint32_t num_done = 0;
  uint32_t num_terminal = 0;
  std::vector<Trial> trials;  // by trial_index
};

// A run's part on one host.
struct RunHost {
  std::string host_name;
  std::vector<uint32_t> cells;  // indexes
  std::set<PendingKey> pending;
  uint32_t num_trials = 0;
  uint32_t num_terminal = 0;
  uint32_t num_unsuccessful = 0;  // terminal and not done
  // Why the host has no part in it any more; empty while it has.
  std::string given_up;
};

struct Run {
  storage::RunRecord header;  // without cells
  std::vector<Cell> cells;
  std::map<std::string, RunHost> hosts;  // by host id
  uint32_t num_trials = 0;
  uint32_t num_terminal = 0;
  uint32_t num_done = 0;
  uint32_t num_open_cells = 0;
  // An attempt of it was begun on a host.
  bool was_started = false;
  // Stored by an earlier start of the controller.
  bool is_recovered = false;
  MonotonicTime added{0};
};

struct Attempt {
  std::string attempt_id;
  std::string run_id;
  uint32_t cell_index = 0;
  uint32_t trial_index = 0;
  uint32_t number = 0;
  uint64_t frames_through = 0;
  std::optional<storage::Outcome> outcome;
  bool is_accepted = false;
  bool is_final_stored = false;
  // Session in which a frame past a gap came.
  std::optional<uint64_t> gap_session;
  std::vector<v1::Metric> metrics;  // of the frames so far; empty once it has ended
  // Last sign that it advances: assigned, accepted, listed as waiting or running, a frame.
  MonotonicTime last_news{0};
  MonotonicTime last_assign{0};
  std::optional<MonotonicTime> waiting_since;
};

struct HostState {
  std::string host_id;
  std::string name;
  bool is_connected = false;
  uint64_t session = 0;
  // Not connected since; meaningful while it is not.
  MonotonicTime away_since{0};
  // Refuses, or holds what is not ours, since; nullopt from the next attempt that it accepts. A new
  // session changes nothing about it.
  std::optional<MonotonicTime> refusing_since;
  std::string refusing_why;  // "busy", "draining", "disk"
  // No Assign before this.
  MonotonicTime paused_until{0};
  Nanos pause{0};
  // Leased or running attempt; empty where there is none.
  std::string current;
  // Attempts other than `current` that its last report had waiting or running, of any store.
  std::set<std::string> occupied_by;
  UtcTime last_touch{0};
};

}  // namespace pipeyard::scheduler
