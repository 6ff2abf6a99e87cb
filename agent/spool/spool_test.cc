#include "agent/spool/spool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/faulty_env.h"

namespace pipeyard::spool {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kFolder[] = "/state/spool";
constexpr char kAttempt[] = "01931c2e-0000-7000-8000-000000000001";
constexpr char kOther[] = "01931c2e-0000-7000-8000-000000000002";
constexpr char kStore[] = "01931c2e-0000-7000-8000-00000000000a";

v1::Assign Assignment(const std::string& attempt_id = kAttempt) {
  v1::Assign assign;
  assign.set_attempt_id(attempt_id);
  assign.set_store_id(kStore);
  assign.set_trial_name("host/0123456789abcdef/1");
  return assign;
}

v1::Frame Frame(const std::string& counter, bool is_final = false) {
  v1::Frame frame;
  frame.add_counters()->set_name(counter);
  frame.set_is_final(is_final);
  return frame;
}

class SpoolTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(env_.CreateDirs("/state").ok());
    ASSERT_TRUE(env_.SyncDir("/").ok());
    Reopen();
  }
  void Reopen() {
    auto opened = Spool::Open(env_, {.folder = kFolder, .min_free_bytes = 1000});
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    spool_ = std::move(opened).value();
  }
  std::string LogPath(const std::string& attempt_id = kAttempt) const {
    return std::string(kFolder) + "/" + attempt_id + ".log";
  }

  FaultyEnv env_;
  std::unique_ptr<Spool> spool_;
};

TEST_F(SpoolTest, NumbersFramesFromOneAndStampsTheirStore) {
  ASSERT_TRUE(spool_->Accept(Assignment()).ok());
  ASSERT_TRUE(spool_->Append(kAttempt, {Frame("a"), Frame("b", true)}).ok());

  const auto second = spool_->ReadFrame(kAttempt, 2);

  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->sequence(), 2u);
  EXPECT_EQ(second->store_id(), kStore);
  EXPECT_EQ(second->attempt_id(), kAttempt);
  EXPECT_EQ(second->counters(0).name(), "b");
  EXPECT_EQ(spool_->ReadFrame(kAttempt, 3).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(spool_->ReadFrame(kAttempt, 0).status().code(), StatusCode::kNotFound);
}

TEST_F(SpoolTest, FindsAssignmentFramesAndAcksAgainAfterARestart) {
  ASSERT_TRUE(spool_->Accept(Assignment()).ok());
  ASSERT_TRUE(spool_->Append(kAttempt, {Frame("a")}).ok());
  ASSERT_TRUE(spool_->Ack(kAttempt, 1).ok());
  ASSERT_TRUE(spool_->Append(kAttempt, {Frame("b", true)}).ok());

  env_.Reboot(FaultyEnv::Survives::kSynced);
  Reopen();

  const auto found = spool_->Find(kAttempt);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->num_frames, 2u);
  EXPECT_EQ(found->acked_through, 1u);
  EXPECT_TRUE(found->is_final);
  EXPECT_EQ(spool_->ReadAssignment(kAttempt)->trial_name(), "host/0123456789abcdef/1");
  EXPECT_EQ(spool_->ReadFrame(kAttempt, 2)->counters(0).name(), "b");
}

