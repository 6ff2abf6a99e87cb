#include "controller/ingest/committer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/testing/fake_store.h"

namespace pipeyard::ingest {
namespace {

using storage::Audit;
using storage::FakeStore;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Transactions = std::vector<std::vector<std::string>>;

Batch BatchOf(const std::vector<std::string>& subjects) {
  Batch batch;
  for (const std::string& subject : subjects) batch.push_back(Audit{1, "test", "", subject, ""});
  return batch;
}

// Store, writer and replies in the hands of the test.
class CommitterTest : public ::testing::Test {
 protected:
  void Make(CommitterOptions options = {}) {
    committer_ = std::make_unique<Committer>(store_, replies_, writer_, options);
  }

  // Appends "NAME:CODE" to replies when it is called.
  Committed Note(const std::string& name) {
    return [this, name](const Status& status) {
      noted_.push_back(name + ":" + (status.ok() ? "OK" : StatusCodeName(status.code())));
    };
  }

  void MustSubmit(const std::string& subject) {
    ASSERT_TRUE(committer_->Submit(BatchOf({subject}), Note(subject)).ok());
  }

  FakeClock clock_;
  FakeExecutor writer_{clock_};
  FakeExecutor replies_{clock_};
  FakeStore store_;
  std::vector<std::string> noted_;
  std::unique_ptr<Committer> committer_;
};

TEST_F(CommitterTest, WhatIsQueuedIsCommittedInOneTransactionInOrder) {
  Make();
  MustSubmit("a");
  MustSubmit("b");
  MustSubmit("c");

  writer_.RunUntilIdle();
  replies_.RunUntilIdle();

  EXPECT_EQ(store_.transactions(), (Transactions{{"a", "b", "c"}}));
  EXPECT_THAT(noted_, ElementsAre("a:OK", "b:OK", "c:OK"));
  EXPECT_EQ(committer_->counts().groups, 1u);
  EXPECT_EQ(committer_->counts().batches, 3u);
  EXPECT_EQ(committer_->counts().mutations, 3u);
  EXPECT_EQ(committer_->fullness(), 0);
}

TEST_F(CommitterTest, NothingIsAcknowledgedBeforeTheCommit) {
  Make();
  MustSubmit("a");

  replies_.RunUntilIdle();
  EXPECT_THAT(noted_, IsEmpty());
  writer_.RunUntilIdle();
  EXPECT_THAT(noted_, IsEmpty());
  replies_.RunUntilIdle();
  EXPECT_THAT(noted_, SizeIs(1));
}

TEST_F(CommitterTest, GroupsAreBounded) {
  CommitterOptions options;
  options.max_group_mutations = 2;
  Make(options);
  for (const char* subject : {"a", "b", "c"}) MustSubmit(subject);
  ASSERT_TRUE(committer_->Submit(BatchOf({"d1", "d2", "d3"}), Note("d")).ok());
  MustSubmit("e");

  writer_.RunUntilIdle();

  EXPECT_EQ(store_.transactions(), (Transactions{{"a", "b"}, {"c"}, {"d1", "d2", "d3"}, {"e"}}));
}

TEST_F(CommitterTest, GroupsAreBoundedInBytes) {
  CommitterOptions options;
  options.max_group_bytes = 3000;
  Make(options);
  storage::StoreFrame large;
  large.frame.add_outputs()->set_data(std::string(2000, 'x'));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(committer_->Submit({large}, nullptr).ok());

  writer_.RunUntilIdle();

  EXPECT_EQ(committer_->counts().groups, 3u);
  EXPECT_EQ(committer_->counts().mutations, 3u);
}

TEST_F(CommitterTest, WhileTheStoreFailsEverythingWaitsInOrderAndIsTriedAgain) {
  for (const StatusCode code : {StatusCode::kUnavailable, StatusCode::kResourceExhausted,
                                StatusCode::kDataLoss, StatusCode::kAborted}) {
    FakeStore store;
    noted_.clear();
    committer_ = std::make_unique<Committer>(store, replies_, writer_, CommitterOptions());
    store.FailNext({Status(code, "for a while"), Status(code, "still"), Status(code, "again")});
    MustSubmit("a");
    writer_.RunUntilIdle();
    MustSubmit("b");
    writer_.RunUntilIdle();
    replies_.RunUntilIdle();

    EXPECT_THAT(noted_, IsEmpty());
    EXPECT_FALSE(committer_->state().is_healthy);
    EXPECT_EQ(committer_->state().failure.message(), "for a while");
    EXPECT_EQ(committer_->state().num_failures, 1u);
    EXPECT_EQ(store.num_calls(), 1);

    writer_.Advance(Seconds(60));
    replies_.RunUntilIdle();

    EXPECT_EQ(store.transactions(), (Transactions{{"a"}, {"b"}})) << StatusCodeName(code);
    EXPECT_THAT(noted_, ElementsAre("a:OK", "b:OK"));
    EXPECT_TRUE(committer_->state().is_healthy);
    EXPECT_EQ(store.num_calls(), 5);
  }
}

TEST_F(CommitterTest, TriesComeAtGrowingDistancesUpToABound) {
  CommitterOptions options;
  options.first_backoff = Seconds(1);
  options.max_backoff = Seconds(3);
  Make(options);
  store_.FailNext(std::vector<Status>(5, Unavailable("busy")));
  MustSubmit("a");
  writer_.RunUntilIdle();

  std::vector<int> calls;
  for (int second = 0; second < 9; ++second) {
    writer_.Advance(Seconds(1));
    calls.push_back(store_.num_calls());
  }

  EXPECT_THAT(calls, ElementsAre(2, 2, 3, 3, 3, 4, 4, 4, 5));
}

TEST_F(CommitterTest, ABatchThatTheStoreRefusesIsReportedAloneAndTheOthersGoOn) {
  for (const StatusCode code : {StatusCode::kAlreadyExists, StatusCode::kInvalidArgument,
                                StatusCode::kNotFound, StatusCode::kInternal}) {
    FakeStore store;
    noted_.clear();
    committer_ = std::make_unique<Committer>(store, replies_, writer_, CommitterOptions());
    store.Poison("bad", Status(code, "refused"));
    MustSubmit("a");
    ASSERT_TRUE(committer_->Submit(BatchOf({"b1", "bad", "b2"}), Note("b")).ok());
    MustSubmit("c");

    writer_.RunUntilIdle();
    replies_.RunUntilIdle();

    EXPECT_EQ(store.transactions(), (Transactions{{"a"}, {"c"}}));
    EXPECT_THAT(noted_, ElementsAre("a:OK", "b:" + StatusCodeName(code), "c:OK"));
    EXPECT_EQ(committer_->counts().refused, 1u);
    EXPECT_TRUE(committer_->state().is_healthy);
  }
}

TEST_F(CommitterTest, AStoreFailureAmongIsolatedBatchesLosesNone) {
  Make();
  store_.Poison("bad", InvalidArgument("refused"));
  for (const char* subject : {"a", "bad", "c"}) MustSubmit(subject);
  // The group is refused for "bad"; then "a" alone; then the disk fails once.
  store_.FailNext({Status::Ok(), Status::Ok(), ResourceExhausted("disk full")});

  writer_.Advance(Seconds(60));
  replies_.RunUntilIdle();

  EXPECT_EQ(store_.transactions(), (Transactions{{"a"}, {"c"}}));
  EXPECT_THAT(noted_, ElementsAre("a:OK", "bad:INVALID_ARGUMENT", "c:OK"));
}

TEST_F(CommitterTest, AFullQueueRefusesAndSaysHowFullItIs) {
  CommitterOptions options;
  options.max_queued_mutations = 4;
  Make(options);
  ASSERT_TRUE(committer_->Submit(BatchOf({"a1", "a2", "a3"}), Note("a")).ok());
  EXPECT_EQ(committer_->fullness(), 0.75);
  MustSubmit("b");

  const Status refused = committer_->Submit(BatchOf({"c"}), Note("c"));
  committer_->SubmitAlways(BatchOf({"d"}), Note("d"));
  const double fullness = committer_->fullness();
  writer_.RunUntilIdle();
  replies_.RunUntilIdle();

  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(fullness, 1.25);
  EXPECT_EQ(committer_->fullness(), 0);
  EXPECT_THAT(noted_, ElementsAre("a:OK", "b:OK", "d:OK"));
}

TEST_F(CommitterTest, FullnessCountsWhatWaitsForAFailingStore) {
  CommitterOptions options;
  options.max_queued_bytes = 10'000;
  Make(options);
  store_.FailNext({Unavailable("busy")});
  storage::StoreFrame large;
  large.frame.add_outputs()->set_data(std::string(10'000, 'x'));
  ASSERT_TRUE(committer_->Submit({large}, nullptr).ok());

  writer_.RunUntilIdle();

  EXPECT_GE(committer_->fullness(), 1);
  EXPECT_EQ(committer_->Submit(BatchOf({"b"}), nullptr).code(), StatusCode::kResourceExhausted);
  writer_.Advance(Seconds(1));
  EXPECT_EQ(committer_->fullness(), 0);
}

TEST_F(CommitterTest, AnEmptyBatchIsABarrier) {
  Make();
  store_.FailNext({Unavailable("busy")});
  MustSubmit("a");
  ASSERT_TRUE(committer_->Submit({}, Note("barrier")).ok());

  writer_.RunUntilIdle();
  replies_.RunUntilIdle();
  EXPECT_THAT(noted_, IsEmpty());
  writer_.Advance(Seconds(1));
  replies_.RunUntilIdle();

  EXPECT_THAT(noted_, ElementsAre("a:OK", "barrier:OK"));
}

TEST(CommitterThread, FlushingCommitsWhatIsQueuedThenTakesNothingMore) {
  FakeClock clock;
  FakeExecutor replies(clock);
  FakeStore store;
  // The wait after the failure is far longer than the test: flushing cuts it short.
  CommitterOptions options;
  options.first_backoff = Minutes(60);
  Committer committer(store, replies, options);
  std::vector<StatusCode> codes;
  const Committed note = [&](const Status& status) { codes.push_back(status.code()); };
  store.FailNext({Unavailable("busy")});
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(committer.Submit(BatchOf({"x"}), note).ok());

  const Status flushed = committer.FlushAndStop(Minutes(10));
  const Status late = committer.Submit(BatchOf({"late"}), note);
  replies.RunUntilIdle();

  EXPECT_TRUE(flushed.ok()) << flushed.ToString();
  EXPECT_EQ(late.code(), StatusCode::kCancelled);
  EXPECT_EQ(codes, std::vector<StatusCode>(100, StatusCode::kOk));
  EXPECT_TRUE(committer.FlushAndStop(Nanos(0)).ok());
}

TEST(CommitterThread, WhatCannotBeFlushedIsReportedAsNotStored) {
  FakeClock clock;
  FakeExecutor replies(clock);
  FakeStore store;
  Committer committer(store, replies);
  std::vector<StatusCode> codes;
  const Committed note = [&](const Status& status) { codes.push_back(status.code()); };
  store.FailNext(std::vector<Status>(1000, ResourceExhausted("disk full")));
  ASSERT_TRUE(committer.Submit(BatchOf({"a"}), note).ok());
  ASSERT_TRUE(committer.Submit(BatchOf({"b"}), note).ok());

  const Status flushed = committer.FlushAndStop(Nanos(0));
  committer.SubmitAlways(BatchOf({"late"}), note);
  replies.RunUntilIdle();

  EXPECT_EQ(flushed.code(), StatusCode::kDeadlineExceeded) << flushed.ToString();
  EXPECT_EQ(codes, std::vector<StatusCode>(3, StatusCode::kCancelled));
  EXPECT_THAT(store.transactions(), IsEmpty());
}

TEST(CommitterThread, BatchesOfManyThreadsAreAllCommittedOnce) {
  FakeClock clock;
  FakeExecutor replies(clock);
  FakeStore store;
  Committer committer(store, replies);
  {
    std::vector<std::unique_ptr<SerialExecutor>> threads;
    for (int t = 0; t < 4; ++t) {
      threads.push_back(std::make_unique<SerialExecutor>("submitter"));
      for (int i = 0; i < 250; ++i) {
        threads.back()->Post([&committer, t, i] {
          committer.SubmitAlways(BatchOf({std::to_string(t * 1000 + i)}), nullptr);
        });
      }
    }
  }
  ASSERT_TRUE(committer.FlushAndStop(Minutes(10)).ok());

  std::vector<std::string> all;
  for (const std::vector<std::string>& transaction : store.transactions()) {
    all.insert(all.end(), transaction.begin(), transaction.end());
  }
  std::vector<std::vector<int>> by_thread(4);
  for (const std::string& subject : all) {
    by_thread[static_cast<size_t>(std::stoi(subject) / 1000)].push_back(std::stoi(subject) % 1000);
  }
  std::vector<int> expected(250);
  for (int i = 0; i < 250; ++i) expected[static_cast<size_t>(i)] = i;

  EXPECT_THAT(by_thread, ::testing::Each(expected));
}

}  // namespace
}  // namespace pipeyard::ingest
