// What users ask, and how it is answered.
#include <gtest/gtest.h>

#include <algorithm>

#include "controller/core/core.h"
#include "controller/core/testing/core_fixture.h"

namespace pipeyard::core {
namespace {

v1::GetRunRequest ForRun(const std::string& run) {
  v1::GetRunRequest request;
  request.set_run(run);
  return request;
}

struct Watched {
  std::vector<v1::RunProgress> progress;
  std::optional<Status> end;
  std::optional<WatchId> id;

  void Start(CoreFixture& fixture, const std::string& run) {
    fixture.core().WatchRun(ForRun(run),
                            {.on_progress = [this](const auto& p) { progress.push_back(p); },
                             .on_end = [this](const Status& status) { end = status; }},
                            [this](WatchId given) { id = given; });
  }
};

TEST(Submit, TheSameRequestGivesTheSameRun) {
  CoreFixture fixture;
  const auto agent = fixture.Attach(1);
  Answer<v1::SubmitSweepResponse> first, second;

  // Both are under way before either is stored.
  fixture.core().SubmitSweep(SubmitRequest(1, 1), "cli:test", first.reply());
  fixture.core().SubmitSweep(SubmitRequest(1, 1), "cli:test", second.reply());
  fixture.Run();
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE(second.ok());
  EXPECT_EQ((*first.result)->run_id(), (*second.result)->run_id());

  fixture.WorkOff(*agent);
  EXPECT_EQ(fixture.Submit(1), (*first.result)->run_id());
  EXPECT_EQ(fixture.store().runs().size(), 1u);
}

TEST(Submit, ABrokenSweepComesBackWithItsProblemsAndNothingIsStored) {
  CoreFixture fixture;
  const auto agent = fixture.Attach(1);
  v1::SubmitSweepRequest request = SubmitRequest(1, 1);
  request.mutable_sweep()->set_yaml(SweepYaml(1) + "paralel: 3\n");
  Answer<v1::SubmitSweepResponse> answer;

  fixture.core().SubmitSweep(request, "cli:test", answer.reply());
  fixture.Run();

  ASSERT_TRUE(answer.ok());
  EXPECT_EQ((*answer.result)->run_id(), "");
  const auto& problems = (*answer.result)->problems();
  const auto error = std::ranges::find(problems, false, &v1::SpecProblem::is_warning);
  ASSERT_NE(error, problems.end());
  EXPECT_EQ(error->line(), 9u);
  EXPECT_TRUE(fixture.store().runs().empty());
}

TEST(Submit, WithoutAHostIsRefused) {
  CoreFixture fixture;
  Answer<v1::SubmitSweepResponse> answer;

  fixture.core().SubmitSweep(SubmitRequest(1, 1), "cli:test", answer.reply());
  fixture.Run();

  EXPECT_EQ(answer.code(), StatusCode::kFailedPrecondition);
}

TEST(Submit, ARequestIdThatIsNoUuidIsRefused) {
  CoreFixture fixture;
  v1::SubmitSweepRequest request = SubmitRequest(1, 1);
  request.set_request_id("1");
  Answer<v1::SubmitSweepResponse> answer;

  fixture.core().SubmitSweep(request, "cli:test", answer.reply());

  EXPECT_EQ(answer.code(), StatusCode::kInvalidArgument);
}

TEST(Submit, LabelsAndNotesThatMoveTheCursorAreRefused) {
  CoreFixture fixture;
  v1::SubmitSweepRequest labelled = SubmitRequest(1, 1);
  (*labelled.mutable_labels())["a\x1b[2J"] = "1";
  v1::SubmitSweepRequest noted = SubmitRequest(1, 1);
  noted.set_note("\x1b[2J");
  for (const v1::SubmitSweepRequest& request : {labelled, noted}) {
    Answer<v1::SubmitSweepResponse> answer;
    fixture.core().SubmitSweep(request, "cli:test", answer.reply());
    EXPECT_EQ(answer.code(), StatusCode::kInvalidArgument);
  }
}

TEST(Submit, IsAudited) {
  CoreFixture fixture;
  const auto agent = fixture.Attach(1);
  fixture.Submit(1);

  EXPECT_EQ(fixture.store().num_audits(), 1u);
}

TEST(Plan, SaysCellsBlocksTimeAndWhatTheTestsNeed) {
  CoreFixture fixture;
  const auto agent = fixture.Attach(1);
  v1::PlanSweepRequest request;
  request.mutable_sweep()->set_yaml(SweepYaml(3));
  Answer<v1::Plan> answer;

  fixture.core().PlanSweep(request, answer.reply());
  fixture.Run();

  ASSERT_TRUE(answer.ok());
  const v1::Plan& plan = **answer.result;
  ASSERT_EQ(plan.hosts_size(), 1);
  EXPECT_EQ(plan.hosts(0).cells(), 2u);
  EXPECT_EQ(plan.hosts(0).blocks(), 3u);
  EXPECT_EQ(plan.hosts(0).trials(), 6u);
  EXPECT_GE(plan.hosts(0).expected_ns(), 6 * Milliseconds(200).count());
  EXPECT_TRUE(plan.hosts(0).is_connected());
  ASSERT_EQ(plan.notes_size(), 1);
  EXPECT_EQ(plan.notes(0), "6 blocks are needed for a verdict at 0.05; this plan has 3");
  EXPECT_TRUE(fixture.store().runs().empty());
}

TEST(Plan, WithoutHostsSaysSo) {
  CoreFixture fixture;
  v1::PlanSweepRequest request;
  request.mutable_sweep()->set_yaml(SweepYaml(6));
  Answer<v1::Plan> answer;

  fixture.core().PlanSweep(request, answer.reply());
  fixture.Run();

  ASSERT_TRUE(answer.ok());
  EXPECT_EQ((*answer.result)->hosts_size(), 0);
  ASSERT_EQ((*answer.result)->notes_size(), 1);
  EXPECT_NE((*answer.result)->notes(0).find("start pipeyard-agent"), std::string::npos);
}

TEST(ListRuns, PagesNewestFirst) {
  CoreFixture fixture;
  const auto agent = fixture.Attach(1);
  std::vector<std::string> submitted;
  for (uint32_t n = 1; n <= 5; ++n) submitted.insert(submitted.begin(), fixture.Submit(n));

  std::vector<std::string> listed;
  v1::ListRunsRequest request;
  request.set_page_size(2);
  for (int page = 0; page < 10; ++page) {
    Answer<v1::ListRunsResponse> answer;
    fixture.core().ListRuns(request, answer.reply());
    fixture.Run();
    ASSERT_TRUE(answer.ok());
    for (const v1::RunSummary& run : (*answer.result)->runs()) listed.push_back(run.run_id());
    request.set_page_token((*answer.result)->next_page_token());
    if (request.page_token().empty()) break;
  }

  EXPECT_EQ(listed, submitted);
  request.set_page_token("nonsense");
  Answer<v1::ListRunsResponse> answer;
  fixture.core().ListRuns(request, answer.reply());
  fixture.Run();
  EXPECT_EQ(answer.code(), StatusCode::kInvalidArgument);
}

TEST(GetRun, HasCellsTrialsAttemptsAndTheirMetrics) {
  CoreFixture fixture;
  const auto agent = fixture.Attach(1);
  const std::string run_id = fixture.Submit(1, 2);
  agent->Finish(*agent->LastAssign(), v1::OUTCOME_VOID);
  fixture.Run();
  fixture.WorkOff(*agent);

  Answer<v1::Run> answer;
  fixture.core().GetRun(ForRun("latest"), answer.reply());
  fixture.Run();

  ASSERT_TRUE(answer.ok());
  const v1::Run& run = **answer.result;
  EXPECT_EQ(run.summary().run_id(), run_id);
  EXPECT_EQ(run.summary().state(), "finished");
  EXPECT_EQ(run.exit_status(), 0u);
  EXPECT_EQ(run.compare_factor(), "writers");
  ASSERT_EQ(run.cells_size(), 2);
  EXPECT_EQ(run.cells(0).variant_text(), "writers=1");
  int num_attempts = 0, num_void = 0;
  for (const v1::Cell& cell : run.cells()) {
    EXPECT_EQ(cell.state(), "complete");
    for (const v1::Trial& trial : cell.trials()) {
      EXPECT_EQ(trial.state(), "done");
      for (const v1::Attempt& attempt : trial.attempts()) {
        ++num_attempts;
        if (attempt.outcome() == "void") {
          ++num_void;
          EXPECT_EQ(attempt.reason(), "test");
        } else {
          EXPECT_EQ(attempt.metrics_size(), 7);
        }
      }
    }
  }
  EXPECT_EQ(num_attempts, 5);
  EXPECT_EQ(num_void, 1);
}

TEST(GetRun, UnknownIsNotFound) {
  CoreFixture fixture;
  Answer<v1::Run> answer;

  fixture.core().GetRun(ForRun("nothing"), answer.reply());
  fixture.Run();

  EXPECT_EQ(answer.code(), StatusCode::kNotFound);
}

TEST(Watch, SendsPresentProgressThenChangesThenTheEnd) {
  CoreFixture fixture;
  const auto agent = fixture.Attach(1);
  const std::string run_id = fixture.Submit(1, 3);
  Watched watched;
  watched.Start(fixture, run_id);
  fixture.Run();
  ASSERT_EQ(watched.progress.size(), 1u);
  EXPECT_EQ(watched.progress[0].summary().state(), "running");

  fixture.Advance(Seconds(1));
  agent->Finish(*agent->LastAssign(), v1::OUTCOME_OK);
  fixture.Run();
  ASSERT_EQ(watched.progress.size(), 2u);
  EXPECT_EQ(watched.progress[1].summary().trials_done(), 1u);

  fixture.WorkOff(*agent);
  ASSERT_TRUE(watched.end.has_value());
  EXPECT_TRUE(watched.end->ok());
  EXPECT_EQ(watched.progress.back().summary().state(), "finished");
  EXPECT_EQ(watched.progress.back().exit_status(), 0u);
}

TEST(Watch, ChangesWithin200msAreToldOnce) {
  CoreFixture fixture;
  const auto agent = fixture.Attach(1);
  Watched watched;
  watched.Start(fixture, fixture.Submit(1, 6));
  fixture.Run();
  for (int i = 0; i < 5; ++i) {
    agent->Finish(*agent->LastAssign(), v1::OUTCOME_OK);
    fixture.Run();
  }
  EXPECT_EQ(watched.progress.size(), 1u);

  fixture.Advance(Milliseconds(250));

  ASSERT_EQ(watched.progress.size(), 2u);
  EXPECT_EQ(watched.progress[1].summary().trials_done(), 5u);
}

TEST(Watch, TheEndIsToldOnlyWhenItIsCommitted) {
  CoreFixture fixture;
  const auto agent = fixture.Attach(1);
  const std::string run_id = fixture.Submit(1, 1);
  Watched early, late;
  early.Start(fixture, run_id);
  fixture.Run();
  agent->Finish(*agent->LastAssign(), v1::OUTCOME_OK);
  fixture.Run();
  agent->Finish(*agent->LastAssign(), v1::OUTCOME_OK);

  fixture.RunWithoutCommits();
  late.Start(fixture, run_id);
  fixture.RunWithoutCommits();
  EXPECT_FALSE(early.end.has_value());
  EXPECT_FALSE(late.end.has_value());

  fixture.Run();
  for (const Watched* watched : {&early, &late}) {
    ASSERT_TRUE(watched->end.has_value());
    EXPECT_EQ(watched->progress.back().summary().state(), "finished");
  }
}

TEST(Watch, AnUnknownRunIsNotFoundAndAStoppedWatchIsQuiet) {
  CoreFixture fixture;
  const auto agent = fixture.Attach(1);
  const std::string run_id = fixture.Submit(1, 1);
  Watched unknown, stopped;
  unknown.Start(fixture, "nothing");
  stopped.Start(fixture, run_id);
  fixture.Run();
  ASSERT_TRUE(unknown.end.has_value());
  EXPECT_EQ(unknown.end->code(), StatusCode::kNotFound);

  ASSERT_TRUE(stopped.id.has_value());
  fixture.core().StopWatching(*stopped.id);
  fixture.Run();
  fixture.WorkOff(*agent);

  EXPECT_EQ(stopped.progress.size(), 1u);
  EXPECT_FALSE(stopped.end.has_value());
}

TEST(Cancel, EndsTheRunAndIsIdempotent) {
  CoreFixture fixture;
  const auto agent = fixture.Attach(1);
  v1::CancelRunRequest request;
  request.set_run(fixture.Submit(1, 2));

  for (int i = 0; i < 2; ++i) {
    Answer<v1::RunProgress> answer;
    fixture.core().CancelRun(request, "cli:test", answer.reply());
    fixture.Run();
    ASSERT_TRUE(answer.ok());
    EXPECT_EQ((*answer.result)->summary().state(), "canceled");
    EXPECT_EQ((*answer.result)->exit_status(), 6u);
  }
}

TEST(Cancel, ARunThatHasFinishedIsAFailedPrecondition) {
  CoreFixture fixture;
  const auto agent = fixture.Attach(1);
  v1::CancelRunRequest request;
  request.set_run(fixture.Submit(1));
  fixture.WorkOff(*agent);
  Answer<v1::RunProgress> answer;

  fixture.core().CancelRun(request, "cli:test", answer.reply());
  fixture.Run();

  EXPECT_EQ(answer.code(), StatusCode::kFailedPrecondition);
}

TEST(GetHost, ByNameIdAndPrefix) {
  CoreFixture fixture;
  const auto first = fixture.Attach(1);
  const auto second = fixture.Attach(2);
  const std::string id = scheduler::TestHost(1).record.host_id;
  const auto get = [&](const std::string& host) {
    v1::GetHostRequest request;
    request.set_host(host);
    Answer<v1::Host> answer;
    fixture.core().GetHost(request, answer.reply());
    fixture.Run();
    return *answer.result;
  };

  EXPECT_EQ(get("host1")->host_id(), id);
  EXPECT_EQ(get(id)->name(), "host1");
  EXPECT_EQ(get("host1")->state(), "connected");
  EXPECT_EQ(get("0000").status().code(), StatusCode::kInvalidArgument) << "both begin with it";
  EXPECT_EQ(get("vera").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(get("").status().code(), StatusCode::kInvalidArgument);
}

TEST(Diff, ComparesAlongTheFactor) {
  CoreFixture fixture;
  const auto agent = fixture.Attach(1);
  v1::DiffRequest request;
  request.set_a(fixture.Submit(1, 6));
  fixture.WorkOff(*agent);
  Answer<v1::DiffResponse> answer;

  fixture.core().Diff(request, answer.reply());
  fixture.Run();

  ASSERT_TRUE(answer.ok()) << answer.result->status().ToString();
  EXPECT_EQ((*answer.result)->factor(), "writers");
  EXPECT_EQ((*answer.result)->rows_size(), 7);

  for (const char* unknown : {"nothing", "latest/nohost", "latest@novariant"}) {
    request.set_a(unknown);
    Answer<v1::DiffResponse> refused;
    fixture.core().Diff(request, refused.reply());
    fixture.Run();
    EXPECT_EQ(refused.code(), StatusCode::kNotFound) << unknown;
  }
}

}  // namespace
}  // namespace pipeyard::core
