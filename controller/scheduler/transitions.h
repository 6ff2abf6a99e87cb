// The one transition table: every change of a run's, trial's or cell's state goes through it.
//
// docs/STATES.md draws it; a test compares the drawing's arrows with the table.
// Thread safety: immutable data and pure functions.
#pragma once

#include <span>

#include "base/status.h"
#include "storage/records.h"

namespace pipeyard::scheduler {

enum class RunTrigger {
  kFirstAssign,  // its first attempt is leased
  kPause,
  kResume,
  kAllTerminal,  // every trial is terminal
  kNoneStarted,  // every trial is terminal, and none was ever begun on a host
  kCancel,
};

enum class TrialTrigger {
  kAssign,           // an attempt is leased to the host
  kAccept,           // the agent has it on disk
  kRefuse,           // busy, draining, disk: no attempt is used
  kRetry,            // the attempt was void, failed, timed out or was lost, and attempts remain
  kOk,               // the first committed ok: the sample
  kExhaustedVoid,    // the last attempt that was left was void
  kExhaustedFailed,  // the last attempt that was left failed, timed out or was lost
  kNotApplicable,    // the host cannot do what the cell commands
  kGiveUp,           // the host stayed away, unavailable, or crashed: its trials of this run end
  kCancel,
};

enum class CellTrigger {
  kEnoughSamples,  // all its trials are terminal, at least repetitions.min of them done
  kTooFewSamples,
  kNotApplicable,
};

template <typename State, typename Trigger>
struct Transition {
  State from;
  Trigger trigger;
  State to;
};
using RunTransition = Transition<storage::RunState, RunTrigger>;
using TrialTransition = Transition<storage::TrialState, TrialTrigger>;
using CellTransition = Transition<storage::CellState, CellTrigger>;

std::span<const RunTransition> RunTransitions();
std::span<const TrialTransition> TrialTransitions();
std::span<const CellTransition> CellTransitions();

// The word beside the arrow in the drawing: "first-assign".
const char* Name(RunTrigger trigger);
const char* Name(TrialTrigger trigger);
const char* Name(CellTrigger trigger);

// The state that `trigger` leads to. Errors: kInternal where the table has no such arrow; the
// caller logs it and leaves the state as it is.
Result<storage::RunState> Next(storage::RunState from, RunTrigger trigger);
Result<storage::TrialState> Next(storage::TrialState from, TrialTrigger trigger);
Result<storage::CellState> Next(storage::CellState from, CellTrigger trigger);

// No arrow leaves a terminal state.
bool IsTerminal(storage::RunState state);
bool IsTerminal(storage::TrialState state);
bool IsTerminal(storage::CellState state);

}  // namespace pipeyard::scheduler
