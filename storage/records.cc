#include "storage/records.h"

#include <array>
#include <cstddef>
#include <utility>

namespace pipeyard::storage {
namespace {

template <typename State>
struct Named {
  State state;
  const char* name;
};

constexpr std::array<Named<RunState>, 6> kRunStates{{{RunState::kQueued, "queued"},
                                                     {RunState::kRunning, "running"},
                                                     {RunState::kPaused, "paused"},
                                                     {RunState::kFinished, "finished"},
                                                     {RunState::kCanceled, "canceled"},
                                                     {RunState::kFailed, "failed"}}};

constexpr std::array<Named<CellState>, 4> kCellStates{
    {{CellState::kRunning, "running"},
     {CellState::kComplete, "complete"},
     {CellState::kMissing, "missing"},
     {CellState::kNotApplicable, "not_applicable"}}};

constexpr std::array<Named<TrialState>, 8> kTrialStates{
    {{TrialState::kPending, "pending"},
     {TrialState::kLeased, "leased"},
     {TrialState::kRunning, "running"},
     {TrialState::kDone, "done"},
     {TrialState::kVoid, "void"},
     {TrialState::kFailed, "failed"},
     {TrialState::kNotApplicable, "not_applicable"},
     {TrialState::kCanceled, "canceled"}}};

constexpr std::array<Named<Outcome>, 7> kOutcomes{{{Outcome::kOk, "ok"},
                                                   {Outcome::kVoid, "void"},
                                                   {Outcome::kFailed, "failed"},
                                                   {Outcome::kTimeout, "timeout"},
                                                   {Outcome::kLost, "lost"},
                                                   {Outcome::kCanceled, "canceled"},
                                                   {Outcome::kNotApplicable, "not_applicable"}}};

template <typename State, size_t n>
const char* NameIn(const std::array<Named<State>, n>& table, State state) {
  for (const Named<State>& entry : table) {
    if (entry.state == state) return entry.name;
  }
  return "unknown";
}

template <typename State, size_t n>
std::optional<State> ParseIn(const std::array<Named<State>, n>& table, std::string_view name) {
  for (const Named<State>& entry : table) {
    if (entry.name == name) return entry.state;
  }
  return std::nullopt;
}

}  // namespace

const char* Name(RunState state) { return NameIn(kRunStates, state); }
const char* Name(CellState state) { return NameIn(kCellStates, state); }
const char* Name(TrialState state) { return NameIn(kTrialStates, state); }
const char* Name(Outcome outcome) { return NameIn(kOutcomes, outcome); }

std::optional<RunState> ParseRunState(std::string_view name) { return ParseIn(kRunStates, name); }
std::optional<CellState> ParseCellState(std::string_view name) {
  return ParseIn(kCellStates, name);
}
std::optional<TrialState> ParseTrialState(std::string_view name) {
  return ParseIn(kTrialStates, name);
}
std::optional<Outcome> ParseOutcome(std::string_view name) { return ParseIn(kOutcomes, name); }

}  // namespace pipeyard::storage
