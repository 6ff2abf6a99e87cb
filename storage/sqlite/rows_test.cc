// What lies behind the interface: rows that are stored once, and what SQL readers of the file find.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "base/executor.h"
#include "storage/sqlite/connection.h"
#include "storage/sqlite/facts.h"
#include "storage/sqlite/settings_rows.h"
#include "storage/sqlite/sqlite_store.h"
#include "storage/testing/fixtures.h"

namespace pipeyard::storage {
namespace {

class RowsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    store_ = OpenStore(folder_.path(), clock_).value();
    reader_ = Connection::Open(folder_.StorePath(), Connection::Mode::kReadOnly, "").value();
  }

  void MustApply(std::vector<Mutation> mutations) {
    const Status status = store_->Apply(mutations);
    ASSERT_TRUE(status.ok()) << status.ToString();
  }

  // Rows as "a|b" lines, NULL as "-".
  std::string Rows(const char* sql) {
    Query query(*reader_, sql);
    std::string text;
    while (query.Next()) {
      for (int column = 0; column < query.num_columns(); ++column) {
        if (column > 0) text += "|";
        text += query.IsNull(column) ? "-" : query.Text(column);
      }
      text += "\n";
    }
    EXPECT_TRUE(query.status().ok()) << query.status().ToString();
    return text;
  }

  TemporaryFolder folder_;
  FakeClock clock_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Connection> reader_;
};

TEST_F(RowsTest, EqualFactsOfManyHostsAreOneRowAndEachChangeIsNoted) {
  HostRecord upgraded = SampleHost(1);
  upgraded.facts.set_kernel_release("6.18.0");
  upgraded.last_seen_utc = 2000;
  HostRecord back = SampleHost(1);
  back.last_seen_utc = 3000;
  MustApply({UpsertHost{SampleHost(1)}, UpsertHost{SampleHost(2)}, UpsertHost{SampleHost(1)},
             UpsertHost{upgraded}, UpsertHost{upgraded}, UpsertHost{back}});

  EXPECT_EQ(Rows("SELECT count(*) FROM facts"), "2\n");
  EXPECT_EQ(Rows("SELECT since_utc, json_extract(content, '$.kernel_release') FROM host_facts "
                 "JOIN facts USING (facts) JOIN hosts USING (host) WHERE name = 'host-1' "
                 "ORDER BY host_facts"),
            "1000|6.1.0-18-amd64\n2000|6.18.0\n3000|6.1.0-18-amd64\n");
}

TEST_F(RowsTest, EachBootOfAHostIsOneRow) {
  HostRecord rebooted = SampleHost(1);
  rebooted.boot_id = "b0000000-0000-4000-8000-000000000002";
  MustApply({UpsertHost{SampleHost(1)}, UpsertHost{rebooted}, UpsertHost{SampleHost(1)}});

  EXPECT_EQ(Rows("SELECT count(*) FROM boots"), "2\n");
}

TEST_F(RowsTest, AVariantOfSeveralRunsIsOneRowWithSettingsThatCanBeQueried) {
  MustApply({UpsertHost{SampleHost(1)}, InsertRun{SampleRun(10)}, InsertRun{SampleRun(11)}});

  EXPECT_EQ(Rows("SELECT count(*) FROM variants"), "2\n");
  EXPECT_EQ(Rows("SELECT count(*) FROM settings"), "2\n");
  EXPECT_EQ(Rows("SELECT name, kind, value FROM setting_values JOIN run_variants USING (settings) "
                 "JOIN runs USING (run) WHERE run_id LIKE '%a' AND arm = 'prealloc' ORDER BY name"),
            "engine.page_cache|text|prealloc\n"
            "engine.topology|json|{\"nodes\":[{\"cpus\":2}]}\n"
            "fraction|number|2.0\n"
            "poll|flag|1\n"
            "writers|integer|2\n");
  EXPECT_EQ(Rows("SELECT text FROM settings WHERE text LIKE '%=text:prealloc%'"),
            "workload=transfer\nworkload_version=1\ntarget=engine\n"
            "engine.page_cache=text:prealloc\n"
            "engine.topology=json:{\"nodes\":[{\"cpus\":2}]}\n"
            "fraction=number:2\npoll=flag:true\nwriters=integer:2\n\n");
}

