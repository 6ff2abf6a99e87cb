// What the agent does with assignments, ends, disks and restarts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/core/agent_fixture.h"

namespace pipeyard::agent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using Fault = FaultyEnv::Fault;
using Survives = FaultyEnv::Survives;

TEST_F(AgentTest, AttemptIsAcceptedOnceItIsOnDiskRunSpooledAndForgotten) {
  Start();
  Assign(1);
  EXPECT_THAT(controller_.accepted, ElementsAre(Id(1)));
  EXPECT_THAT(life_->runner.runs, ElementsAre(Id(1)));
  EXPECT_TRUE(life_->spool->Find(Id(1)).has_value());

  Started(1);
  EXPECT_EQ(controller_.heartbeat.held(0).phase(), v1::ATTEMPT_PHASE_RUNNING);
  End(1);

  ASSERT_THAT(controller_.finals[Id(1)], SizeIs(1));
  EXPECT_EQ(controller_.finals[Id(1)][0].outcome(), v1::OUTCOME_OK);
  EXPECT_THAT(life_->spool->List(), IsEmpty());
  EXPECT_FALSE(env_.Exists(AttemptPaths(paths_.Attempts(), Id(1)).Folder()));
}

TEST_F(AgentTest, RepeatedAssignmentIsAcceptedAgainAndRunOnce) {
  Start();
  Assign(1);
  controller_.accepted.clear();

  Assign(1);
  EXPECT_THAT(controller_.accepted, ElementsAre(Id(1)));
  Started(1);
  End(1);
  Assign(1);

  EXPECT_THAT(life_->runner.runs, SizeIs(1));
}

TEST_F(AgentTest, SecondAttemptIsRefusedAsBusy) {
  Start();
  Assign(1);

  Assign(2);

  EXPECT_EQ(controller_.refused[Id(2)].reason(), v1::Refused::REASON_BUSY);
  EXPECT_THAT(life_->runner.runs, SizeIs(1));
}

TEST_F(AgentTest, FullDiskIsRefusedAndEndsWithTheDisk) {
  Start();
  env_.set_free_bytes(0);
  Assign(1);
  EXPECT_EQ(controller_.refused[Id(1)].reason(), v1::Refused::REASON_DISK);

  env_.set_free_bytes(uint64_t{1} << 40);
  Assign(1);

  EXPECT_THAT(controller_.accepted, ElementsAre(Id(1)));
}

TEST_F(AgentTest, EndThatCannotBeWrittenIsTriedUntilItIs) {
  Start();
  Assign(1);
  Started(1);
  env_.Inject(Fault::kFail, 1);
  End(1);
  EXPECT_THAT(controller_.finals, IsEmpty());
  Assign(2);
  EXPECT_EQ(controller_.refused[Id(2)].reason(), v1::Refused::REASON_BUSY);

  executor_.Advance(Seconds(1));

  EXPECT_THAT(controller_.finals[Id(1)], SizeIs(1));
}

TEST_F(AgentTest, WithoutAControllerTheAttemptEndsInTheSpoolAndIsSentLater) {
  Start();
  Assign(1);
  Started(1);
  network_.Listen(nullptr);
  network_.BreakLinks();
  Settle();

  End(1);
  EXPECT_TRUE(life_->spool->Find(Id(1))->is_final);
  network_.Listen(&controller_);
  executor_.Advance(Seconds(30));

  EXPECT_EQ(controller_.hello.held(0).phase(), v1::ATTEMPT_PHASE_SPOOLED);
  EXPECT_THAT(controller_.finals[Id(1)], SizeIs(1));
  EXPECT_THAT(life_->spool->List(), IsEmpty());
}

TEST_F(AgentTest, FrameThatCouldNotBeReadIsSentOverANewStream) {
  Start();
  Assign(1);
  Started(1);
  // The end takes four operations to write and one to remove the folder; then the session reads.
  env_.Inject(Fault::kFail, 4);
  End(1);
  ASSERT_TRUE(env_.was_hit());
  EXPECT_THAT(controller_.finals, IsEmpty());

  executor_.Advance(Minutes(1));

  EXPECT_THAT(controller_.finals[Id(1)], SizeIs(1));
}

TEST_F(AgentTest, CancelStopsTheRunner) {
  Start();
  Assign(1);
  Started(1);

  controller_.Cancel(Id(1));
  controller_.Cancel(Id(2));
  Settle();

  EXPECT_THAT(life_->runner.stops, ElementsAre(std::pair(Id(1), StopReason::kCanceled)));
}

TEST_F(AgentTest, WaitForTheTrialLockHasADeadline) {
  Start();
  Assign(1);

  executor_.Advance(Minutes(61));

  EXPECT_THAT(life_->runner.stops, ElementsAre(std::pair(Id(1), StopReason::kLockTimeout)));
}

