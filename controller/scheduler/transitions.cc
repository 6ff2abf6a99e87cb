#include "controller/scheduler/transitions.h"

#include <algorithm>
#include <string>

namespace pipeyard::scheduler {
namespace {

using storage::CellState;
using storage::RunState;
using storage::TrialState;

constexpr RunTransition kRunTransitions[] = {
    {RunState::kQueued, RunTrigger::kFirstAssign, RunState::kRunning},
    {RunState::kQueued, RunTrigger::kNoneStarted, RunState::kFailed},
    {RunState::kQueued, RunTrigger::kCancel, RunState::kCanceled},
    {RunState::kRunning, RunTrigger::kPause, RunState::kPaused},
    {RunState::kRunning, RunTrigger::kAllTerminal, RunState::kFinished},
    {RunState::kRunning, RunTrigger::kNoneStarted, RunState::kFailed},
    {RunState::kRunning, RunTrigger::kCancel, RunState::kCanceled},
    {RunState::kPaused, RunTrigger::kResume, RunState::kRunning},
    {RunState::kPaused, RunTrigger::kAllTerminal, RunState::kFinished},
    {RunState::kPaused, RunTrigger::kNoneStarted, RunState::kFailed},
    {RunState::kPaused, RunTrigger::kCancel, RunState::kCanceled},
};

constexpr TrialTransition kTrialTransitions[] = {
    {TrialState::kPending, TrialTrigger::kAssign, TrialState::kLeased},
    {TrialState::kPending, TrialTrigger::kOk, TrialState::kDone},
    {TrialState::kPending, TrialTrigger::kNotApplicable, TrialState::kNotApplicable},
    {TrialState::kPending, TrialTrigger::kGiveUp, TrialState::kFailed},
    {TrialState::kPending, TrialTrigger::kCancel, TrialState::kCanceled},
    {TrialState::kLeased, TrialTrigger::kAccept, TrialState::kRunning},
    {TrialState::kLeased, TrialTrigger::kRefuse, TrialState::kPending},
    {TrialState::kLeased, TrialTrigger::kRetry, TrialState::kPending},
    {TrialState::kLeased, TrialTrigger::kOk, TrialState::kDone},
    {TrialState::kLeased, TrialTrigger::kExhaustedFailed, TrialState::kFailed},
    {TrialState::kLeased, TrialTrigger::kNotApplicable, TrialState::kNotApplicable},
    {TrialState::kLeased, TrialTrigger::kGiveUp, TrialState::kFailed},
    {TrialState::kLeased, TrialTrigger::kCancel, TrialState::kCanceled},
    {TrialState::kRunning, TrialTrigger::kRefuse, TrialState::kPending},
    {TrialState::kRunning, TrialTrigger::kRetry, TrialState::kPending},
    {TrialState::kRunning, TrialTrigger::kOk, TrialState::kDone},
    {TrialState::kRunning, TrialTrigger::kExhaustedVoid, TrialState::kVoid},
    {TrialState::kRunning, TrialTrigger::kExhaustedFailed, TrialState::kFailed},
    {TrialState::kRunning, TrialTrigger::kNotApplicable, TrialState::kNotApplicable},
    {TrialState::kRunning, TrialTrigger::kGiveUp, TrialState::kFailed},
    {TrialState::kRunning, TrialTrigger::kCancel, TrialState::kCanceled},
};

constexpr CellTransition kCellTransitions[] = {
    {CellState::kRunning, CellTrigger::kEnoughSamples, CellState::kComplete},
    {CellState::kRunning, CellTrigger::kTooFewSamples, CellState::kMissing},
    {CellState::kRunning, CellTrigger::kNotApplicable, CellState::kNotApplicable},
};

template <typename State, typename Trigger>
Result<State> Find(std::span<const Transition<State, Trigger>> table, State from, Trigger trigger,
                   const char* what) {
  for (const auto& row : table) {
    if (row.from == from && row.trigger == trigger) return row.to;
  }
  return Internal(std::string(what) + " in state " + storage::Name(from) + ": no transition on " +
                  Name(trigger));
}

template <typename State, typename Trigger>
bool HasNoExit(std::span<const Transition<State, Trigger>> table, State state) {
  return std::ranges::none_of(table, [&](const auto& row) { return row.from == state; });
}

}  // namespace

std::span<const RunTransition> RunTransitions() { return kRunTransitions; }
std::span<const TrialTransition> TrialTransitions() { return kTrialTransitions; }
std::span<const CellTransition> CellTransitions() { return kCellTransitions; }

const char* Name(RunTrigger trigger) {
  switch (trigger) {
    case RunTrigger::kFirstAssign:
      return "first-assign";
    case RunTrigger::kPause:
      return "pause";
    case RunTrigger::kResume:
      return "resume";
    case RunTrigger::kAllTerminal:
      return "all-terminal";
    case RunTrigger::kNoneStarted:
      return "none-started";
    case RunTrigger::kCancel:
      return "cancel";
  }
  return "?";
}

const char* Name(TrialTrigger trigger) {
  switch (trigger) {
    case TrialTrigger::kAssign:
      return "assign";
    case TrialTrigger::kAccept:
      return "accept";
    case TrialTrigger::kRefuse:
      return "refuse";
    case TrialTrigger::kRetry:
      return "retry";
    case TrialTrigger::kOk:
      return "ok";
    case TrialTrigger::kExhaustedVoid:
      return "exhausted-void";
    case TrialTrigger::kExhaustedFailed:
      return "exhausted-failed";
    case TrialTrigger::kNotApplicable:
      return "not-applicable";
    case TrialTrigger::kGiveUp:
      return "give-up";
    case TrialTrigger::kCancel:
      return "cancel";
  }
  return "?";
}

const char* Name(CellTrigger trigger) {
  switch (trigger) {
    case CellTrigger::kEnoughSamples:
      return "enough-samples";
    case CellTrigger::kTooFewSamples:
      return "too-few-samples";
    case CellTrigger::kNotApplicable:
      return "not-applicable";
  }
  return "?";
}

Result<RunState> Next(RunState from, RunTrigger trigger) {
  return Find(RunTransitions(), from, trigger, "run");
}
Result<TrialState> Next(TrialState from, TrialTrigger trigger) {
  return Find(TrialTransitions(), from, trigger, "trial");
}
Result<CellState> Next(CellState from, CellTrigger trigger) {
  return Find(CellTransitions(), from, trigger, "cell");
}

bool IsTerminal(RunState state) { return HasNoExit(RunTransitions(), state); }
bool IsTerminal(TrialState state) { return HasNoExit(TrialTransitions(), state); }
bool IsTerminal(CellState state) { return HasNoExit(CellTransitions(), state); }

}  // namespace pipeyard::scheduler
