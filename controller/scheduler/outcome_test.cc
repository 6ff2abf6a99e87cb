#include "controller/scheduler/outcome.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "controller/scheduler/testing/builders.h"

namespace pipeyard::scheduler {
namespace {

using storage::CellState;
using storage::Outcome;
using storage::RunState;

v1::AttemptEnd End(v1::Outcome outcome, const char* code = "") {
  v1::AttemptEnd end;
  end.set_outcome(outcome);
  end.set_reason_code(code);
  return end;
}

TEST(Judge, OkWithEveryDeclaredMetricIsOk) {
  EXPECT_EQ(Judge("transfer", End(v1::OUTCOME_OK), TransferMetrics()),
            (Judgement{Outcome::kOk, "", ""}));
}

TEST(Judge, OkWithoutADeclaredMetricIsFailed) {
  for (size_t missing = 0; missing < TransferMetrics().size(); ++missing) {
    std::vector<v1::Metric> metrics = TransferMetrics();
    metrics.erase(metrics.begin() + static_cast<ptrdiff_t>(missing));

    const Judgement judgement = Judge("transfer", End(v1::OUTCOME_OK), metrics);

    EXPECT_EQ(judgement.outcome, Outcome::kFailed) << missing;
    EXPECT_EQ(judgement.reason_code, kReasonMissingMetric) << missing;
  }
}

TEST(Judge, APercentileMayBeAbsentWithItsReasonAndNothingElseMay) {
  std::vector<v1::Metric> metrics = TransferMetrics();
  for (v1::Metric& metric : metrics) {
    if (metric.name() != "latency_p999") continue;
    metric.clear_value();
    metric.set_absent_reason("too-few-operations");
  }
  EXPECT_EQ(Judge("transfer", End(v1::OUTCOME_OK), metrics).outcome, Outcome::kOk);

  metrics[0].clear_value();
  metrics[0].set_absent_reason("too-few-operations");
  EXPECT_EQ(Judge("transfer", End(v1::OUTCOME_OK), metrics).reason_code, kReasonMissingMetric);
}

TEST(Judge, ACommandHasAtLeastOneMetricAndAValueInEach) {
  v1::Metric metric;
  metric.set_name("ops");
  metric.set_unit("1/s");
  metric.set_reducer("value");
  std::vector<v1::Metric> metrics;
  EXPECT_EQ(Judge("command", End(v1::OUTCOME_OK), metrics).reason_code, kReasonMissingMetric);
  metrics.push_back(metric);
  EXPECT_EQ(Judge("command", End(v1::OUTCOME_OK), metrics).reason_code, kReasonMissingMetric);
  metrics[0].set_value(std::numeric_limits<double>::infinity());
  EXPECT_EQ(Judge("command", End(v1::OUTCOME_OK), metrics).reason_code, kReasonBadMetric);
  metrics[0].set_value(5);
  EXPECT_EQ(Judge("command", End(v1::OUTCOME_OK), metrics).outcome, Outcome::kOk);
}

TEST(Judge, AnotherUnitOrANonFiniteValueIsFailed) {
  std::vector<v1::Metric> metrics = TransferMetrics();
  metrics[0].set_unit("MB/s");
  EXPECT_EQ(Judge("transfer", End(v1::OUTCOME_OK), metrics).reason_code, kReasonWrongUnit);

  metrics = TransferMetrics();
  metrics[0].set_value(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(Judge("transfer", End(v1::OUTCOME_OK), metrics).reason_code, kReasonBadMetric);
}

TEST(Judge, OtherOutcomesAreAsTheAgentSays) {
  EXPECT_EQ(Judge("transfer", End(v1::OUTCOME_VOID, "agent_restarted"), {}),
            (Judgement{Outcome::kVoid, "agent_restarted", ""}));
  EXPECT_EQ(Judge("transfer", End(v1::OUTCOME_TIMEOUT, "hung"), {}).outcome, Outcome::kTimeout);
  EXPECT_EQ(Judge("transfer", End(v1::OUTCOME_CANCELED), {}).outcome, Outcome::kCanceled);
}

TEST(Judge, AnOutcomeThatNoAgentMaySendIsFailed) {
  for (const int outcome : {0, static_cast<int>(v1::OUTCOME_LOST), 99}) {
    EXPECT_EQ(Judge("transfer", End(static_cast<v1::Outcome>(outcome)), {}).reason_code,
              kReasonMalformedResult)
        << outcome;
  }
}

TEST(OutcomeRules, CoverEveryOutcomeAndSayWhatIsRetried) {
  for (const Outcome outcome :
       {Outcome::kVoid, Outcome::kFailed, Outcome::kTimeout, Outcome::kLost}) {
    EXPECT_TRUE(RuleOf(outcome).is_retried) << storage::Name(outcome);
  }
  for (const Outcome outcome : {Outcome::kOk, Outcome::kCanceled, Outcome::kNotApplicable}) {
    EXPECT_FALSE(RuleOf(outcome).is_retried) << storage::Name(outcome);
  }
}

TEST(RefusalRules, CoverEveryReasonOfTheProtocol) {
  const auto* descriptor = v1::Refused::Reason_descriptor();
  for (int i = 0; i < descriptor->value_count(); ++i) {
    const auto reason = static_cast<v1::Refused::Reason>(descriptor->value(i)->number());
    EXPECT_EQ(RuleOf(reason) != nullptr, reason != v1::Refused::REASON_UNSPECIFIED)
        << descriptor->value(i)->name();
  }
}

TEST(ExitStatus, IsSixForMissingCellsAndForRunsThatDidNotFinish) {
  std::vector<storage::CellRecord> cells(2);
  cells[0].state = CellState::kComplete;
  cells[1].state = CellState::kNotApplicable;
  EXPECT_EQ(ExitStatus(RunState::kFinished, cells), 0u);
  EXPECT_EQ(ExitStatus(RunState::kRunning, cells), 0u);
  EXPECT_EQ(ExitStatus(RunState::kFailed, cells), 6u);
  EXPECT_EQ(ExitStatus(RunState::kCanceled, cells), 6u);

  cells[1].state = CellState::kMissing;
  EXPECT_EQ(ExitStatus(RunState::kFinished, cells), 6u);
}

}  // namespace
}  // namespace pipeyard::scheduler