TEST_F(AgentTest, RunningTrialIsNotTouchedByThatDeadline) {
  Start();
  Assign(1);
  Started(1);

  executor_.Advance(Minutes(61));

  EXPECT_THAT(life_->runner.stops, IsEmpty());
}

TEST_F(AgentTest, InterruptedAttemptIsVoidAfterARestart) {
  Start();
  Assign(1);
  Started(1);
  Kill();
  env_.Reboot(Survives::kEverything);

  Start();

  ASSERT_THAT(controller_.finals[Id(1)], SizeIs(1));
  EXPECT_EQ(controller_.finals[Id(1)][0].outcome(), v1::OUTCOME_VOID);
  EXPECT_EQ(controller_.finals[Id(1)][0].reason_code(), "agent_restarted");
  EXPECT_EQ(controller_.finals[Id(1)][0].boot_id(), kBoot);
  EXPECT_THAT(life_->runner.runs, IsEmpty());
}

TEST_F(AgentTest, AttemptThatHadNotBegunIsRunAfterARestart) {
  Start();
  Assign(1);
  Kill();
  env_.Reboot(Survives::kSynced);

  Start(kNextBoot);

  EXPECT_THAT(life_->runner.runs, ElementsAre(Id(1)));
  EXPECT_EQ(controller_.hello.held(0).phase(), v1::ATTEMPT_PHASE_WAITING);
}

TEST_F(AgentTest, PowerLossWhileItRanIsACrashOfTheHost) {
  Start();
  Assign(1);
  Started(1);
  Kill();
  env_.Reboot(Survives::kSynced);

  Start(kNextBoot);

  EXPECT_EQ(controller_.finals[Id(1)][0].outcome(), v1::OUTCOME_FAILED);
  EXPECT_EQ(controller_.finals[Id(1)][0].reason_code(), "host_crashed");
}

TEST_F(AgentTest, ShutdownEndsTheRunningAttemptAndMarksTheStop) {
  Start();
  Assign(1);
  Started(1);

  life_->agent->Shutdown();
  Settle();
  EXPECT_FALSE(life_->finish.has_value());
  EXPECT_THAT(life_->runner.stops, ElementsAre(std::pair(Id(1), StopReason::kAgentStops)));
  End(1, v1::OUTCOME_VOID);

  ASSERT_TRUE(life_->finish.has_value());
  EXPECT_FALSE(life_->finish->is_refused);
  EXPECT_EQ(*TakeCleanStop(env_, paths_), kBoot);
}

TEST_F(AgentTest, ShutdownDoesNotWaitForADiskForEver) {
  Start();
  Assign(1);
  Started(1);
  life_->agent->Shutdown();
  Settle();

  executor_.Advance(Seconds(11));

  EXPECT_TRUE(life_->finish.has_value());
}

TEST_F(AgentTest, FinalRefusalEndsTheAgentOnceItsAttemptIsSpooled) {
  Start();
  Assign(1);
  Started(1);
  controller_.refusal.emplace();
  controller_.refusal->set_reason(v1::HelloRefused::REASON_NAME_IN_USE);
  controller_.refusal->set_text("name host1 is in use");
  network_.BreakLinks();
  executor_.Advance(Seconds(30));
  EXPECT_FALSE(life_->finish.has_value());

  End(1);

  ASSERT_TRUE(life_->finish.has_value());
  EXPECT_TRUE(life_->finish->is_refused);
  EXPECT_EQ(life_->finish->text, "name host1 is in use");
  EXPECT_TRUE(life_->spool->Find(Id(1))->is_final);
}

TEST_F(AgentTest, IdentityIsDrawnOnceAndASecondProcessIsRefused) {
  Start();
  const std::string id = life_->folder->agent_id();

  const auto second = StateFolder::Open(env_, paths_, ids_);
  EXPECT_EQ(second.status().code(), StatusCode::kFailedPrecondition);
  Kill();
  env_.Reboot(Survives::kSynced);
  Start();

  EXPECT_TRUE(IsUuid(id));
  EXPECT_EQ(life_->folder->agent_id(), id);
}

TEST_F(AgentTest, DamagedIdentityIsNotOverwritten) {
  ASSERT_TRUE(env_.CreateDirs(paths_.StateFolder()).ok());
  ASSERT_TRUE(env_.WriteFileAtomic(paths_.AgentId(), "nonsense\n").ok());

  EXPECT_EQ(StateFolder::Open(env_, paths_, ids_).status().code(), StatusCode::kDataLoss);
  EXPECT_EQ(*env_.ReadFile(paths_.AgentId()), "nonsense\n");
}

}  // namespace
}  // namespace pipeyard::agent
