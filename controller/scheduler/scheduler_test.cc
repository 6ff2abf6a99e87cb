// Rules of leasing and of the end of runs; frames are in scheduler_frames_test.cc, lost hosts and
// restarts in
// scheduler_loss_test.cc.
#include "controller/scheduler/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "controller/scheduler/testing/scheduler_fixture.h"

namespace pipeyard::scheduler {
namespace {

using storage::CellState;
using storage::Outcome;
using storage::RunState;
using storage::TrialState;

size_t NumAssigns(const Actions& actions) {
  return static_cast<size_t>(std::ranges::count_if(
      actions.sends, [](const Send& send) { return send.message.has_assign(); }));
}

// The trial of the attempt as stored.
std::pair<storage::TrialRecord, std::vector<storage::AttemptRecord>> TrialOf(
    SchedulerFixture& fixture, const std::string& run_id, const std::string& attempt_id) {
  for (const storage::CellRecord& cell : fixture.Run(run_id).cells) {
    for (size_t i = 0; i < cell.trials.size(); ++i) {
      for (const storage::AttemptRecord& attempt : cell.attempts[i]) {
        if (attempt.attempt_id == attempt_id) return {cell.trials[i], cell.attempts[i]};
      }
    }
  }
  ADD_FAILURE() << "no such attempt " << attempt_id;
  return {};
}

TEST(Scheduler, RunsEveryTrialInOrderAndFinishes) {
  SchedulerFixture fixture;
  fixture.Attach(1);
  const std::string run_id = fixture.Submit(TestSweep(2, 6), {1});

  std::vector<uint32_t> positions;
  for (int i = 0; i < 12; ++i) {
    const std::string attempt = fixture.LastAttempt(1);
    positions.push_back(TrialOf(fixture, run_id, attempt).first.position);
    fixture.Accept(1, attempt);
    EXPECT_EQ(TrialOf(fixture, run_id, attempt).first.state, TrialState::kRunning);
    fixture.Finish(1, attempt, v1::OUTCOME_OK);
  }

  EXPECT_TRUE(std::ranges::is_sorted(positions));
  EXPECT_EQ(positions.back(), 12u);
  const storage::RunRecord run = fixture.Run(run_id);
  EXPECT_EQ(run.state, RunState::kFinished);
  for (const storage::CellRecord& cell : run.cells) EXPECT_EQ(cell.state, CellState::kComplete);
  EXPECT_EQ(fixture.scheduler().num_active_runs(), 0u);
  EXPECT_EQ(ExitStatus(run.state, run.cells), 0u);
}

TEST(Scheduler, AssignsWithEverythingThatTheAgentNeeds) {
  SchedulerFixture fixture;
  fixture.Attach(1);
  const std::string run_id = fixture.Submit(TestSweep(2, 6), {1});

  const v1::Assign assign = fixture.LastAssign(1);

  EXPECT_EQ(assign.run_id(), run_id);
  EXPECT_EQ(assign.store_id(), fixture.store().identity().store_id);
  EXPECT_EQ(assign.epoch(), fixture.store().identity().epoch);
  EXPECT_EQ(assign.trial_timeout_ns(), Seconds(60).count());
  EXPECT_TRUE(settings::FromProto(assign.variant()).ok());
  EXPECT_EQ(assign.trial_name(), "host1/" + assign.variant().variant_id() + "/1");
}

TEST(Scheduler, InsertsTheAttemptInTheTransactionThatPrecedesItsAssign) {
  SchedulerFixture fixture;
  fixture.Attach(1);
  fixture.Submit(TestSweep(2, 6), {1});
  fixture.Accept(1, fixture.LastAttempt(1));

  const Actions actions = fixture.Finish(1, fixture.LastAttempt(1), v1::OUTCOME_OK);

  ASSERT_EQ(actions.sends.size(), 2u);
  EXPECT_TRUE(actions.sends[0].message.has_ack());
  ASSERT_TRUE(actions.sends[1].message.has_assign());
  EXPECT_NE(fixture.store().FindAttempt(actions.sends[1].message.assign().attempt_id()), nullptr);
}

TEST(Scheduler, GivesAHostOneTrialAtATimeAndSeveralHostsTheirsAtOnce) {
  SchedulerFixture fixture;
  fixture.Attach(1);
  fixture.Attach(2);
  fixture.Submit(TestSweep(2, 6), {1, 2});
  EXPECT_EQ(fixture.sent().size(), 2u);

  EXPECT_EQ(NumAssigns(fixture.Beat(1)), 0u);
  EXPECT_EQ(NumAssigns(fixture.Handle(Tick{})), 0u);
}

TEST(Scheduler, TakesTheOldestRunFirst) {
  SchedulerFixture fixture;
  fixture.Attach(1);
  const std::string first = fixture.Submit(TestSweep(1, 1), {1}, 1);
  const std::string second = fixture.Submit(TestSweep(1, 1), {1}, 2);
  EXPECT_EQ(fixture.LastAssign(1).run_id(), first);
  EXPECT_EQ(fixture.Run(second).state, RunState::kQueued);

  fixture.Finish(1, fixture.LastAttempt(1), v1::OUTCOME_OK);

  EXPECT_EQ(fixture.LastAssign(1).run_id(), second);
  EXPECT_EQ(fixture.Run(second).state, RunState::kRunning);
}

TEST(Scheduler, ARetryGoesToTheEndOfItsBlock) {
  SchedulerFixture fixture;
  fixture.Attach(1);
  const std::string run_id = fixture.Submit(TestSweep(3, 2), {1});

  std::vector<std::pair<uint32_t, uint32_t>> ran;  // block, position
  for (int i = 0; i < 7; ++i) {
    const std::string attempt = fixture.LastAttempt(1);
    const storage::TrialRecord trial = TrialOf(fixture, run_id, attempt).first;
    ran.emplace_back(trial.block, trial.position);
    fixture.Finish(1, attempt, i == 0 ? v1::OUTCOME_VOID : v1::OUTCOME_OK, i == 0 ? "knob" : "");
  }

  const std::vector<std::pair<uint32_t, uint32_t>> expected = {{1, 1}, {1, 2}, {1, 3}, {1, 1},
                                                               {2, 4}, {2, 5}, {2, 6}};
  EXPECT_EQ(ran, expected);
  EXPECT_EQ(fixture.Run(run_id).state, RunState::kFinished);
}

struct ExhaustionCase {
  v1::Outcome last;
  TrialState state;
};

TEST(Scheduler, OutOfAttemptsATrialIsVoidWhereTheLastOneWasElseFailed) {
  for (const ExhaustionCase& c : {ExhaustionCase{v1::OUTCOME_VOID, TrialState::kVoid},
                                  ExhaustionCase{v1::OUTCOME_FAILED, TrialState::kFailed},
                                  ExhaustionCase{v1::OUTCOME_TIMEOUT, TrialState::kFailed}}) {
    SchedulerFixture fixture;
    fixture.Attach(1);
    const std::string run_id = fixture.Submit(TestSweep(1, 1), {1});
    fixture.Finish(1, fixture.LastAttempt(1), v1::OUTCOME_VOID);
    fixture.Finish(1, fixture.LastAttempt(1), v1::OUTCOME_FAILED);
    fixture.Finish(1, fixture.LastAttempt(1), c.last);

    const storage::RunRecord run = fixture.Run(run_id);
    EXPECT_EQ(run.cells[0].trials[0].state, c.state);
    EXPECT_EQ(run.cells[0].attempts[0].size(), 3u);
    EXPECT_EQ(run.cells[0].state, CellState::kMissing);
    EXPECT_EQ(run.cells[0].reason, "0 of 1 trials ok");
    EXPECT_EQ(run.state, RunState::kFinished);
    EXPECT_EQ(ExitStatus(run.state, run.cells), 6u);
  }
}

TEST(Scheduler, ARefusalUsesNoAttemptAndPausesTheHostLongerEachTime) {
  SchedulerFixture fixture;
  fixture.Attach(1);
  const std::string run_id = fixture.Submit(TestSweep(1, 1), {1});

  for (const Nanos pause : {Seconds(1), Seconds(2), Seconds(4)}) {
    const std::string attempt = fixture.LastAttempt(1);
    EXPECT_EQ(NumAssigns(fixture.Refuse(1, attempt, v1::Refused::REASON_BUSY)), 0u);
    EXPECT_EQ(fixture.store().FindAttempt(attempt), nullptr);
    EXPECT_EQ(fixture.Run(run_id).cells[0].trials[0].state, TrialState::kPending);
    fixture.Advance(pause - Nanos(1));
    EXPECT_EQ(NumAssigns(fixture.Handle(Tick{})), 0u);
    fixture.Advance(Nanos(1));
    EXPECT_EQ(NumAssigns(fixture.Handle(Tick{})), 1u);
  }
  EXPECT_EQ(TrialOf(fixture, run_id, fixture.LastAttempt(1)).second.size(), 1u);
}

TEST(Scheduler, AnAcceptedAttemptResetsThePause) {
  SchedulerFixture fixture;
  fixture.Attach(1);
  fixture.Submit(TestSweep(1, 2), {1});
  fixture.Refuse(1, fixture.LastAttempt(1), v1::Refused::REASON_DISK);
  fixture.Advance(Seconds(1));
  fixture.Handle(Tick{});
  fixture.Accept(1, fixture.LastAttempt(1));
  fixture.Finish(1, fixture.LastAttempt(1), v1::OUTCOME_OK);
  fixture.Refuse(1, fixture.LastAttempt(1), v1::Refused::REASON_DISK);

  fixture.Advance(Seconds(1));

  EXPECT_EQ(NumAssigns(fixture.Handle(Tick{})), 1u);
}

TEST(Scheduler, NotApplicableEndsTheCellAndARunWithoutAnyOtherIsFailed) {
  SchedulerFixture fixture;
  fixture.Attach(1);
  const std::string run_id = fixture.Submit(TestSweep(1, 3), {1});

  fixture.Refuse(1, fixture.LastAttempt(1), v1::Refused::REASON_NOT_APPLICABLE);

  const storage::RunRecord run = fixture.Run(run_id);
  EXPECT_EQ(run.cells[0].state, CellState::kNotApplicable);
  EXPECT_EQ(run.cells[0].reason, "said the agent");
  for (const storage::TrialRecord& trial : run.cells[0].trials) {
    EXPECT_EQ(trial.state, TrialState::kNotApplicable);
  }
  EXPECT_EQ(run.state, RunState::kFailed);
}

TEST(Scheduler, ARunOfCellsThatAreAllNotApplicableIsFailedAtOnce) {
  SchedulerFixture fixture;
  spec::Sweep sweep = TestSweep(2, 6);
  sweep.expect = {{"kernel", "9*"}};

  const std::string run_id = fixture.Submit(sweep, {1});

  EXPECT_EQ(fixture.Run(run_id).state, RunState::kFailed);
  EXPECT_FALSE(fixture.scheduler().IsActive(run_id));
}

TEST(Scheduler, ACrashedHostIsStoppedInThisRunOnly) {
  SchedulerFixture fixture;
  fixture.Attach(1);
  fixture.Attach(2);
  const std::string run_id = fixture.Submit(TestSweep(1, 2), {1, 2}, 1);
  const std::string later = fixture.Submit(TestSweep(1, 2), {1}, 2);

  fixture.Finish(1, fixture.LastAttempt(1), v1::OUTCOME_FAILED, "host_crashed");

  const storage::RunRecord run = fixture.Run(run_id);
  EXPECT_EQ(run.cells[0].state, CellState::kMissing);
  EXPECT_EQ(run.cells[0].reason, "0 of 2 trials ok: host crashed");
  EXPECT_EQ(run.cells[1].state, CellState::kRunning);
  EXPECT_EQ(fixture.LastAssign(1).run_id(), later);
}

TEST(Scheduler, ACrashedHostIsRetriedWhereTheSweepSaysSo) {
  SchedulerFixture fixture;
  fixture.Attach(1);
  spec::Sweep sweep = TestSweep(1, 1);
  sweep.stops_host_on_crash = false;
  const std::string run_id = fixture.Submit(sweep, {1});

  fixture.Finish(1, fixture.LastAttempt(1), v1::OUTCOME_FAILED, "host_crashed");

  EXPECT_EQ(NumAssigns(fixture.Handle(Tick{})), 0u);  // the retry is out already
  EXPECT_EQ(TrialOf(fixture, run_id, fixture.LastAttempt(1)).second.size(), 2u);
}

TEST(Scheduler, CancelEndsTheRunAtOnceAndTellsTheAgents) {
  SchedulerFixture fixture;
  fixture.Attach(1);
  const std::string run_id = fixture.Submit(TestSweep(2, 6), {1});
  const std::string attempt = fixture.LastAttempt(1);
  fixture.Accept(1, attempt);

  const Actions actions = fixture.Handle(CancelRequested{run_id, "cli:test"});

  ASSERT_EQ(actions.sends.size(), 1u);
  EXPECT_EQ(actions.sends[0].message.cancel().attempt_id(), attempt);
  const storage::RunRecord run = fixture.Run(run_id);
  EXPECT_EQ(run.state, RunState::kCanceled);
  EXPECT_EQ(fixture.store().FindAttempt(attempt)->outcome, Outcome::kCanceled);
  for (const storage::CellRecord& cell : run.cells) {
    EXPECT_EQ(cell.state, CellState::kMissing);
    for (const auto& trial : cell.trials) EXPECT_EQ(trial.state, TrialState::kCanceled);
  }
  EXPECT_TRUE(fixture.Handle(CancelRequested{run_id, "cli:test"}).empty());
}

TEST(Scheduler, AnEndedRunComesWithItsLastProgressAndExitStatus) {
  SchedulerFixture fixture;
  fixture.Attach(1);
  const std::string run_id = fixture.Submit(TestSweep(1, 1), {1}, 1);
  const std::string canceled = fixture.Submit(TestSweep(1, 1), {1}, 2);

  const Actions finished = fixture.Finish(1, fixture.LastAttempt(1), v1::OUTCOME_OK);
  const Actions cancel = fixture.Handle(CancelRequested{canceled, "cli:test"});

  ASSERT_EQ(finished.ended.size(), 1u);
  EXPECT_EQ(finished.ended[0].summary().run_id(), run_id);
  EXPECT_EQ(finished.ended[0].summary().state(), "finished");
  EXPECT_EQ(finished.ended[0].exit_status(), 0u);
  ASSERT_EQ(cancel.ended.size(), 1u);
  EXPECT_EQ(cancel.ended[0].exit_status(), 6u);
}

TEST(Scheduler, ARequestIsRememberedWhenItsRunHasEnded) {
  SchedulerFixture fixture;
  fixture.Attach(1);
  const std::string run_id = fixture.Submit(TestSweep(1, 1), {1});
  fixture.Finish(1, fixture.LastAttempt(1), v1::OUTCOME_OK);

  EXPECT_EQ(fixture.scheduler().FindRequest(TestRequest(1).request_id), run_id);
  EXPECT_EQ(fixture.scheduler().FindRequest(TestUuid(123)), std::nullopt);
}

TEST(Scheduler, ProgressCountsByHostAndSaysWhatRuns) {
  SchedulerFixture fixture;
  fixture.Attach(1);
  const std::string run_id = fixture.Submit(TestSweep(1, 2), {1, 2});
  fixture.Finish(1, fixture.LastAttempt(1), v1::OUTCOME_OK);

  const std::optional<v1::RunProgress> progress = fixture.scheduler().Progress(run_id);

  ASSERT_TRUE(progress.has_value());
  EXPECT_EQ(progress->summary().state(), "running");
  EXPECT_EQ(progress->summary().trials(), 4u);
  EXPECT_EQ(progress->summary().trials_done(), 1u);
  ASSERT_EQ(progress->hosts_size(), 2);
  EXPECT_EQ(progress->hosts(0).now(), "writers=1 2/2");
  EXPECT_EQ(progress->hosts(0).done(), 1u);
  EXPECT_EQ(progress->hosts(1).now(), "away");
  EXPECT_GT(progress->expected_remaining_ns(), 0);
}

}  // namespace
}  // namespace pipeyard::scheduler