TEST_F(RowsTest, ANewSwitchKeepsTheVariantAndHasSettingsOfItsOwn) {
  RunRecord later = SampleRun(11);
  v1::Setting& added = *later.variants[0].settings.add_settings();
  added.set_name("zero_copy");
  added.mutable_value()->set_flag(false);
  MustApply({UpsertHost{SampleHost(1)}, InsertRun{SampleRun(10)}, InsertRun{later}});

  EXPECT_EQ(Rows("SELECT count(*) FROM variants"), "2\n");
  EXPECT_EQ(Rows("SELECT count(*) FROM settings"), "3\n");
  EXPECT_EQ(store_->LoadRun(SampleId(10))->variants[0].settings.settings_size(), 5);
  EXPECT_EQ(store_->LoadRun(SampleId(11))->variants[0].settings.settings_size(), 6);
}

TEST_F(RowsTest, AFrameIsUnpackedIntoRowsWithWhatTheAgentReported) {
  MustApply({UpsertHost{SampleHost(1)}, InsertRun{SampleRun(10)},
             InsertAttempt{SampleTrial(10), SampleAttempt(100)},
             StoreFrame{SampleFrame(100, 1, true), 4000},
             EndAttempt{SampleId(100), Outcome::kVoid, "interference", "steal", 5000}});

  EXPECT_EQ(Rows("SELECT outcome, reason_code, reported_outcome, reported_reason_code, "
                 "final_sequence, agent_started_utc, exit_code FROM attempts"),
            "void|interference|ok||1|4000|0\n");
  EXPECT_EQ(Rows("SELECT metric_id, better, value, absent_reason FROM samples_view "
                 "WHERE host = 'host-1' AND outcome = 'void' ORDER BY metric_id"),
            "transfer:latency_p999_1:ns:p999|lower|-|too-few-operations\n"
            "transfer:throughput_1:B/s:rate|higher|1500000001.0|-\n");
  EXPECT_EQ(Rows("SELECT name, unit, value FROM counter_values JOIN counters USING (counter)"),
            "pages_allocated_locked_1|count|-7\n");
  EXPECT_EQ(Rows("SELECT sequence, name, unit, total FROM histograms"), "1|latency|ns|4\n");
  EXPECT_EQ(Rows("SELECT memory, evidence, node, pages FROM placements ORDER BY node"),
            "engine-pages-1|move_pages|0|10\nengine-pages-1|move_pages|1|20\n");
  EXPECT_EQ(Rows("SELECT name, passed, expected, measured, tolerance FROM self_checks"),
            "closed-loop-latency-1|1|1.0|1.01|0.05\n");
  EXPECT_EQ(Rows("SELECT name, as_written, resolved FROM resolved_values"),
            "writers-1|50%cpus|1\n");
  EXPECT_EQ(Rows("SELECT name FROM inert_switches"), "engine.interleave_bulk_1\n");
  EXPECT_EQ(Rows("SELECT stream, omitted_bytes, content FROM outputs"),
            "stderr|0|" + std::string("a\0b\xff", 4) + "\n");
  EXPECT_EQ(Rows("SELECT sequence, received_utc FROM frames"), "1|4000\n");
}

TEST_F(RowsTest, RepeatedFramesAddNoRows) {
  MustApply({UpsertHost{SampleHost(1)}, InsertRun{SampleRun(10)},
             InsertAttempt{SampleTrial(10), SampleAttempt(100)}});
  for (int time = 0; time < 3; ++time) {
    MustApply({StoreFrame{SampleFrame(100, 1, true), 4000}});
  }

  EXPECT_EQ(Rows("SELECT (SELECT count(*) FROM frames), (SELECT count(*) FROM samples), "
                 "(SELECT count(*) FROM histograms), (SELECT count(*) FROM outputs)"),
            "1|2|1|1\n");
}

