// Every accepted attempt ends exactly once, whatever dies when.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "agent/core/agent_fixture.h"

namespace pipeyard::agent {
namespace {

using testing::IsEmpty;
using Fault = FaultyEnv::Fault;
using Survives = FaultyEnv::Survives;

// Three attempts, each assigned until it is accepted or has an end. The machine dies, or one
// operation fails, at every step of the whole.
class AgentFaultTest : public AgentTest,
                       public testing::WithParamInterface<std::tuple<Fault, Survives>> {
 protected:
  void LiveOn(int number) {
    if (life_ == nullptr || life_->agent == nullptr) return;
    if (!life_->spool->Find(Id(number)) && !controller_.finals.contains(Id(number))) Assign(number);
    const auto& runs = life_->runner.runs;
    if (std::find(runs.begin(), runs.end(), Id(number)) == runs.end()) return;
    const auto found = life_->spool->Find(Id(number));
    if (!found || found->is_final) return;
    const AttemptPaths folder(paths_.Attempts(), Id(number));
    const bool is_started =
        env_.CreateDirs(folder.Folder()).ok() &&
        env_.WriteFileAtomic(folder.Started(), std::string(kBoot) + "\n").ok() &&
        env_.SyncDir(paths_.Attempts()).ok();
    if (is_started) life_->agent->OnStarted(Id(number));
    Settle();
    life_->agent->OnEnded(Ended(Id(number), is_started ? v1::OUTCOME_OK : v1::OUTCOME_VOID));
    Settle();
    executor_.Advance(Seconds(5));
  }
};

TEST_P(AgentFaultTest, EveryAcceptedAttemptEndsOnceWhateverDiesWhen) {
  const auto [fault, survives] = GetParam();
  for (int step = 0;; ++step) {
    SCOPED_TRACE(testing::Message() << "step " << step);
    Kill();
    env_ = FaultyEnv();
    controller_ = FakeController();
    network_.Listen(&controller_);

    env_.Inject(fault, step);
    if (TryStart()) {
      for (int number = 1; number <= 3; ++number) LiveOn(number);
    }
    const bool was_hit = env_.was_hit();
    Kill();
    env_.Reboot(survives);
    const std::set<std::string> accepted = controller_.accepted;

    Start(fault == Fault::kPowerLoss ? kNextBoot : kBoot);
    executor_.Advance(Seconds(30));
    for (int number = 1; number <= 3; ++number) LiveOn(number);
    executor_.Advance(Seconds(60));

    for (const std::string& id : accepted) {
      // Sent again at most, and then the same.
      ASSERT_FALSE(controller_.finals[id].empty()) << id;
      for (const v1::AttemptEnd& end : controller_.finals[id]) {
        EXPECT_EQ(end.SerializeAsString(), controller_.finals[id][0].SerializeAsString());
      }
    }
    EXPECT_THAT(life_->spool->List(), IsEmpty());
    EXPECT_EQ(controller_.finals.size(), 3u);
    if (!was_hit) {
      ASSERT_GT(step, 50);
      break;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Faults, AgentFaultTest,
                         testing::Combine(testing::Values(Fault::kFail, Fault::kPowerLoss),
                                          testing::Values(Survives::kSynced, Survives::kHalf,
                                                          Survives::kEverything)));

}  // namespace
}  // namespace pipeyard::agent