TEST_F(SpoolTest, AttemptHasOneFinalFrame) {
  ASSERT_TRUE(spool_->Accept(Assignment()).ok());
  ASSERT_TRUE(spool_->Append(kAttempt, {Frame("a", true)}).ok());

  EXPECT_EQ(spool_->Append(kAttempt, {Frame("b", true)}).code(), StatusCode::kFailedPrecondition);
  ASSERT_TRUE(spool_->Accept(Assignment(kOther)).ok());
  EXPECT_EQ(spool_->Append(kOther, {Frame("a", true), Frame("b")}).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(spool_->Find(kOther)->num_frames, 0u);
}

TEST_F(SpoolTest, AckOfTheFinalFrameForgetsTheAttemptAlsoAfterPowerLoss) {
  ASSERT_TRUE(spool_->Accept(Assignment()).ok());
  ASSERT_TRUE(spool_->Append(kAttempt, {Frame("a"), Frame("b", true)}).ok());

  ASSERT_TRUE(spool_->Ack(kAttempt, 2).ok());

  EXPECT_FALSE(spool_->Find(kAttempt).has_value());
  env_.Reboot(FaultyEnv::Survives::kSynced);
  Reopen();
  EXPECT_THAT(spool_->List(), IsEmpty());
}

TEST_F(SpoolTest, AcksThatSayNothingNewOrImpossibleChangeNothing) {
  ASSERT_TRUE(spool_->Accept(Assignment()).ok());
  ASSERT_TRUE(spool_->Append(kAttempt, {Frame("a"), Frame("b")}).ok());

  EXPECT_EQ(spool_->Ack(kAttempt, 3).code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(spool_->Ack(kAttempt, 0).ok());
  EXPECT_TRUE(spool_->Ack(kOther, 7).ok());
  // All frames so far, but the final one is still to come.
  EXPECT_TRUE(spool_->Ack(kAttempt, 2).ok());
  EXPECT_TRUE(spool_->Ack(kAttempt, 1).ok());

  EXPECT_EQ(spool_->Find(kAttempt)->acked_through, 2u);
}

TEST_F(SpoolTest, RefusesAnAttemptThatItHoldsOrThatNamesAPath) {
  ASSERT_TRUE(spool_->Accept(Assignment()).ok());

  EXPECT_EQ(spool_->Accept(Assignment()).code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(spool_->Accept(Assignment("../../etc/passwd")).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(spool_->Append(kOther, {Frame("a")}).code(), StatusCode::kNotFound);
}

TEST_F(SpoolTest, BelowTheThresholdTakesNoAttemptButWritesTheFramesOfOneItHolds) {
  ASSERT_TRUE(spool_->Accept(Assignment()).ok());
  env_.set_free_bytes(999);

  const Status refused = spool_->Accept(Assignment(kOther));

  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(), HasSubstr("999 B free"));
  EXPECT_TRUE(spool_->Append(kAttempt, {Frame("a", true)}).ok());
  EXPECT_FALSE(env_.Exists(LogPath(kOther)));
}

TEST_F(SpoolTest, FrameOverOneMebibyteIsRefusedBeforeItIsWritten) {
  ASSERT_TRUE(spool_->Accept(Assignment()).ok());
  v1::Frame large;
  large.add_outputs()->set_data(std::string(1 << 20, 'x'));

  EXPECT_EQ(spool_->Append(kAttempt, {large}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(spool_->Find(kAttempt)->num_frames, 0u);
}

TEST_F(SpoolTest, TornTailIsCutOffOnOpenAndCounted) {
  ASSERT_TRUE(spool_->Accept(Assignment()).ok());
  ASSERT_TRUE(spool_->Append(kAttempt, {Frame("a")}).ok());
  const uint64_t good_bytes = *env_.FileSize(LogPath());
  auto file = env_.OpenAppend(LogPath());
  ASSERT_TRUE((*file)->Append("torn").ok());

  Reopen();

  EXPECT_EQ(spool_->recovered().num_torn_logs, 1);
  EXPECT_EQ(spool_->recovered().cut_bytes, 4u);
  EXPECT_EQ(*env_.FileSize(LogPath()), good_bytes);
  ASSERT_TRUE(spool_->Append(kAttempt, {Frame("b", true)}).ok());
  EXPECT_EQ(spool_->ReadFrame(kAttempt, 2)->counters(0).name(), "b");
}

TEST_F(SpoolTest, LogWithoutAReadableAssignmentIsSetAsideNotDeleted) {
  auto file = env_.OpenAppend(LogPath());
  ASSERT_TRUE((*file)->Append("not a log").ok());

  Reopen();

  EXPECT_EQ(spool_->recovered().num_quarantined, 1);
  EXPECT_THAT(spool_->List(), IsEmpty());
  EXPECT_EQ(*env_.ReadFile(LogPath() + ".bad"), "not a log");
}

TEST_F(SpoolTest, FilesThatAreNoLogsAreLeftAlone) {
  ASSERT_TRUE(env_.OpenAppend("/state/spool/README").ok());
  ASSERT_TRUE(env_.OpenAppend("/state/spool/notes.log").ok());

  Reopen();

  EXPECT_TRUE(env_.Exists("/state/spool/README"));
  EXPECT_TRUE(env_.Exists("/state/spool/notes.log"));
  EXPECT_EQ(spool_->recovered().num_attempts, 0);
}

TEST_F(SpoolTest, DamageInTheMiddleKeepsWhatStandsBeforeIt) {
  ASSERT_TRUE(spool_->Accept(Assignment()).ok());
  ASSERT_TRUE(spool_->Append(kAttempt, {Frame("a")}).ok());
  std::string bytes = *env_.ReadFile(LogPath());
  ASSERT_TRUE(spool_->Append(kAttempt, {Frame("b"), Frame("c", true)}).ok());
  const size_t damaged_offset = bytes.size() + 12;
  bytes = *env_.ReadFile(LogPath());
  bytes[damaged_offset] = static_cast<char>(bytes[damaged_offset] ^ 1);
  ASSERT_TRUE(env_.WriteFileAtomic(LogPath(), bytes).ok());

  EXPECT_EQ(spool_->ReadFrame(kAttempt, 2).status().code(), StatusCode::kDataLoss);
  Reopen();

  EXPECT_EQ(spool_->Find(kAttempt)->num_frames, 1u);
  EXPECT_FALSE(spool_->Find(kAttempt)->is_final);
}

TEST_F(SpoolTest, ListIsOldestFirst) {
  ASSERT_TRUE(spool_->Accept(Assignment(kOther)).ok());
  ASSERT_TRUE(spool_->Accept(Assignment(kAttempt)).ok());

  std::vector<std::string> ids;
  for (const SpooledAttempt& attempt : spool_->List()) ids.push_back(attempt.attempt_id);

  EXPECT_THAT(ids, ElementsAre(kAttempt, kOther));
}

}  // namespace
}  // namespace pipeyard::spool
