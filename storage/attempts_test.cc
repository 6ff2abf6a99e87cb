// What the store promises about attempts and their frames, tested over SQLite.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "storage/store.h"
#include "storage/testing/store_fixture.h"

namespace pipeyard::storage {
namespace {

using ::testing::ElementsAre;

TEST_F(StoreTest, AnAttemptIsInsertedOnceAndItsNumberIsItsOwn) {
  InsertBasics();

  EXPECT_TRUE(Apply({InsertAttempt{SampleTrial(10), SampleAttempt(100)}}).ok());
  EXPECT_EQ(Apply({InsertAttempt{SampleTrial(10), SampleAttempt(101, 1)}}).code(),
            StatusCode::kAlreadyExists);
  EXPECT_EQ(Apply({InsertAttempt{SampleTrial(10, 2), SampleAttempt(100)}}).code(),
            StatusCode::kAlreadyExists);
  EXPECT_TRUE(store_->KnowsAttempt(SampleId(100)).value());
  EXPECT_FALSE(store_->KnowsAttempt(SampleId(101)).value());
}

TEST_F(StoreTest, ARefusedAttemptIsRemovedAndItsNumberFreeAgain) {
  InsertBasics();

  MustApply({RemoveAttempt{SampleId(100)}, RemoveAttempt{SampleId(100)},
             InsertAttempt{SampleTrial(10), SampleAttempt(101, 1)}});

  EXPECT_FALSE(store_->KnowsAttempt(SampleId(100)).value());
  EXPECT_TRUE(store_->KnowsAttempt(SampleId(101)).value());
}

TEST_F(StoreTest, AnAttemptWithResultsIsNotRemoved) {
  InsertBasics();
  MustApply({StoreFrame{SampleFrame(100, 1, false), 1}});

  EXPECT_EQ(Apply({RemoveAttempt{SampleId(100)}}).code(), StatusCode::kFailedPrecondition);
}

TEST_F(StoreTest, OnlyTheFirstEndOfAnAttemptCounts) {
  InsertBasics();
  MustApply({EndAttempt{SampleId(100), Outcome::kTimeout, "hung", "it hung", 70}});
  MustApply({EndAttempt{SampleId(100), Outcome::kOk, "", "", 80}});

  const AttemptRecord attempt = MustLoadRun(10).cells[0].attempts[0].at(0);

  EXPECT_EQ(attempt.outcome, Outcome::kTimeout);
  EXPECT_EQ(attempt.reason_code, "hung");
  EXPECT_EQ(attempt.reason_text, "it hung");
  EXPECT_EQ(attempt.ended_utc, 70);
}

TEST_F(StoreTest, ALostAttemptGivesWayToItsLateOkOnly) {
  InsertBasics();
  MustApply({EndAttempt{SampleId(100), Outcome::kLost, "host_away", "", 70},
             EndAttempt{SampleId(100), Outcome::kFailed, "killed", "", 80}});
  const AttemptRecord lost = MustLoadRun(10).cells[0].attempts[0].at(0);
  MustApply({EndAttempt{SampleId(100), Outcome::kOk, "", "", 90},
             EndAttempt{SampleId(100), Outcome::kLost, "host_away", "", 95}});
  const AttemptRecord found = MustLoadRun(10).cells[0].attempts[0].at(0);

  EXPECT_EQ(lost.outcome, Outcome::kLost);
  EXPECT_EQ(lost.ended_utc, 70);
  EXPECT_EQ(found.outcome, Outcome::kOk);
  EXPECT_EQ(found.reason_code, "");
  EXPECT_EQ(found.ended_utc, 90);
}

TEST_F(StoreTest, FramesComeBackAsWhatTheAttemptMeasured) {
  InsertBasics();
  MustApply({StoreFrame{SampleFrame(100, 1, false), 4000},
             StoreFrame{SampleFrame(100, 2, true), 4001},
             EndAttempt{SampleId(100), Outcome::kOk, "", "", 5000}});
  Reopen();

  const std::vector<AttemptData> data = MustLoadData(10);

  ASSERT_EQ(data.size(), 1u);
  const AttemptData& entry = data[0];
  EXPECT_EQ(entry.trial, SampleTrial(10));
  EXPECT_EQ(entry.block, 1u);
  EXPECT_TRUE(entry.emulated);
  EXPECT_EQ(entry.attempt.attempt_id, SampleId(100));
  EXPECT_EQ(entry.attempt.number, 1u);
  EXPECT_EQ(entry.attempt.epoch, 1u);
  EXPECT_EQ(entry.attempt.leased_utc, 3000);
  EXPECT_EQ(entry.attempt.outcome, Outcome::kOk);
  EXPECT_EQ(entry.attempt.elapsed_ns, 11'000'000'000);
  EXPECT_EQ(entry.attempt.boot_id, "b0000000-0000-4000-8000-000000000001");
  EXPECT_EQ(entry.attempt.frames_through, 2u);
  ASSERT_EQ(entry.metrics.size(), 4u);
  ASSERT_EQ(entry.counters.size(), 2u);
  ASSERT_EQ(entry.placements.size(), 2u);
  ASSERT_EQ(entry.self_checks.size(), 2u);
  EXPECT_EQ(entry.inert_switches,
            (std::vector<std::string>{"engine.interleave_bulk_1", "engine.interleave_bulk_2"}));
  const v1::Frame sent = SampleFrame(100, 1, false);
  EXPECT_EQ(entry.metrics[0].SerializeAsString(), sent.metrics(0).SerializeAsString());
  EXPECT_EQ(entry.metrics[1].SerializeAsString(), sent.metrics(1).SerializeAsString());
  EXPECT_EQ(entry.counters[0].SerializeAsString(), sent.counters(0).SerializeAsString());
  EXPECT_EQ(entry.placements[0].memory(), sent.placements(0).memory());
  EXPECT_EQ(entry.placements[0].evidence(), "move_pages");
  EXPECT_EQ(entry.placements[0].pages_per_node().at(1), 20);
  EXPECT_EQ(entry.self_checks[0].SerializeAsString(), sent.self_checks(0).SerializeAsString());
}

TEST_F(StoreTest, RepeatedFramesChangeNothing) {
  InsertBasics();
  MustApply({StoreFrame{SampleFrame(100, 1, false), 4000}});
  v1::Frame other_content = SampleFrame(100, 1, false);
  other_content.mutable_metrics(0)->set_value(1);
  other_content.mutable_metrics(1)->set_name("latency_p50");

  MustApply({StoreFrame{SampleFrame(100, 1, false), 5000}, StoreFrame{other_content, 5000},
             EndAttempt{SampleId(100), Outcome::kFailed, "killed", "", 6000}});

  const std::vector<AttemptData> data = MustLoadData(10);
  ASSERT_EQ(data.size(), 1u);
  EXPECT_EQ(data[0].attempt.frames_through, 1u);
  ASSERT_EQ(data[0].metrics.size(), 2u);
  EXPECT_EQ(data[0].metrics[0].value(), SampleFrame(100, 1, false).metrics(0).value());
  EXPECT_EQ(data[0].metrics[1].name(), "latency_p999_1");
}

TEST_F(StoreTest, FramesThroughStopsAtTheFirstGap) {
  InsertBasics();
  const auto frames_through = [&] {
    return MustLoadRun(10).cells[0].attempts[0].at(0).frames_through;
  };

  MustApply({StoreFrame{SampleFrame(100, 3, true), 1}});
  EXPECT_EQ(frames_through(), 0u);
  MustApply({StoreFrame{SampleFrame(100, 1, false), 1}});
  EXPECT_EQ(frames_through(), 1u);
  MustApply({StoreFrame{SampleFrame(100, 2, false), 1}});
  EXPECT_EQ(frames_through(), 3u);
}

TEST_F(StoreTest, MalformedFramesAreRefused) {
  InsertBasics();
  v1::Frame final_without_end = SampleFrame(100, 1, true);
  final_without_end.clear_end();

  EXPECT_EQ(Apply({StoreFrame{SampleFrame(100, 0, false), 1}}).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(Apply({StoreFrame{final_without_end, 1}}).code(), StatusCode::kInvalidArgument);
}

TEST_F(StoreTest, AValueThatIsNoNumberIsStoredAbsent) {
  InsertBasics();
  v1::Frame frame = SampleFrame(100, 1, true);
  frame.mutable_metrics(0)->set_value(std::numeric_limits<double>::quiet_NaN());
  MustApply({StoreFrame{frame, 1}, EndAttempt{SampleId(100), Outcome::kOk, "", "", 2}});

  const std::vector<AttemptData> data = MustLoadData(10);

  EXPECT_FALSE(data.at(0).metrics.at(0).has_value());
  EXPECT_EQ(data.at(0).metrics.at(0).absent_reason(), "not-a-number");
}

TEST_F(StoreTest, OrphansAreSetAsideAndAreNoAttempts) {
  MustApply({StoreOrphan{SampleId(5), SampleFrame(500, 1, true), 1},
             StoreOrphan{SampleId(5), SampleFrame(500, 1, true), 2}});

  EXPECT_FALSE(store_->KnowsAttempt(SampleId(500)).value());
}

TEST_F(StoreTest, EndedAttemptsComeByHostVariantTrialAndNumber) {
  MustApply({UpsertHost{SampleHost(2)}, UpsertHost{SampleHost(1)}, InsertRun{SampleRun(10, 2)}});
  const auto attempt = [&](uint64_t id, uint64_t host, uint32_t variant, uint32_t trial,
                           uint32_t number) {
    MustApply(
        {InsertAttempt{{SampleId(10), SampleId(host), variant, trial}, SampleAttempt(id, number)},
         EndAttempt{SampleId(id), Outcome::kOk, "", "", 1}});
  };
  attempt(106, 2, 0, 1, 1);
  attempt(105, 1, 1, 2, 1);
  attempt(104, 1, 1, 1, 1);
  attempt(102, 1, 0, 1, 2);
  attempt(101, 1, 0, 1, 1);
  MustApply({InsertAttempt{{SampleId(10), SampleId(1), 0, 2}, SampleAttempt(199)}});

  std::vector<std::string> ids;
  for (const AttemptData& entry : MustLoadData(10)) ids.push_back(entry.attempt.attempt_id);

  EXPECT_THAT(
      ids, ElementsAre(SampleId(101), SampleId(102), SampleId(104), SampleId(105), SampleId(106)));
}

}  // namespace
}  // namespace pipeyard::storage