TEST_F(RowsTest, ALostAttemptThatWasFoundTellsSo) {
  MustApply({UpsertHost{SampleHost(1)}, InsertRun{SampleRun(10)},
             InsertAttempt{SampleTrial(10), SampleAttempt(100)},
             EndAttempt{SampleId(100), Outcome::kLost, "host_away", "", 70},
             EndAttempt{SampleId(100), Outcome::kOk, "", "", 90}});

  EXPECT_EQ(Rows("SELECT outcome, lost_utc, ended_utc FROM attempts"), "ok|70|90\n");
}

TEST_F(RowsTest, OrphansAndAuditAreKeptAsGiven) {
  MustApply({StoreOrphan{SampleId(5), SampleFrame(500, 1, true), 1},
             StoreOrphan{SampleId(5), SampleFrame(500, 1, true), 2},
             StoreOrphan{SampleId(5), SampleFrame(500, 2, true), 3},
             Audit{1, "cli:me@here", "run.cancel", SampleId(10), "detail"}});

  EXPECT_EQ(
      Rows("SELECT host_id, attempt_id, sequence, received_utc FROM orphans"),
      SampleId(5) + "|" + SampleId(500) + "|1|1\n" + SampleId(5) + "|" + SampleId(500) + "|2|3\n");
  v1::Frame kept;
  const std::string bytes = Rows("SELECT frame FROM orphans WHERE sequence = 2");
  ASSERT_TRUE(kept.ParseFromString(bytes.substr(0, bytes.size() - 1)));
  EXPECT_EQ(kept.sequence(), 2u);
  EXPECT_EQ(Rows("SELECT at_utc, actor, action, subject, detail FROM audit"),
            "1|cli:me@here|run.cancel|" + SampleId(10) + "|detail\n");
}

TEST_F(RowsTest, NoReferenceHangsInTheAir) {
  MustApply({UpsertHost{SampleHost(1)}, InsertRun{SampleRun(10)},
             InsertAttempt{SampleTrial(10), SampleAttempt(100)},
             StoreFrame{SampleFrame(100, 1, true), 4000}});

  EXPECT_EQ(Rows("PRAGMA foreign_key_check"), "");
}

TEST_F(RowsTest, ReadersSeeWholeBatchesWhileTheWriterGoesOn) {
  MustApply({UpsertHost{SampleHost(1)}, InsertRun{SampleRun(10)},
             InsertAttempt{SampleTrial(10), SampleAttempt(100)}});
  std::atomic<bool> is_done{false};
  std::atomic<int> num_torn{0};
  std::atomic<int> num_reads{0};
  std::vector<std::unique_ptr<SerialExecutor>> readers;
  // More readers than pooled connections.
  for (int i = 0; i < 6; ++i) {
    readers.push_back(std::make_unique<SerialExecutor>("reader"));
    readers.back()->Post([&] {
      do {
        const Result<RunRecord> run = store_->LoadRun(SampleId(10));
        ++num_reads;
        if (!run.ok()) {
          ++num_torn;
          continue;
        }
        const uint64_t frames = run->cells[0].attempts[0].at(0).frames_through;
        if (run->reason != (frames == 0 ? "" : std::to_string(frames))) ++num_torn;
      } while (!is_done);
    });
  }

  for (uint64_t sequence = 1; sequence <= 200; ++sequence) {
    MustApply({StoreFrame{SampleFrame(100, sequence, false), 1},
               SetRunState{SampleId(10), RunState::kRunning, std::to_string(sequence), 1}});
  }
  is_done = true;
  readers.clear();

  EXPECT_EQ(num_torn, 0);
  EXPECT_GE(num_reads, 6);
}

TEST_F(RowsTest, ABusyDatabaseIsUnavailableAndTheBatchCanBeTriedAgain) {
  std::unique_ptr<Connection> shell =
      Connection::Open(folder_.StorePath(), Connection::Mode::kReadWrite, "").value();
  ASSERT_TRUE(shell->Execute("BEGIN IMMEDIATE").ok());

  const std::vector<Mutation> batch = {UpsertHost{SampleHost(1)}};
  const Status busy = store_->Apply(batch);
  ASSERT_TRUE(shell->Execute("ROLLBACK").ok());

  EXPECT_EQ(busy.code(), StatusCode::kUnavailable) << busy.ToString();
  EXPECT_TRUE(store_->Apply(batch).ok());
}

