// Agents and the store: what leaves, and when.
#include "controller/core/core.h"

#include <gtest/gtest.h>

#include "controller/core/testing/core_fixture.h"
#include "storage/testing/fake_store.h"

namespace pipeyard::core {
namespace {

TEST(Core, RunsASweepFromSubmitToTheEnd) {
  CoreFixture fixture;
  const auto agent = fixture.Attach(1);
  const std::string run_id = fixture.Submit(1, 3);

  fixture.WorkOff(*agent);

  EXPECT_EQ(agent->NumAssigns(), 6u);
  const storage::RunRecord run = fixture.store().LoadRun(run_id).value();
  EXPECT_EQ(run.state, storage::RunState::kFinished);
  EXPECT_EQ(fixture.core().stats().frames_committed, 6u);
  EXPECT_EQ(fixture.core().stats().active_runs, 0u);
  EXPECT_EQ(fixture.core().stats().hosts_connected, 1u);
}

TEST(Core, AssignsOnlyWhatIsCommitted) {
  CoreFixture fixture;
  const auto agent = fixture.Attach(1);
  Answer<v1::SubmitSweepResponse> answer;
  fixture.core().SubmitSweep(SubmitRequest(1, 1), "cli:test", answer.reply());

  fixture.RunWithoutCommits();
  EXPECT_EQ(agent->NumAssigns(), 0u);
  EXPECT_FALSE(answer.result.has_value());

  fixture.Run();
  EXPECT_EQ(agent->NumAssigns(), 1u);
  EXPECT_TRUE(answer.ok());
}

TEST(Core, AcknowledgesOnlyWhatIsCommitted) {
  CoreFixture fixture;
  const auto agent = fixture.Attach(1);
  fixture.Submit(1);
  const v1::Assign assign = *agent->LastAssign();
  agent->Finish(assign, v1::OUTCOME_OK);

  fixture.RunWithoutCommits();
  EXPECT_EQ(agent->LastAck(), nullptr);

  fixture.Run();
  ASSERT_NE(agent->LastAck(), nullptr);
  EXPECT_EQ(agent->LastAck()->attempt_id(), assign.attempt_id());
  EXPECT_EQ(fixture.store().FramesOf(assign.attempt_id()).size(), 1u);
}

TEST(Core, WhileTheStoreFailsNothingIsAcknowledgedAndSubmittingIsRefused) {
  CoreFixture fixture;
  const auto agent = fixture.Attach(1);
  fixture.Submit(1);
  fixture.store().FailWith(ResourceExhausted("ENOSPC (No space left on device)"));
  agent->Finish(*agent->LastAssign(), v1::OUTCOME_OK);
  fixture.Run();

  EXPECT_EQ(agent->LastAck(), nullptr);
  EXPECT_FALSE(agent->closed.has_value()) << "an agent is not told of our disk";
  Answer<v1::SubmitSweepResponse> answer;
  fixture.core().SubmitSweep(SubmitRequest(2, 1), "cli:test", answer.reply());
  fixture.Run();
  EXPECT_EQ(answer.code(), StatusCode::kUnavailable);

  fixture.store().FailWith(Status::Ok());
  fixture.Advance(Seconds(6));
  EXPECT_NE(agent->LastAck(), nullptr);
}

TEST(Core, ABatchThatTheStoreRefusesStopsDecidingAndAcknowledgesNothing) {
  CoreFixture fixture;
  const auto agent = fixture.Attach(1);
  fixture.Submit(1);
  fixture.store().FailWith(Internal("frame of unknown attempt"));

  agent->Finish(*agent->LastAssign(), v1::OUTCOME_OK);
  fixture.Run();

  EXPECT_EQ(agent->LastAck(), nullptr);
  EXPECT_TRUE(agent->closed.has_value());
  EXPECT_FALSE(fixture.core().fault().ok());
  Answer<v1::SubmitSweepResponse> answer;
  fixture.core().SubmitSweep(SubmitRequest(2, 1), "cli:test", answer.reply());
  fixture.Run();
  EXPECT_EQ(answer.code(), StatusCode::kUnavailable);
  Answer<v1::ListRunsResponse> runs;
  fixture.core().ListRuns({}, runs.reply());
  fixture.Run();
  EXPECT_TRUE(runs.ok()) << "reads go on";
}

TEST(Core, ALateFrameOfAnEndedRunIsStoredAndAcknowledged) {
  CoreFixture fixture;
  const auto agent = fixture.Attach(1);
  const std::string run_id = fixture.Submit(1);
  const v1::Assign assign = *agent->LastAssign();
  Answer<v1::RunProgress> canceled;
  v1::CancelRunRequest request;
  request.set_run(run_id);
  fixture.core().CancelRun(request, "cli:test", canceled.reply());
  fixture.Run();
  ASSERT_TRUE(canceled.ok());

  agent->Finish(assign, v1::OUTCOME_OK);
  fixture.Run();

  ASSERT_NE(agent->LastAck(), nullptr);
  EXPECT_EQ(fixture.store().FramesOf(assign.attempt_id()).size(), 1u);
  EXPECT_EQ(fixture.store().FindAttempt(assign.attempt_id())->outcome, storage::Outcome::kCanceled);
}

TEST(Core, AFrameOfAnAttemptThatTheStoreForgotIsSetAside) {
  CoreFixture fixture;
  const auto agent = fixture.Attach(1);
  v1::Assign unknown;
  unknown.set_store_id(fixture.store().identity().store_id);
  unknown.set_attempt_id(scheduler::TestUuid(99));

  agent->Finish(unknown, v1::OUTCOME_OK);
  fixture.Run();

  EXPECT_EQ(fixture.store().num_orphans(), 1u);
  ASSERT_NE(agent->LastAck(), nullptr);
}

TEST(Core, AFramePastAGapClosesTheSession) {
  CoreFixture fixture;
  const auto agent = fixture.Attach(1);
  fixture.Submit(1);
  v1::Frame frame = scheduler::FinalFrame(fixture.store().identity().store_id,
                                          agent->LastAssign()->attempt_id(), v1::OUTCOME_OK);
  frame.mutable_end()->set_boot_id(scheduler::TestUuid(0x2001));
  frame.set_sequence(2);

  agent->Send(frame);
  fixture.Run();

  ASSERT_TRUE(agent->closed.has_value());
  EXPECT_EQ(agent->closed->code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(agent->LastAck(), nullptr);
}

TEST(Core, AStreamThatEndsMakesTheHostAway) {
  CoreFixture fixture;
  auto agent = fixture.Attach(1);
  agent.reset();
  fixture.Run();

  Answer<v1::ListHostsResponse> hosts;
  fixture.core().ListHosts(hosts.reply());
  fixture.Run();

  ASSERT_TRUE(hosts.ok());
  ASSERT_EQ((*hosts.result)->hosts_size(), 1);
  EXPECT_EQ((*hosts.result)->hosts(0).state(), "away");
}

TEST(Core, AStoreThatCannotBeReadFailsTheStartAndStoppingStillWorks) {
  FakeClock clock;
  FakeExecutor loop(clock);
  FakeExecutor writer(clock);
  storage::FakeStore store;
  IdSource ids(clock, 1);
  Readers readers({});
  ingest::Committer committer(store, loop, writer, {});
  Core core(loop, clock, store, committer, readers, ids, {});

  const Status started = core.Start();
  core.BeginShutdown();
  loop.RunUntilIdle();

  EXPECT_EQ(started.code(), StatusCode::kUnimplemented);
  EXPECT_EQ(core.stats().active_runs, 0u);
}

TEST(Core, AfterShutdownAgentsAndRequestsAreRefused) {
  CoreFixture fixture;
  const auto agent = fixture.Attach(1);

  fixture.core().BeginShutdown();
  fixture.Run();

  ASSERT_TRUE(agent->closed.has_value());
  EXPECT_EQ(agent->closed->code(), StatusCode::kUnavailable);
  Answer<v1::SubmitSweepResponse> answer;
  fixture.core().SubmitSweep(SubmitRequest(1, 1), "cli:test", answer.reply());
  fixture.Run();
  EXPECT_EQ(answer.code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace pipeyard::core
