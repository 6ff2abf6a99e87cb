#include "controller/scheduler/transitions.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

namespace pipeyard::scheduler {
namespace {

using storage::CellState;
using storage::RunState;
using storage::TrialState;

template <typename Table>
std::multiset<std::string> Arrows(const Table& table) {
  std::multiset<std::string> arrows;
  for (const auto& row : table) {
    arrows.insert(fmt::format("{} --> {}: {}", storage::Name(row.from), storage::Name(row.to),
                              Name(row.trigger)));
  }
  return arrows;
}

// Arrows of the drawing under "## heading", without those from [*].
std::map<std::string, std::multiset<std::string>> DrawnArrows() {
  std::ifstream file(PIPEYARD_SOURCE_DIR "/docs/STATES.md");
  std::map<std::string, std::multiset<std::string>> drawn;
  std::string line, heading;
  while (std::getline(file, line)) {
    if (line.starts_with("## ")) heading = line.substr(3);
    if (line.find(" --> ") == std::string::npos || line.find("[*]") != std::string::npos) continue;
    drawn[heading].insert(line.substr(line.find_first_not_of(' ')));
  }
  return drawn;
}

TEST(Transitions, AreThoseThatTheDocumentDraws) {
  auto drawn = DrawnArrows();

  EXPECT_EQ(Arrows(RunTransitions()), drawn["Run"]);
  EXPECT_EQ(Arrows(TrialTransitions()), drawn["Trial"]);
  EXPECT_EQ(Arrows(CellTransitions()), drawn["Cell"]);
  EXPECT_EQ(drawn.size(), 3u);
}

TEST(Transitions, HaveOneTargetForAStateAndTrigger) {
  std::set<std::pair<int, int>> seen;
  for (const TrialTransition& row : TrialTransitions()) {
    EXPECT_TRUE(seen.emplace(static_cast<int>(row.from), static_cast<int>(row.trigger)).second)
        << storage::Name(row.from) << " on " << Name(row.trigger);
  }
}

TEST(Transitions, TerminalStatesAreThoseOfTheContract) {
  for (const TrialState state : {TrialState::kDone, TrialState::kVoid, TrialState::kFailed,
                                 TrialState::kNotApplicable, TrialState::kCanceled}) {
    EXPECT_TRUE(IsTerminal(state)) << storage::Name(state);
  }
  for (const TrialState state : {TrialState::kPending, TrialState::kLeased, TrialState::kRunning}) {
    EXPECT_FALSE(IsTerminal(state)) << storage::Name(state);
  }
  EXPECT_TRUE(IsTerminal(RunState::kFinished));
  EXPECT_FALSE(IsTerminal(RunState::kPaused));
  EXPECT_TRUE(IsTerminal(CellState::kMissing));
  EXPECT_FALSE(IsTerminal(CellState::kRunning));
}

TEST(Transitions, AnIllegalOneIsAnErrorThatNamesStateAndTrigger) {
  const Result<TrialState> next = Next(TrialState::kDone, TrialTrigger::kAssign);

  ASSERT_FALSE(next.ok());
  EXPECT_EQ(next.status().code(), StatusCode::kInternal);
  EXPECT_EQ(next.status().message(), "trial in state done: no transition on assign");
}

}  // namespace
}  // namespace pipeyard::scheduler
