// Which frames are stored, acknowledged, set aside or ignored.
#include <gtest/gtest.h>

#include <algorithm>

#include "controller/scheduler/testing/scheduler_fixture.h"

namespace pipeyard::scheduler {
namespace {

using storage::Outcome;
using storage::RunState;
using storage::TrialState;

size_t NumAssigns(const Actions& actions) {
  return static_cast<size_t>(std::ranges::count_if(
      actions.sends, [](const Send& send) { return send.message.has_assign(); }));
}

size_t NumAcks(const Actions& actions) {
  return static_cast<size_t>(std::ranges::count_if(
      actions.sends, [](const Send& send) { return send.message.has_ack(); }));
}

TEST(SchedulerFrames, ALateFrameOfAnEndedRunIsLookedUpStoredAndAcknowledged) {
  SchedulerFixture fixture;
  fixture.Attach(1);
  const std::string run_id = fixture.Submit(TestSweep(1, 1), {1});
  const std::string attempt = fixture.LastAttempt(1);
  fixture.Handle(CancelRequested{run_id, "cli:test"});

  Actions actions = fixture.Finish(1, attempt, v1::OUTCOME_CANCELED);

  ASSERT_EQ(actions.lookups.size(), 1u);
  EXPECT_EQ(NumAcks(actions), 0u);
  FrameReceived answer = actions.lookups[0].frame;
  answer.is_known = true;
  actions = fixture.Handle(answer);
  EXPECT_EQ(NumAcks(actions), 1u);
  EXPECT_EQ(fixture.store().FramesOf(attempt).size(), 1u);
}

TEST(SchedulerFrames, AFrameThatTheStoreDoesNotKnowIsSetAsideAndAcknowledged) {
  SchedulerFixture fixture;
  fixture.Attach(1);
  FrameReceived event{SchedulerFixture::HostId(1),
                      FinalFrame(fixture.store().identity().store_id, TestUuid(77), v1::OUTCOME_OK),
                      false};

  const Actions actions = fixture.Handle(event);

  EXPECT_EQ(NumAcks(actions), 1u);
  EXPECT_EQ(fixture.store().num_orphans(), 1u);
}

TEST(SchedulerFrames, AFrameOfAnotherStoreIsIgnored) {
  SchedulerFixture fixture;
  fixture.Attach(1);
  fixture.Submit(TestSweep(1, 1), {1});

  const Actions actions = fixture.Handle(
      FrameReceived{SchedulerFixture::HostId(1),
                    FinalFrame(TestUuid(9), fixture.LastAttempt(1), v1::OUTCOME_OK)});

  EXPECT_TRUE(actions.empty());
  EXPECT_EQ(actions.notes.size(), 1u);
}

TEST(SchedulerFrames, AnotherHostsAttemptIsNotTouched) {
  SchedulerFixture fixture;
  fixture.Attach(1);
  fixture.Attach(2);
  const std::string run_id = fixture.Submit(TestSweep(1, 1), {1});

  EXPECT_TRUE(fixture.Finish(2, fixture.LastAttempt(1), v1::OUTCOME_OK).empty());

  EXPECT_EQ(fixture.Run(run_id).state, RunState::kRunning);
}

TEST(SchedulerFrames, ARepeatedFrameIsAcknowledgedAgainAndChangesNothing) {
  SchedulerFixture fixture;
  fixture.Attach(1);
  fixture.Submit(TestSweep(1, 2), {1});
  const std::string attempt = fixture.LastAttempt(1);
  fixture.Finish(1, attempt, v1::OUTCOME_OK);

  const Actions actions = fixture.Finish(1, attempt, v1::OUTCOME_OK);

  EXPECT_TRUE(actions.mutations.empty());
  ASSERT_EQ(actions.sends.size(), 1u);
  EXPECT_EQ(actions.sends[0].message.ack().through(), 1u);
}

TEST(SchedulerFrames, AFramePastAGapClosesTheSessionAndIsSetAsideWhenThatDoesNotHelp) {
  SchedulerFixture fixture;
  fixture.Attach(1);
  fixture.Submit(TestSweep(1, 1), {1});
  const std::string attempt = fixture.LastAttempt(1);
  v1::Frame frame = FinalFrame(fixture.store().identity().store_id, attempt, v1::OUTCOME_OK);
  frame.set_sequence(2);

  Actions actions = fixture.Handle(FrameReceived{SchedulerFixture::HostId(1), frame});
  ASSERT_EQ(actions.closes.size(), 1u);
  EXPECT_EQ(actions.closes[0].host_id, SchedulerFixture::HostId(1));
  EXPECT_TRUE(actions.mutations.empty());
  EXPECT_TRUE(actions.sends.empty());

  fixture.Detach(1);
  fixture.Attach(1, {fixture.Held(attempt, v1::ATTEMPT_PHASE_SPOOLED)});
  actions = fixture.Handle(FrameReceived{SchedulerFixture::HostId(1), frame});
  EXPECT_EQ(NumAcks(actions), 1u);
  EXPECT_EQ(fixture.store().num_orphans(), 1u);
  EXPECT_EQ(fixture.store().FindAttempt(attempt)->reason_code, "frames_lost");
  EXPECT_NE(fixture.LastAttempt(1), attempt);
}

TEST(SchedulerFrames, MetricsOfAllFramesCountTowardsTheJudgement) {
  SchedulerFixture fixture;
  fixture.Attach(1);
  const std::string run_id = fixture.Submit(TestSweep(1, 1), {1});
  const v1::Frame whole =
      FinalFrame(fixture.store().identity().store_id, fixture.LastAttempt(1), v1::OUTCOME_OK);
  v1::Frame first = whole;
  first.set_is_final(false);
  first.clear_end();
  v1::Frame last = whole;
  last.set_sequence(2);
  last.clear_metrics();

  fixture.Handle(FrameReceived{SchedulerFixture::HostId(1), first});
  fixture.Restart();
  fixture.Attach(1, {fixture.Held(whole.attempt_id(), v1::ATTEMPT_PHASE_SPOOLED)});
  fixture.Handle(FrameReceived{SchedulerFixture::HostId(1), last});

  EXPECT_EQ(fixture.Run(run_id).cells[0].trials[0].state, TrialState::kDone);
}

TEST(SchedulerFrames, AnOkWithoutItsMetricsIsFailedAndRetried) {
  SchedulerFixture fixture;
  fixture.Attach(1);
  fixture.Submit(TestSweep(1, 1), {1});
  const std::string attempt = fixture.LastAttempt(1);
  v1::Frame frame = FinalFrame(fixture.store().identity().store_id, attempt, v1::OUTCOME_OK);
  frame.clear_metrics();

  const Actions actions = fixture.Handle(FrameReceived{SchedulerFixture::HostId(1), frame});

  EXPECT_EQ(fixture.store().FindAttempt(attempt)->outcome, Outcome::kFailed);
  EXPECT_EQ(fixture.store().FindAttempt(attempt)->reason_code, kReasonMissingMetric);
  EXPECT_EQ(NumAssigns(actions), 1u);
}

}  // namespace
}  // namespace pipeyard::scheduler
