#include "agent/runner/attempt_tracker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/runner/assign_check.h"
#include "agent/runner/testing_assign.h"

namespace pipeyard::runner {
namespace {

using testing::HasSubstr;
using Kind = AttemptTracker::Answer::Kind;
using Action = StartupDecision::Action;

struct StartupCase {
  AttemptRemains remains;
  Action action;
  v1::Outcome outcome;
  const char* reason_code;
};

TEST(DecideAtStartup, FollowsFromWhatTheEarlierLifeLeft) {
  const StartupCase cases[] = {
      {{.is_final = true, .started_boot_id = "this"}, Action::kNone, v1::OUTCOME_UNSPECIFIED, ""},
      {{.is_final = true, .started_boot_id = "other"}, Action::kNone, v1::OUTCOME_UNSPECIFIED, ""},
      {{.started_boot_id = ""}, Action::kRun, v1::OUTCOME_UNSPECIFIED, ""},
      {{.started_boot_id = "this"}, Action::kEnd, v1::OUTCOME_VOID, "agent_restarted"},
      {{.started_boot_id = "this", .was_clean_stop = true},
       Action::kEnd,
       v1::OUTCOME_VOID,
       "agent_restarted"},
      {{.started_boot_id = "other", .was_clean_stop = true},
       Action::kEnd,
       v1::OUTCOME_VOID,
       "host_rebooted"},
      {{.started_boot_id = "other"}, Action::kEnd, v1::OUTCOME_FAILED, "host_crashed"},
  };
  for (const StartupCase& c : cases) {
    const StartupDecision decision = DecideAtStartup(c.remains, "this");
    EXPECT_EQ(decision.action, c.action) << c.reason_code;
    EXPECT_EQ(decision.outcome, c.outcome) << c.reason_code;
    EXPECT_EQ(decision.reason_code, c.reason_code);
  }
}

TEST(AttemptTracker, FirstAssignmentIsJournaledAndARepeatedOneAcceptedAgain) {
  AttemptTracker tracker;
  const v1::Assign assign = TestAssign(1);

  EXPECT_EQ(tracker.OnAssign(assign, false).kind, Kind::kJournal);
  EXPECT_EQ(tracker.OnAssign(assign, false).kind, Kind::kNone);
  tracker.OnJournaled(assign.attempt_id());
  EXPECT_EQ(tracker.OnAssign(assign, true).kind, Kind::kAcceptAgain);
}

TEST(AttemptTracker, TakesOneAttemptAtATime) {
  AttemptTracker tracker;
  (void)tracker.OnAssign(TestAssign(1), false);

  const AttemptTracker::Answer answer = tracker.OnAssign(TestAssign(2), false);
  EXPECT_EQ(answer.kind, Kind::kRefuse);
  EXPECT_EQ(answer.reason, v1::Refused::REASON_BUSY);
  EXPECT_THAT(answer.text, HasSubstr(TestAssign(1).attempt_id()));

  tracker.OnFinished(TestAssign(1).attempt_id());
  EXPECT_EQ(tracker.OnAssign(TestAssign(2), false).kind, Kind::kJournal);
}

TEST(AttemptTracker, LateDuplicateOfAnAcknowledgedAttemptIsNotRunAgain) {
  AttemptTracker tracker;
  const v1::Assign assign = TestAssign(1);
  (void)tracker.OnAssign(assign, false);
  tracker.OnFinished(assign.attempt_id());
  tracker.OnForgotten(assign.attempt_id());

  EXPECT_EQ(tracker.OnAssign(assign, false).kind, Kind::kAcceptAgain);
  EXPECT_TRUE(tracker.unfinished().empty());
}

TEST(AttemptTracker, DrainingTakesNothingNewButKnowsWhatItHolds) {
  AttemptTracker tracker;
  (void)tracker.OnAssign(TestAssign(1), false);
  tracker.Drain();

  EXPECT_EQ(tracker.OnAssign(TestAssign(2), false).reason, v1::Refused::REASON_DRAINING);
  EXPECT_EQ(tracker.OnAssign(TestAssign(3), true).kind, Kind::kAcceptAgain);
}

TEST(AttemptTracker, PhasesAreThoseOfTheProtocol) {
  AttemptTracker tracker;
  const std::string id = TestAssign(1).attempt_id();
  (void)tracker.OnAssign(TestAssign(1), false);
  tracker.OnJournaled(id);
  EXPECT_EQ(tracker.PhaseOf(id, false), v1::ATTEMPT_PHASE_WAITING);

  tracker.OnStarted(id, Seconds(5));
  EXPECT_EQ(tracker.PhaseOf(id, false), v1::ATTEMPT_PHASE_RUNNING);
  EXPECT_EQ(tracker.Find(id)->started_at, Seconds(5));
  EXPECT_EQ(tracker.PhaseOf(id, true), v1::ATTEMPT_PHASE_SPOOLED);
}

struct BadAssign {
  const char* name;
  void (*alter)(v1::Assign&);
  const char* text;
};

class UntrustedAssign : public testing::TestWithParam<BadAssign> {};

TEST_P(UntrustedAssign, IsRefusedAsNotApplicableAndNotTracked) {
  AttemptTracker tracker;
  v1::Assign assign = TestAssign(1);
  GetParam().alter(assign);

  const AttemptTracker::Answer answer = tracker.OnAssign(assign, false);

  EXPECT_EQ(answer.kind, Kind::kRefuse);
  EXPECT_EQ(answer.reason, v1::Refused::REASON_NOT_APPLICABLE);
  EXPECT_THAT(answer.text, HasSubstr(GetParam().text));
  EXPECT_TRUE(tracker.unfinished().empty());
}

const BadAssign kBadAssigns[] = {
    {"PathAsId", [](v1::Assign& a) { a.set_attempt_id("../../../etc"); }, "attempt_id"},
    {"EmptyId", [](v1::Assign& a) { a.clear_attempt_id(); }, "attempt_id"},
    {"NoStore", [](v1::Assign& a) { a.clear_store_id(); }, "store_id"},
    {"ControlCharactersInName", [](v1::Assign& a) { a.set_trial_name("a\x1b[2Jb"); }, "trial_name"},
    {"EndlessName", [](v1::Assign& a) { a.set_trial_name(std::string(100'000, 'x')); },
     "trial_name"},
    {"NoTimeout", [](v1::Assign& a) { a.clear_trial_timeout_ns(); }, "trial_timeout_ns"},
    {"NegativeTimeout", [](v1::Assign& a) { a.set_trial_timeout_ns(-1); }, "trial_timeout_ns"},
    {"AbsurdTimeout", [](v1::Assign& a) { a.set_trial_timeout_ns(INT64_MAX); }, "trial_timeout_ns"},
    {"UnknownWorkload", [](v1::Assign& a) { a.mutable_variant()->set_workload("rm -rf"); },
     "rm -rf"},
    {"UnknownTarget", [](v1::Assign& a) { a.mutable_variant()->set_target("moon"); }, "moon"},
    {"NoVariant", [](v1::Assign& a) { a.clear_variant(); }, "variant"},
    {"OtherIdOfVariant",
     [](v1::Assign& a) { a.mutable_variant()->set_variant_id("0123456789abcdef"); }, "variant"},
};

INSTANTIATE_TEST_SUITE_P(Messages, UntrustedAssign, testing::ValuesIn(kBadAssigns),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(Capabilities, AreThePairsThatThisVersionRuns) {
  EXPECT_THAT(Capabilities(), testing::Contains("transfer:kernel"));
  EXPECT_THAT(Capabilities(), testing::Contains("transfer:engine"));
}

}  // namespace
}  // namespace pipeyard::runner
