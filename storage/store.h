// Store: what the controller keeps for ever, behind an interface whose first implementation is
// SQLite (storage/sqlite/).
//
// Writing: every change is a Mutation; a batch of them is applied in one transaction and is durable
// (synchronous=FULL) when Apply() returned OK. Nothing is acknowledged to an agent or a user before
// that. Group commit is the caller's: it collects what is due and applies it at once. Reading: each
// read sees one consistent snapshot and never waits for the writer.
//
// Thread safety: Apply() from one thread at a time; reads from any thread, concurrently with
// Apply().
// Errors: kUnavailable (busy, or the disk fails: try again), kResourceExhausted (disk full) and
// kDataLoss (corrupt) are the store's own; kNotFound, kAlreadyExists, kInvalidArgument and
// kFailedPrecondition are about what was asked; kInternal otherwise. After any of them nothing of
// the batch was kept.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "storage/records.h"

namespace pipeyard::storage {

// --- mutations ---

// A new run with its variants, cells and trials. A request_id that is stored already is
// kAlreadyExists and changes nothing.
struct InsertRun {
  RunRecord run;
};
// A host as its Hello told it: inserted, or brought up to date by host_id. Distinct facts are
// stored once. Labels are kept.
struct UpsertHost {
  HostRecord host;
};
struct TouchHost {
  std::string host_id;
  int64_t last_seen_utc = 0;
};
struct SetRunState {
  std::string run_id;
  RunState state;
  std::string reason;
  int64_t at_utc = 0;
};
struct SetCellState {
  std::string run_id;
  std::string host_id;
  uint32_t variant_index = 0;
  CellState state;
  std::string reason;
};
struct SetTrialState {
  TrialKey trial;
  TrialState state;
};
struct InsertAttempt {
  TrialKey trial;
  AttemptRecord attempt;
};
// Removes an attempt that was refused (busy, draining, disk) and so was none.
struct RemoveAttempt {
  std::string attempt_id;
};
// The end of an attempt as the controller judges it. Only the first end of an attempt counts; later
// ones change nothing, except that kLost (the controller's guess about a host that was away) gives
// way to a later kOk.
struct EndAttempt {
  std::string attempt_id;
  Outcome outcome;
  std::string reason_code;
  std::string reason_text;
  int64_t at_utc = 0;
};
// A frame of an attempt that this store assigned. A (attempt, sequence) that is stored already
// changes nothing.
struct StoreFrame {
  v1::Frame frame;
  int64_t received_utc = 0;
};
// A frame of an attempt that this store's id assigned but the store does not know (it was restored
// from a backup).
struct StoreOrphan {
  std::string host_id;
  v1::Frame frame;
  int64_t received_utc = 0;
};
// Who did what. `actor` is "cli:USER@HOST" or "controller".
struct Audit {
  int64_t at_utc = 0;
  std::string actor;
  std::string action;
  std::string subject;
  std::string detail;
};

using Mutation =
    std::variant<InsertRun, UpsertHost, TouchHost, SetRunState, SetCellState, SetTrialState,
                 InsertAttempt, RemoveAttempt, EndAttempt, StoreFrame, StoreOrphan, Audit>;

// --- reads ---

struct RunSummaryRecord {
  std::string run_id;
  std::string sweep;
  RunState state;
  int64_t created_utc = 0;
  int64_t ended_utc = 0;
  uint32_t hosts = 0;
  uint32_t variants = 0;
  uint32_t trials = 0;
  uint32_t trials_done = 0;
  std::string note;
  std::map<std::string, std::string> labels;
};

// One attempt with what it measured; for `run show` and analysis.
struct AttemptData {
  TrialKey trial;
  uint32_t block = 0;
  AttemptRecord attempt;
  bool emulated = false;
  std::vector<v1::Metric> metrics;
  std::vector<v1::Counter> counters;
  std::vector<v1::Placement> placements;
  std::vector<v1::SelfCheck> self_checks;
  std::vector<std::string> inert_switches;  // that could not act; ascending
};

// What is asked of one attempt only.
struct AttemptDetails {
  std::vector<v1::Output> outputs;          // in the order in which they came
  std::vector<v1::ResolvedValue> resolved;  // by name
};

struct StoreIdentity {
  std::string store_id;  // UUIDv7, drawn when the store was made
  uint64_t epoch = 0;    // grew by one when it was opened for writing
};

class Store {
 public:
  virtual ~Store() = default;

  virtual StoreIdentity identity() const = 0;

  // All or nothing. Rows that would repeat what is stored change nothing, except where a mutation
  // says otherwise.
  virtual Status Apply(std::span<const Mutation> mutations) = 0;

  virtual Result<std::vector<HostRecord>> ListHosts() = 0;
  // Every run that is not terminal, complete with cells, trials and attempts: what the scheduler
  // starts from.
  virtual Result<std::vector<RunRecord>> LoadActiveRuns() = 0;
  // Newest first; `before_run_id` empty for the first page.
  virtual Result<std::vector<RunSummaryRecord>> ListRuns(uint32_t limit,
                                                         const std::string& before_run_id) = 0;
  // `reference`: an id, a unique prefix of one, "latest", or "SWEEP~N". kNotFound; kInvalidArgument
  // where a prefix is ambiguous.
  virtual Result<std::string> ResolveRun(const std::string& reference) = 0;
  virtual Result<RunRecord> LoadRun(const std::string& run_id) = 0;
  virtual Result<RunSummaryRecord> LoadRunSummary(const std::string& run_id) = 0;
  // The run that a request made, kNotFound where none did.
  virtual Result<std::string> FindRunByRequest(const std::string& request_id) = 0;
  // Every ended attempt of the run, ordered by host, variant, trial, number.
  virtual Result<std::vector<AttemptData>> LoadAttemptData(const std::string& run_id) = 0;
  // kNotFound where there is no such attempt.
  virtual Result<AttemptDetails> LoadAttemptDetails(const std::string& attempt_id) = 0;
  // Whether this store ever assigned the attempt.
  virtual Result<bool> KnowsAttempt(const std::string& attempt_id) = 0;
};

// Opens the SQLite store in `state_dir` (store.db), making it where there is none, migrating it
// where it is older. Errors (nothing is overwritten): kFailedPrecondition where the file is no
// database, no Pipeyard database, of a newer schema, or held by another controller;
// kPermissionDenied where the folder is not writable; kDataLoss where the integrity check fails.
Result<std::unique_ptr<Store>> OpenStore(const std::string& state_dir, const Clock& clock);

}  // namespace pipeyard::storage
