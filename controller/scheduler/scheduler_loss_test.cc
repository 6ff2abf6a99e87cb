// Hosts that go, links that break, controllers that start again.
#include <gtest/gtest.h>

#include <algorithm>

#include "controller/scheduler/testing/scheduler_fixture.h"

namespace pipeyard::scheduler {
namespace {

using storage::CellState;
using storage::Outcome;
using storage::RunState;
using storage::TrialState;

const v1::Assign* FindAssign(const Actions& actions) {
  for (const Send& send : actions.sends) {
    if (send.message.has_assign()) return &send.message.assign();
  }
  return nullptr;
}

const v1::Cancel* FindCancel(const Actions& actions) {
  for (const Send& send : actions.sends) {
    if (send.message.has_cancel()) return &send.message.cancel();
  }
  return nullptr;
}

TEST(SchedulerLoss, AHelloThatDoesNotListTheAttemptGetsItAssignedAgain) {
  SchedulerFixture fixture;
  fixture.Attach(1);
  fixture.Submit(TestSweep(1, 1), {1});
  const std::string attempt = fixture.LastAttempt(1);
  fixture.Detach(1);

  const Actions actions = fixture.Attach(1);

  ASSERT_NE(FindAssign(actions), nullptr);
  EXPECT_EQ(FindAssign(actions)->attempt_id(), attempt);
}

TEST(SchedulerLoss, AHelloThatListsItStandsForAccepted) {
  SchedulerFixture fixture;
  fixture.Attach(1);
  const std::string run_id = fixture.Submit(TestSweep(1, 1), {1});
  const std::string attempt = fixture.LastAttempt(1);
  fixture.Detach(1);

  const Actions actions = fixture.Attach(1, {fixture.Held(attempt, v1::ATTEMPT_PHASE_RUNNING)});

  EXPECT_EQ(FindAssign(actions), nullptr);
  EXPECT_EQ(fixture.Run(run_id).cells[0].trials[0].state, TrialState::kRunning);
}

TEST(SchedulerLoss, AfterARestartTheAssignIsRepeatedUnderTheNewEpochAndOldAnswersAreIgnored) {
  SchedulerFixture fixture;
  fixture.Attach(1);
  const std::string run_id = fixture.Submit(TestSweep(1, 1), {1});
  const std::string attempt = fixture.LastAttempt(1);
  const uint64_t old_epoch = fixture.LastAssign(1).epoch();
  fixture.Restart();

  const Actions actions = fixture.Attach(1);
  ASSERT_NE(FindAssign(actions), nullptr);
  EXPECT_EQ(FindAssign(actions)->attempt_id(), attempt);
  EXPECT_EQ(FindAssign(actions)->epoch(), old_epoch + 1);

  RefusalReceived stale{SchedulerFixture::HostId(1), {}};
  stale.refused.set_attempt_id(attempt);
  stale.refused.set_epoch(old_epoch);
  stale.refused.set_reason(v1::Refused::REASON_BUSY);
  EXPECT_TRUE(fixture.Handle(stale).empty());
  fixture.Accept(1, attempt);
  EXPECT_EQ(fixture.Run(run_id).cells[0].trials[0].state, TrialState::kRunning);
}

TEST(SchedulerLoss, AHeartbeatWithoutTheAttemptGetsItAssignedAgainAfterAWhile) {
  SchedulerFixture fixture;
  fixture.Attach(1);
  fixture.Submit(TestSweep(1, 1), {1});
  fixture.Advance(Seconds(10));
  EXPECT_EQ(FindAssign(fixture.Beat(1)), nullptr);

  fixture.Advance(Seconds(10));

  EXPECT_NE(FindAssign(fixture.Beat(1)), nullptr);
}

TEST(SchedulerLoss, AHostAwayForHostWaitLosesItsAttemptAndTheRunEnds) {
  SchedulerFixture fixture;
  fixture.Attach(1);
  const std::string run_id = fixture.Submit(TestSweep(1, 2), {1});
  const std::string first = fixture.LastAttempt(1);
  fixture.Finish(1, first, v1::OUTCOME_OK);
  const std::string second = fixture.LastAttempt(1);
  fixture.Detach(1);

  fixture.Advance(Minutes(10));
  fixture.Handle(Tick{});
  EXPECT_EQ(fixture.Run(run_id).state, RunState::kRunning);
  fixture.Advance(Nanos(1));
  fixture.Handle(Tick{});

  const storage::RunRecord run = fixture.Run(run_id);
  EXPECT_EQ(run.state, RunState::kFinished);
  EXPECT_EQ(run.cells[0].state, CellState::kMissing);
  EXPECT_EQ(run.cells[0].reason, "1 of 2 trials ok: host away for longer than host_wait (10m)");
  EXPECT_EQ(fixture.store().FindAttempt(second)->outcome, Outcome::kLost);
  EXPECT_EQ(fixture.store().FindAttempt(second)->reason_code, kReasonHostAway);
}

TEST(SchedulerLoss, AHostThatNeverComesFailsTheRun) {
  SchedulerFixture fixture;
  const std::string run_id = fixture.Submit(TestSweep(1, 2), {1});

  fixture.Advance(Minutes(11));
  fixture.Handle(Tick{});

  EXPECT_EQ(fixture.Run(run_id).state, RunState::kFailed);
}

TEST(SchedulerLoss, AfterARestartHostsHaveHostWaitToComeBack) {
  SchedulerFixture fixture;
  fixture.Attach(1);
  const std::string run_id = fixture.Submit(TestSweep(1, 1), {1});
  fixture.Advance(Minutes(60));
  fixture.Restart();

  fixture.Advance(Minutes(9));
  fixture.Handle(Tick{});
  EXPECT_EQ(fixture.Run(run_id).state, RunState::kRunning);

  fixture.Advance(Minutes(2));
  fixture.Handle(Tick{});
  EXPECT_TRUE(IsTerminal(fixture.Run(run_id).state));
}

TEST(SchedulerLoss, AfterARestartAgentsHaveAMinuteHoweverShortHostWaitIs) {
  SchedulerFixture fixture;
  fixture.Attach(1);
  spec::Sweep sweep = TestSweep(1, 1);
  sweep.host_wait = Nanos(0);
  const std::string run_id = fixture.Submit(sweep, {1});
  fixture.Restart();

  fixture.Advance(Seconds(59));
  fixture.Handle(Tick{});
  EXPECT_EQ(fixture.Run(run_id).state, RunState::kRunning);

  fixture.Attach(1);
  fixture.Detach(1);
  fixture.Advance(Nanos(1));
  fixture.Handle(Tick{});
  EXPECT_TRUE(IsTerminal(fixture.Run(run_id).state)) << "away for longer than 0 by itself";
}

TEST(SchedulerLoss, DialingAgainDoesNotMakeARefusingHostWilling) {
  SchedulerFixture fixture;
  fixture.Attach(1);
  const std::string run_id = fixture.Submit(TestSweep(1, 1), {1});

  for (int i = 0; i < 30 && fixture.scheduler().IsActive(run_id); ++i) {
    fixture.Refuse(1, fixture.LastAttempt(1), v1::Refused::REASON_DRAINING);
    fixture.Detach(1);
    fixture.Advance(Minutes(1));
    fixture.Attach(1);
    fixture.Handle(Tick{});
  }

  EXPECT_EQ(fixture.Run(run_id).state, RunState::kFailed);
}

TEST(SchedulerLoss, AHostThatRefusesEverythingForHostWaitIsGivenUp) {
  SchedulerFixture fixture;
  fixture.Attach(1);
  const std::string run_id = fixture.Submit(TestSweep(1, 1), {1});

  for (int i = 0; i < 30 && fixture.scheduler().IsActive(run_id); ++i) {
    fixture.Refuse(1, fixture.LastAttempt(1), v1::Refused::REASON_DRAINING);
    fixture.Advance(Minutes(1));
    fixture.Handle(Tick{});
  }

  const storage::RunRecord run = fixture.Run(run_id);
  EXPECT_EQ(run.state, RunState::kFailed);
  EXPECT_EQ(run.cells[0].reason, "0 of 1 trials ok: host draining for longer than host_wait (10m)");
}

TEST(SchedulerLoss, AStaleDetachDoesNotEndTheNewSession) {
  SchedulerFixture fixture;
  fixture.Attach(1);
  fixture.Attach(1);

  fixture.Handle(HostDetached{SchedulerFixture::HostId(1), 1});

  EXPECT_TRUE(fixture.scheduler().IsConnected(SchedulerFixture::HostId(1)));
}

TEST(SchedulerLoss, AnAttemptThatOutrunsItsTimeoutIsCanceledAndEndedHere) {
  SchedulerFixture fixture;
  fixture.Attach(1);
  fixture.Submit(TestSweep(1, 1), {1});
  const std::string attempt = fixture.LastAttempt(1);
  fixture.Accept(1, attempt);
  const auto beat = [&](Nanos running) {
    return fixture.Beat(1, {fixture.Held(attempt, v1::ATTEMPT_PHASE_RUNNING, running)});
  };

  EXPECT_EQ(FindCancel(beat(Seconds(70))), nullptr);
  const Actions late = beat(Seconds(71));

  ASSERT_NE(FindCancel(late), nullptr);
  EXPECT_EQ(FindCancel(late)->attempt_id(), attempt);
  EXPECT_EQ(fixture.store().FindAttempt(attempt)->outcome, Outcome::kTimeout);
  EXPECT_EQ(FindAssign(late), nullptr) << "the agent still runs it";

  // Its own verdict comes late: kept, not judged again; then the retry goes out.
  const Actions end = fixture.Finish(1, attempt, v1::OUTCOME_OK);
  EXPECT_EQ(fixture.store().FindAttempt(attempt)->outcome, Outcome::kTimeout);
  ASSERT_NE(FindAssign(end), nullptr);
  EXPECT_NE(FindAssign(end)->attempt_id(), attempt);
}

TEST(SchedulerLoss, AnAttemptThatNothingIsHeardOfIsLostAndItsLateOkIsTheSample) {
  SchedulerFixture fixture;
  fixture.Attach(1);
  const std::string run_id = fixture.Submit(TestSweep(1, 1), {1});
  const std::string first = fixture.LastAttempt(1);
  fixture.Accept(1, first);
  for (int i = 0; i < 11; ++i) {
    fixture.Advance(Minutes(1));
    fixture.Beat(1, {fixture.Held(first, v1::ATTEMPT_PHASE_SPOOLED)});
  }
  EXPECT_EQ(fixture.store().FindAttempt(first)->outcome, Outcome::kLost);
  const std::string second = fixture.LastAttempt(1);
  ASSERT_NE(second, first);

  const Actions actions = fixture.Finish(1, first, v1::OUTCOME_OK);

  EXPECT_EQ(fixture.store().FindAttempt(first)->outcome, Outcome::kOk);
  EXPECT_EQ(fixture.store().FindAttempt(second)->outcome, Outcome::kCanceled);
  ASSERT_NE(FindCancel(actions), nullptr);
  EXPECT_EQ(FindCancel(actions)->attempt_id(), second);
  EXPECT_EQ(fixture.Run(run_id).cells[0].trials[0].state, TrialState::kDone);
  EXPECT_EQ(fixture.Run(run_id).state, RunState::kFinished);
}

TEST(SchedulerLoss, AnAgentThatHoldsAnotherStoresAttemptIsNotAssignedAnything) {
  SchedulerFixture fixture;
  v1::HeldAttempt foreign = fixture.Held(TestUuid(50), v1::ATTEMPT_PHASE_RUNNING);
  foreign.set_store_id(TestUuid(51));
  fixture.Attach(1, {foreign});
  fixture.Submit(TestSweep(1, 1), {1});
  EXPECT_TRUE(fixture.sent().empty());

  EXPECT_NE(FindAssign(fixture.Beat(1)), nullptr);
}

TEST(SchedulerLoss, AnAttemptOfAnEndedRunThatStillRunsIsCanceled) {
  SchedulerFixture fixture;

  const Actions actions =
      fixture.Attach(1, {fixture.Held(TestUuid(50), v1::ATTEMPT_PHASE_RUNNING)});

  ASSERT_NE(FindCancel(actions), nullptr);
  EXPECT_EQ(FindCancel(actions)->attempt_id(), TestUuid(50));
}

TEST(SchedulerLoss, AnAttemptWhoseSpoolIsGoneWithFramesStoredIsLostNotRunTwice) {
  SchedulerFixture fixture;
  fixture.Attach(1);
  fixture.Submit(TestSweep(1, 1), {1});
  v1::Frame frame =
      FinalFrame(fixture.store().identity().store_id, fixture.LastAttempt(1), v1::OUTCOME_OK);
  frame.set_is_final(false);
  frame.clear_end();
  fixture.Handle(FrameReceived{SchedulerFixture::HostId(1), frame});
  fixture.Detach(1);

  const Actions actions = fixture.Attach(1);

  EXPECT_EQ(fixture.store().FindAttempt(frame.attempt_id())->reason_code, "spool_lost");
  ASSERT_NE(FindAssign(actions), nullptr);
  EXPECT_NE(FindAssign(actions)->attempt_id(), frame.attempt_id());
}

TEST(SchedulerLoss, ARestartKeepsTheOrderOfWhatIsPending) {
  SchedulerFixture fixture;
  fixture.Attach(1);
  fixture.Submit(TestSweep(3, 2), {1});
  const std::string first_trial = fixture.LastAssign(1).trial_name();
  fixture.Finish(1, fixture.LastAttempt(1), v1::OUTCOME_VOID, "knob");
  fixture.Restart();
  fixture.Attach(1);

  std::vector<std::string> names;
  for (int i = 0; i < 3; ++i) {
    names.push_back(fixture.LastAssign(1).trial_name());
    fixture.Finish(1, fixture.LastAttempt(1), v1::OUTCOME_OK);
  }

  EXPECT_EQ(names[2], first_trial);
}

TEST(SchedulerLoss, WaitingForOtherAgentsIsBounded) {
  SchedulerFixture fixture;
  fixture.Attach(1);
  fixture.Submit(TestSweep(1, 1), {1});
  const std::string attempt = fixture.LastAttempt(1);
  Actions actions;
  for (int i = 0; i <= 62; ++i) {
    actions = fixture.Beat(1, {fixture.Held(attempt, v1::ATTEMPT_PHASE_WAITING)});
    if (fixture.store().FindAttempt(attempt)->outcome) break;
    fixture.Advance(Minutes(1));
  }

  EXPECT_EQ(fixture.store().FindAttempt(attempt)->outcome, Outcome::kTimeout);
  EXPECT_EQ(fixture.store().FindAttempt(attempt)->reason_code, kReasonWaitedTooLong);
  EXPECT_NE(FindCancel(actions), nullptr);
}

}  // namespace
}  // namespace pipeyard::scheduler
