// What the store promises about hosts and runs, tested over SQLite.
#include "storage/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/testing/store_fixture.h"

namespace pipeyard::storage {
namespace {

using ::testing::HasSubstr;

TEST_F(StoreTest, ReopeningKeepsTheIdAndRaisesTheEpoch) {
  const StoreIdentity first = store_->identity();

  Reopen();

  EXPECT_EQ(first.epoch, 1u);
  EXPECT_EQ(store_->identity().store_id, first.store_id);
  EXPECT_EQ(store_->identity().epoch, 2u);
}

TEST_F(StoreTest, ARunComesBackAsItWasInserted) {
  const RunRecord inserted = SampleRun(10, 1, 3);
  MustApply({UpsertHost{SampleHost(1)}, InsertRun{inserted}});
  Reopen();

  const RunRecord run = MustLoadRun(10);

  EXPECT_EQ(run.run_id, inserted.run_id);
  EXPECT_EQ(run.request_id, inserted.request_id);
  EXPECT_EQ(run.sweep, inserted.sweep);
  EXPECT_EQ(run.file_name, inserted.file_name);
  EXPECT_EQ(run.sweep_yaml, inserted.sweep_yaml);
  EXPECT_EQ(run.sets, inserted.sets);
  EXPECT_EQ(run.note, inserted.note);
  EXPECT_EQ(run.labels, inserted.labels);
  EXPECT_EQ(run.priority, inserted.priority);
  EXPECT_EQ(run.order_kind, inserted.order_kind);
  EXPECT_EQ(run.order_seed, inserted.order_seed);
  EXPECT_EQ(run.compare_factor, inserted.compare_factor);
  EXPECT_EQ(run.compare_baseline, inserted.compare_baseline);
  EXPECT_EQ(run.repetitions_min, inserted.repetitions_min);
  EXPECT_EQ(run.repetitions_max, inserted.repetitions_max);
  EXPECT_EQ(run.attempts_limit, inserted.attempts_limit);
  EXPECT_EQ(run.host_wait_ns, inserted.host_wait_ns);
  EXPECT_EQ(run.stops_host_on_crash, inserted.stops_host_on_crash);
  EXPECT_EQ(run.min_change, inserted.min_change);
  EXPECT_EQ(run.trial_timeout_ns, inserted.trial_timeout_ns);
  EXPECT_EQ(run.state, RunState::kQueued);
  EXPECT_EQ(run.created_utc, inserted.created_utc);
  EXPECT_EQ(run.started_utc, 0);
  EXPECT_EQ(run.ended_utc, 0);
  ASSERT_EQ(run.variants.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(run.variants[i].variant_index, inserted.variants[i].variant_index);
    EXPECT_EQ(run.variants[i].variant_id, inserted.variants[i].variant_id);
    EXPECT_EQ(run.variants[i].text, inserted.variants[i].text);
    EXPECT_EQ(run.variants[i].arm, inserted.variants[i].arm);
    EXPECT_EQ(run.variants[i].comparison, inserted.variants[i].comparison);
    EXPECT_EQ(run.variants[i].settings.SerializeAsString(),
              inserted.variants[i].settings.SerializeAsString());
  }
  ASSERT_EQ(run.cells.size(), 2u);
  EXPECT_EQ(run.cells[1].host_id, SampleId(1));
  EXPECT_EQ(run.cells[1].host_name, "host-1");
  EXPECT_EQ(run.cells[1].variant_index, 1u);
  ASSERT_EQ(run.cells[1].trials.size(), 3u);
  ASSERT_EQ(run.cells[1].attempts.size(), 3u);
  EXPECT_EQ(run.cells[1].trials[2].trial_index, 3u);
  EXPECT_EQ(run.cells[1].trials[2].block, 3u);
  EXPECT_EQ(run.cells[1].trials[2].position, 6u);
  EXPECT_EQ(run.cells[1].trials[2].state, TrialState::kPending);
}

TEST_F(StoreTest, ARequestMakesOneRunOnly) {
  MustApply({UpsertHost{SampleHost(1)}, InsertRun{SampleRun(10)}});
  RunRecord again = SampleRun(11);
  again.request_id = "request-10";

  const Status status = Apply({InsertRun{again}});

  EXPECT_EQ(status.code(), StatusCode::kAlreadyExists) << status.ToString();
  EXPECT_EQ(store_->LoadRun(SampleId(11)).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(store_->FindRunByRequest("request-10").value(), SampleId(10));
  EXPECT_EQ(store_->FindRunByRequest("request-11").status().code(), StatusCode::kNotFound);
}

TEST_F(StoreTest, ABatchWithOneBadMutationChangesNothing) {
  const Status status =
      Apply({UpsertHost{SampleHost(1)}, SetRunState{SampleId(99), RunState::kRunning, "", 1}});

  EXPECT_EQ(status.code(), StatusCode::kNotFound) << status.ToString();
  EXPECT_TRUE(MustListHosts().empty());
}

TEST_F(StoreTest, ARunOnAnUnknownHostIsRefused) {
  EXPECT_EQ(Apply({InsertRun{SampleRun(10)}}).code(), StatusCode::kNotFound);
  EXPECT_EQ(store_->LoadRun(SampleId(10)).status().code(), StatusCode::kNotFound);
}

TEST_F(StoreTest, AHostComesBackAndIsBroughtUpToDateExceptForItsLabels) {
  MustApply({UpsertHost{SampleHost(1)}});
  HostRecord later = SampleHost(1);
  later.name = "renamed";
  later.labels = {{"rack", "b"}};
  later.capabilities = {"transfer:kernel"};
  later.facts.set_kernel_release("6.18.0");
  later.first_seen_utc = 9000;
  later.last_seen_utc = 9000;
  MustApply({UpsertHost{later}, TouchHost{SampleId(1), 9500}, TouchHost{SampleId(1), 9400}});

  const std::vector<HostRecord> hosts = MustListHosts();

  ASSERT_EQ(hosts.size(), 1u);
  EXPECT_EQ(hosts[0].host_id, SampleId(1));
  EXPECT_EQ(hosts[0].name, "renamed");
  EXPECT_EQ(hosts[0].labels, SampleHost(1).labels);
  EXPECT_EQ(hosts[0].capabilities, later.capabilities);
  EXPECT_EQ(hosts[0].boot_id, later.boot_id);
  EXPECT_EQ(hosts[0].agent_version, later.agent_version);
  EXPECT_EQ(hosts[0].first_seen_utc, 1000);
  EXPECT_EQ(hosts[0].last_seen_utc, 9500);
  EXPECT_EQ(hosts[0].facts.SerializeAsString(), later.facts.SerializeAsString());
}

TEST_F(StoreTest, TwoHostsMayNotShareAName) {
  MustApply({UpsertHost{SampleHost(1)}});
  HostRecord other = SampleHost(2);
  other.name = "host-1";

  const Status status = Apply({UpsertHost{other}});

  EXPECT_EQ(status.code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(status.message(), HasSubstr("host-1"));
  EXPECT_EQ(Apply({TouchHost{SampleId(2), 1}}).code(), StatusCode::kNotFound);
}

TEST_F(StoreTest, StatesOfRunsCellsAndTrialsAreKept) {
  InsertBasics();
  MustApply({SetRunState{SampleId(10), RunState::kRunning, "", 50},
             SetRunState{SampleId(10), RunState::kRunning, "", 60},
             SetTrialState{SampleTrial(10, 2), TrialState::kFailed},
             SetCellState{SampleId(10), SampleId(1), 1, CellState::kMissing, "host away"},
             SetRunState{SampleId(10), RunState::kFailed, "no cell could start", 70}});

  const RunRecord run = MustLoadRun(10);

  EXPECT_EQ(run.state, RunState::kFailed);
  EXPECT_EQ(run.reason, "no cell could start");
  EXPECT_EQ(run.started_utc, 50);
  EXPECT_EQ(run.ended_utc, 70);
  EXPECT_EQ(run.cells[0].trials[0].state, TrialState::kPending);
  EXPECT_EQ(run.cells[0].trials[1].state, TrialState::kFailed);
  EXPECT_EQ(run.cells[1].state, CellState::kMissing);
  EXPECT_EQ(run.cells[1].reason, "host away");
}

TEST_F(StoreTest, WhatIsNotThereCannotBeChanged) {
  InsertBasics();
  const std::vector<Mutation> cases = {
      SetRunState{SampleId(99), RunState::kRunning, "", 1},
      SetCellState{SampleId(10), SampleId(1), 7, CellState::kComplete, ""},
      SetTrialState{SampleTrial(10, 9), TrialState::kDone},
      InsertAttempt{SampleTrial(99), SampleAttempt(101)},
      EndAttempt{SampleId(999), Outcome::kOk, "", "", 1},
      StoreFrame{SampleFrame(999, 1, true), 1},
  };
  for (const Mutation& mutation : cases) {
    EXPECT_EQ(Apply({mutation}).code(), StatusCode::kNotFound) << mutation.index();
  }
}

TEST_F(StoreTest, AuditEntriesAreAccepted) {
  MustApply({Audit{1, "cli:me@here", "run.cancel", SampleId(10), ""}});
}

TEST_F(StoreTest, ActiveRunsAreThoseThatAreNotTerminalWithWhatTheirOpenAttemptsMeasured) {
  InsertBasics();
  MustApply({InsertRun{SampleRun(11)}, InsertRun{SampleRun(12)},
             SetRunState{SampleId(11), RunState::kCanceled, "", 9},
             SetRunState{SampleId(12), RunState::kPaused, "", 9},
             StoreFrame{SampleFrame(100, 1, false), 1}});

  const Result<std::vector<RunRecord>> runs = store_->LoadActiveRuns();

  ASSERT_TRUE(runs.ok()) << runs.status().ToString();
  ASSERT_EQ(runs->size(), 2u);
  EXPECT_EQ(runs->at(0).run_id, SampleId(10));
  EXPECT_EQ(runs->at(1).run_id, SampleId(12));
  const AttemptRecord& attempt = runs->at(0).cells[0].attempts[0].at(0);
  EXPECT_FALSE(attempt.outcome.has_value());
  EXPECT_EQ(attempt.frames_through, 1u);
  ASSERT_EQ(attempt.metrics.size(), 2u);
  EXPECT_EQ(attempt.metrics[0].name(), "throughput_1");
}

TEST_F(StoreTest, RunsAreListedNewestFirstInPages) {
  MustApply({UpsertHost{SampleHost(1)}, InsertRun{SampleRun(12)}, InsertRun{SampleRun(10)},
             InsertRun{SampleRun(11)}});
  MustApply({SetTrialState{SampleTrial(12), TrialState::kDone},
             SetTrialState{SampleTrial(12, 2), TrialState::kVoid}});

  const std::vector<RunSummaryRecord> first = store_->ListRuns(2, "").value();
  const std::vector<RunSummaryRecord> second = store_->ListRuns(2, first.at(1).run_id).value();

  ASSERT_EQ(first.size(), 2u);
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(first[0].run_id, SampleId(12));
  EXPECT_EQ(first[1].run_id, SampleId(11));
  EXPECT_EQ(second[0].run_id, SampleId(10));
  EXPECT_EQ(first[0].sweep, "prealloc");
  EXPECT_EQ(first[0].state, RunState::kQueued);
  EXPECT_EQ(first[0].hosts, 1u);
  EXPECT_EQ(first[0].variants, 2u);
  EXPECT_EQ(first[0].trials, 4u);
  EXPECT_EQ(first[0].trials_done, 1u);
  EXPECT_EQ(first[0].note, "a note");
  EXPECT_EQ(first[0].labels, SampleRun(12).labels);
  EXPECT_EQ(store_->ListRuns(2, SampleId(99)).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(store_->LoadRunSummary(SampleId(12))->trials, 4u);
}

TEST_F(StoreTest, ReferencesToRunsAreResolved) {
  MustApply({UpsertHost{SampleHost(1)}});
  for (const auto& [id, sweep] : {std::pair("0193aa00-0000-7000-8000-000000000001", "a"),
                                  std::pair("0193aa00-0000-7000-8000-000000000002", "b"),
                                  std::pair("0193bb00-0000-7000-8000-000000000003", "a"),
                                  std::pair("0193cc00-0000-7000-8000-000000000004", "x~1")}) {
    RunRecord run = SampleRun(10);
    run.run_id = id;
    run.request_id = id;
    run.sweep = sweep;
    run.created_utc = 1000 + id[35];
    MustApply({InsertRun{run}});
  }
  struct Case {
    const char* reference;
    const char* run_id;  // or what the message says
    StatusCode code = StatusCode::kOk;
  };
  const std::vector<Case> cases = {
      {"0193aa00-0000-7000-8000-000000000002", "0193aa00-0000-7000-8000-000000000002"},
      {"0193bb", "0193bb00-0000-7000-8000-000000000003"},
      {"0193BB00-0", "0193bb00-0000-7000-8000-000000000003"},
      {"latest", "0193cc00-0000-7000-8000-000000000004"},
      {"a~0", "0193bb00-0000-7000-8000-000000000003"},
      {"a~1", "0193aa00-0000-7000-8000-000000000001"},
      {"x~1~0", "0193cc00-0000-7000-8000-000000000004"},
      {"a~2", "sweep a has 2 runs", StatusCode::kNotFound},
      {"a~x", "no run 'a~x'", StatusCode::kNotFound},
      {"~1", "no run '~1'", StatusCode::kNotFound},
      {"0193aa", "0193aa00-0000-7000-8000-000000000001, 0193aa00", StatusCode::kInvalidArgument},
      {"0193", "...", StatusCode::kInvalidArgument},
      {"0193aa000000", "no run", StatusCode::kNotFound},
      {"", "no run", StatusCode::kNotFound},
      {"nothing", "no run 'nothing'", StatusCode::kNotFound},
      {"0193'; --", "no run", StatusCode::kNotFound},
  };
  for (const Case& c : cases) {
    const Result<std::string> resolved = store_->ResolveRun(c.reference);
    EXPECT_EQ(resolved.status().code(), c.code) << c.reference;
    if (resolved.ok()) {
      EXPECT_EQ(*resolved, c.run_id) << c.reference;
    } else {
      EXPECT_THAT(resolved.status().message(), HasSubstr(c.run_id)) << c.reference;
    }
  }
}

TEST_F(StoreTest, AnEmptyStoreHasNoLatestRun) {
  EXPECT_EQ(store_->ResolveRun("latest").status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(store_->ListRuns(10, "")->empty());
  EXPECT_TRUE(store_->LoadActiveRuns()->empty());
}

TEST_F(StoreTest, RunsThatAreGivenWronglyAreRefused) {
  MustApply({UpsertHost{SampleHost(1)}});
  RunRecord twice_trial = SampleRun(10);
  twice_trial.cells[0].trials[1].trial_index = 1;
  RunRecord twice_cell = SampleRun(10);
  twice_cell.cells[1].variant_index = 0;
  RunRecord stray_cell = SampleRun(10);
  stray_cell.cells[1].variant_index = 9;
  RunRecord twice_variant = SampleRun(10);
  twice_variant.variants[1].variant_index = 0;
  RunRecord valueless = SampleRun(10);
  valueless.variants[0].settings.mutable_settings(0)->clear_value();
  RunRecord nameless = SampleRun(10);
  nameless.run_id.clear();
  for (const RunRecord& run :
       {twice_trial, twice_cell, stray_cell, twice_variant, valueless, nameless}) {
    const Status status = Apply({InsertRun{run}});
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.ToString();
  }
}

TEST_F(StoreTest, ARunOfTenThousandTrialsIsStoredAndReadBack) {
  std::vector<Mutation> hosts;
  for (uint64_t host = 1; host <= 50; ++host) hosts.push_back(UpsertHost{SampleHost(host)});
  MustApply(hosts);
  MustApply({InsertRun{SampleRun(1000, 50, 100)}});

  EXPECT_EQ(store_->LoadRunSummary(SampleId(1000))->trials, 10'000u);
  EXPECT_EQ(MustLoadRun(1000).cells.size(), 100u);
}

}  // namespace
}  // namespace pipeyard::storage
