#include "agent/runner/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <array>
#include <cmath>
#include <functional>

#include "agent/runner/reasons.h"

namespace pipeyard::runner {
namespace {

using testing::HasSubstr;

constexpr char kAttempt[] = "01931c2e-0000-7000-8000-000000000001";

constexpr std::array<settings::MetricDefinition, 2> kDeclared{{
    {.name = "throughput", .unit = "B/s", .better = "higher", .reducer = "rate"},
    {.name = "latency_p99",
     .unit = "ns",
     .better = "lower",
     .reducer = "p99",
     .may_be_absent = true},
}};

v1::Metric Metric(const settings::MetricDefinition& definition, double value) {
  v1::Metric metric;
  metric.set_name(std::string(definition.name));
  metric.set_unit(std::string(definition.unit));
  metric.set_reducer(std::string(definition.reducer));
  metric.set_better(definition.better == "higher" ? v1::DIRECTION_HIGHER : v1::DIRECTION_LOWER);
  metric.set_value(value);
  return metric;
}

v1::WorkerResult GoodResult() {
  v1::WorkerResult result;
  result.set_attempt_id(kAttempt);
  result.set_outcome(v1::OUTCOME_OK);
  result.set_elapsed_ns(123);
  for (const auto& definition : kDeclared) *result.add_metrics() = Metric(definition, 7);
  return result;
}

Evidence Ended(const v1::WorkerResult& result) {
  Evidence evidence;
  evidence.attempt_id = kAttempt;
  evidence.boot_id = "b00t";
  evidence.trial_timeout = Seconds(60);
  evidence.was_started = true;
  evidence.elapsed = Seconds(2);
  evidence.started_utc = Nanos(1000);
  evidence.ended_utc = Nanos(2000);
  evidence.result = result.SerializeAsString();
  return evidence;
}

TEST(Judge, WholeResultOfASoundWorkerIsOk) {
  const Judgement judgement = Judge(Ended(GoodResult()), kDeclared);

  EXPECT_EQ(judgement.end.outcome(), v1::OUTCOME_OK);
  EXPECT_EQ(judgement.end.reason_code(), "");
  EXPECT_EQ(judgement.end.elapsed_ns(), 123);
  EXPECT_EQ(judgement.end.agent_started_utc_ns(), 1000);
  EXPECT_EQ(judgement.end.agent_ended_utc_ns(), 2000);
  EXPECT_EQ(judgement.end.boot_id(), "b00t");
  EXPECT_EQ(judgement.result.metrics_size(), 2);
}

struct Case {
  const char* name;
  std::function<void(v1::WorkerResult&)> alter_result;
  std::function<void(Evidence&)> alter_evidence;
  v1::Outcome outcome;
  std::string_view reason_code;
  const char* reason_text;
};

class JudgeTable : public testing::TestWithParam<Case> {};

TEST_P(JudgeTable, IsNotOk) {
  const Case& c = GetParam();
  v1::WorkerResult result = GoodResult();
  if (c.alter_result) c.alter_result(result);
  Evidence evidence = Ended(result);
  if (c.alter_evidence) c.alter_evidence(evidence);

  const v1::AttemptEnd end = Judge(evidence, kDeclared).end;

  EXPECT_EQ(end.outcome(), c.outcome);
  EXPECT_EQ(end.reason_code(), c.reason_code);
  EXPECT_THAT(end.reason_text(), HasSubstr(c.reason_text));
}

const auto kAsIs = std::function<void(v1::WorkerResult&)>();
const auto kOnlyResult = std::function<void(Evidence&)>();

const Case kCases[] = {
    {"MissingMetric", [](auto& r) { r.mutable_metrics()->RemoveLast(); }, kOnlyResult,
     v1::OUTCOME_FAILED, kMissingMetric, "latency_p99"},
    {"NoMetricAtAll", [](auto& r) { r.clear_metrics(); }, kOnlyResult, v1::OUTCOME_FAILED,
     kMissingMetric, "throughput"},
    {"ValueMissingWithoutPermission",
     [](auto& r) {
       r.mutable_metrics(0)->clear_value();
       r.mutable_metrics(0)->set_absent_reason("too-few-operations");
     },
     kOnlyResult, v1::OUTCOME_FAILED, kMissingMetric, "too-few-operations"},
    {"ValueMissingWithoutReason", [](auto& r) { r.mutable_metrics(1)->clear_value(); }, kOnlyResult,
     v1::OUTCOME_FAILED, kMissingMetric, "latency_p99"},
    {"NotANumber", [](auto& r) { r.mutable_metrics(0)->set_value(std::nan("")); }, kOnlyResult,
     v1::OUTCOME_FAILED, kMissingMetric, "throughput"},
    {"Infinite", [](auto& r) { r.mutable_metrics(1)->set_value(HUGE_VAL); }, kOnlyResult,
     v1::OUTCOME_FAILED, kMissingMetric, "latency_p99"},
    {"OtherUnit", [](auto& r) { r.mutable_metrics(0)->set_unit("MiB/s"); }, kOnlyResult,
     v1::OUTCOME_FAILED, kWrongUnit, "MiB/s"},
    {"OtherDirection", [](auto& r) { r.mutable_metrics(0)->set_better(v1::DIRECTION_LOWER); },
     kOnlyResult, v1::OUTCOME_FAILED, kWrongUnit, "throughput"},
    {"MetricTwice", [](auto& r) { *r.add_metrics() = r.metrics(0); }, kOnlyResult,
     v1::OUTCOME_FAILED, kBadResult, "twice"},
    {"ResultOfAnotherAttempt", [](auto& r) { r.set_attempt_id("other"); }, kOnlyResult,
     v1::OUTCOME_FAILED, kWrongResult, "'other'"},
    {"NoOutcome", [](auto& r) { r.clear_outcome(); }, kOnlyResult, v1::OUTCOME_FAILED, kBadResult,
     "outcome"},
    {"OutcomeThatIsNotAWorkers", [](auto& r) { r.set_outcome(v1::OUTCOME_LOST); }, kOnlyResult,
     v1::OUTCOME_FAILED, kBadResult, "outcome"},
    {"UnreadableResult", kAsIs, [](auto& e) { e.result = "\xff\xff"; }, v1::OUTCOME_FAILED,
     kBadResult, "not a WorkerResult"},
    {"NoResult", kAsIs,
     [](auto& e) {
       e.result.reset();
       e.result_error = "the worker left no result";
     },
     v1::OUTCOME_FAILED, kNoResult, "no result"},
    {"ExitStatusAlthoughTheResultIsWhole", kAsIs,
     [](auto& e) {
       e.exit.exit_code = 3;
       e.stderr_tail = "boom\nlast line\n";
     },
     v1::OUTCOME_FAILED, kExitStatus, "exit status 3: boom | last line"},
    {"KilledAlthoughTheResultIsWhole", kAsIs, [](auto& e) { e.exit.signal = SIGSEGV; },
     v1::OUTCOME_FAILED, kKilled, "killed by SIGSEGV"},
    {"Hung", kAsIs,
     [](auto& e) {
       e.stop_reason = StopReason::kTimeout;
       e.exit.signal = SIGKILL;
     },
     v1::OUTCOME_TIMEOUT, kHung, "after 1m"},
    {"Canceled", kAsIs,
     [](auto& e) {
       e.stop_reason = StopReason::kCanceled;
       e.stop_text = "run_canceled";
     },
     v1::OUTCOME_CANCELED, kCanceled, "run_canceled"},
    {"AgentStops", kAsIs, [](auto& e) { e.stop_reason = StopReason::kAgentStops; },
     v1::OUTCOME_VOID, kAgentRestarted, "stopped"},
    {"LockTimeout", kAsIs, [](auto& e) { e.stop_reason = StopReason::kLockTimeout; },
     v1::OUTCOME_VOID, kTrialLockTimeout, "trial lock"},
    {"SpawnFailed", kAsIs,
     [](auto& e) {
       e.setup = NotFound("spawn /x: ENOENT");
       e.setup_reason = kSpawnFailed;
     },
     v1::OUTCOME_FAILED, kSpawnFailed, "/x"},
    {"WorkersOwnVoid",
     [](auto& r) {
       r.set_outcome(v1::OUTCOME_VOID);
       r.set_reason_code("placement");
       r.set_reason_text("3 pages on node 1");
     },
     kOnlyResult, v1::OUTCOME_VOID, "placement", "3 pages on node 1"},
    {"WorkersOwnFailureWithExitStatus",
     [](auto& r) {
       r.set_outcome(v1::OUTCOME_FAILED);
       r.set_reason_code("self_check");
     },
     [](auto& e) { e.exit.exit_code = 1; }, v1::OUTCOME_FAILED, "self_check", ""},
    {"NotApplicable",
     [](auto& r) {
       r.set_outcome(v1::OUTCOME_NOT_APPLICABLE);
       r.set_reason_code("no_such_node");
     },
     kOnlyResult, v1::OUTCOME_NOT_APPLICABLE, "no_such_node", ""},
};

INSTANTIATE_TEST_SUITE_P(Outcomes, JudgeTable, testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(Judge, PercentileThatIsAbsentForADeclaredReasonIsOk) {
  v1::WorkerResult result = GoodResult();
  result.mutable_metrics(1)->clear_value();
  result.mutable_metrics(1)->set_absent_reason("too-few-operations");

  EXPECT_EQ(Judge(Ended(result), kDeclared).end.outcome(), v1::OUTCOME_OK);
}

TEST(Judge, NumbersOfAVoidAttemptAreKept) {
  v1::WorkerResult result = GoodResult();
  result.set_outcome(v1::OUTCOME_VOID);
  result.set_emulated(true);

  const Judgement judgement = Judge(Ended(result), kDeclared);

  EXPECT_EQ(judgement.result.metrics_size(), 2);
  EXPECT_TRUE(judgement.end.emulated());
}

TEST(Judge, NumbersOfAnotherAttemptAreNot) {
  v1::WorkerResult result = GoodResult();
  result.set_attempt_id("other");

  EXPECT_EQ(Judge(Ended(result), kDeclared).result.metrics_size(), 0);
}

TEST(Judge, TimeOfAKilledWorkerIsTheAgents) {
  Evidence evidence = Ended(GoodResult());
  evidence.result.reset();
  evidence.exit.signal = SIGKILL;

  const v1::AttemptEnd end = Judge(evidence, kDeclared).end;

  EXPECT_EQ(end.elapsed_ns(), 2'000'000'000);
  EXPECT_EQ(end.exit_signal(), SIGKILL);
}

TEST(Judge, AttemptThatNeverStartedHasNoTimeNorExit) {
  Evidence evidence;
  evidence.stop_reason = StopReason::kCanceled;
  evidence.elapsed = Seconds(3);

  const v1::AttemptEnd end = Judge(evidence, kDeclared).end;

  EXPECT_EQ(end.elapsed_ns(), 0);
  EXPECT_EQ(end.exit_signal(), 0);
}

TEST(Judge, LongStderrIsCutFromTheFront) {
  Evidence evidence = Ended(GoodResult());
  evidence.exit.exit_code = 1;
  evidence.stderr_tail = std::string(100'000, 'x') + "the cause";

  const std::string text = Judge(evidence, kDeclared).end.reason_text();

  EXPECT_LE(text.size(), 4096u);
  EXPECT_TRUE(text.ends_with("the cause"));
}

}  // namespace
}  // namespace pipeyard::runner