TEST(Facts, ComeBackFromTheirText) {
  const v1::HostFacts facts = SampleHost(1).facts;

  const Result<v1::HostFacts> back = FactsFromJson(FactsToJson(facts));

  ASSERT_TRUE(back.ok()) << back.status().ToString();
  EXPECT_EQ(back->SerializeAsString(), facts.SerializeAsString());
}

TEST(Facts, HaveOneTextHoweverTheyWereBuilt) {
  v1::HostFacts forward;
  v1::HostFacts backward;
  for (int i = 0; i < 20; ++i) {
    (*forward.mutable_more())["k" + std::to_string(i)] = "v";
    (*backward.mutable_more())["k" + std::to_string(19 - i)] = "v";
  }
  EXPECT_EQ(FactsToJson(forward), FactsToJson(backward));
}

TEST(Facts, ThatAreNoUtf8AreStillText) {
  v1::HostFacts facts;
  (*facts.mutable_more())["dmi"] = "caf\xe9";

  EXPECT_EQ(FactsFromJson(FactsToJson(facts))->more().at("dmi"), "caf\xef\xbf\xbd");
}

TEST(Facts, ThatAreDamagedAreReported) {
  for (const char* text : {"", "{", "{}", "[]", "{\"kernel_release\":1}"}) {
    EXPECT_EQ(FactsFromJson(text).status().code(), StatusCode::kDataLoss) << text;
  }
}

TEST(Settings, NoValueCanLookLikeAnotherSetting) {
  v1::VariantSettings one;
  v1::Setting& sly = *one.add_settings();
  sly.set_name("a");
  sly.mutable_value()->set_text("x\nb=text:y\\");
  v1::VariantSettings two;
  for (const auto& [name, text] : {std::pair("a", "x"), std::pair("b", "y\\")}) {
    v1::Setting& setting = *two.add_settings();
    setting.set_name(name);
    setting.mutable_value()->set_text(text);
  }

  EXPECT_NE(SettingsText(one).value(), SettingsText(two).value());
}

TEST(Settings, GivenTwiceAreRefused) {
  v1::VariantSettings settings;
  for (int i = 0; i < 2; ++i) {
    v1::Setting& setting = *settings.add_settings();
    setting.set_name("a");
    setting.mutable_value()->set_integer(i);
  }
  EXPECT_EQ(SettingsText(settings).status().code(), StatusCode::kInvalidArgument);
}

TEST(Records, NamesOfStatesAreReadBack) {
  for (const RunState state : {RunState::kQueued, RunState::kRunning, RunState::kPaused,
                               RunState::kFinished, RunState::kCanceled, RunState::kFailed}) {
    EXPECT_EQ(ParseRunState(Name(state)), state);
  }
  for (const CellState state : {CellState::kRunning, CellState::kComplete, CellState::kMissing,
                                CellState::kNotApplicable}) {
    EXPECT_EQ(ParseCellState(Name(state)), state);
  }
  for (const TrialState state : {TrialState::kPending, TrialState::kLeased, TrialState::kRunning,
                                 TrialState::kDone, TrialState::kVoid, TrialState::kFailed,
                                 TrialState::kNotApplicable, TrialState::kCanceled}) {
    EXPECT_EQ(ParseTrialState(Name(state)), state);
  }
  for (const Outcome outcome : {Outcome::kOk, Outcome::kVoid, Outcome::kFailed, Outcome::kTimeout,
                                Outcome::kLost, Outcome::kCanceled, Outcome::kNotApplicable}) {
    EXPECT_EQ(ParseOutcome(Name(outcome)), outcome);
  }
  EXPECT_EQ(ParseOutcome("unknown"), std::nullopt);
  EXPECT_EQ(ParseRunState(""), std::nullopt);
}

}  // namespace
}  // namespace pipeyard::storage
