#include "agent/runner/frames.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/runner/reasons.h"
#include "proto/session/messages.h"

namespace pipeyard::runner {
namespace {

using testing::HasSubstr;

constexpr char kId[] = "01931c2e-0000-7000-8000-000000000001";

Judgement GoodJudgement() {
  Judgement judgement;
  judgement.end.set_outcome(v1::OUTCOME_OK);
  judgement.end.set_boot_id(kId);
  v1::Metric* metric = judgement.result.add_metrics();
  metric->set_name("throughput");
  metric->set_unit("B/s");
  metric->set_better(v1::DIRECTION_HIGHER);
  metric->set_reducer("rate");
  metric->set_value(1);
  return judgement;
}

v1::Output Output(size_t num_bytes) {
  v1::Output output;
  output.set_stream("stdout");
  output.set_data(std::string(num_bytes, 'x'));
  return output;
}

void ExpectSendable(std::vector<v1::Frame> frames) {
  for (size_t i = 0; i < frames.size(); ++i) {
    frames[i].set_store_id(kId);
    frames[i].set_attempt_id(kId);
    frames[i].set_sequence(i + 1);
    const Status valid = session::ValidateFrame(frames[i]);
    EXPECT_TRUE(valid.ok()) << valid.ToString();
    EXPECT_EQ(frames[i].is_final(), i + 1 == frames.size());
    EXPECT_EQ(frames[i].has_end(), i + 1 == frames.size());
  }
}

TEST(MakeFrames, SmallAttemptIsOneFinalFrame) {
  Judgement judgement = GoodJudgement();
  judgement.result.add_inert_switches("engine.interleave_bulk");

  const auto frames = MakeFrames(std::move(judgement), {Output(10)});

  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].metrics_size(), 1);
  EXPECT_EQ(frames[0].outputs_size(), 1);
  EXPECT_EQ(frames[0].inert_switches(0), "engine.interleave_bulk");
  ExpectSendable(frames);
}

TEST(MakeFrames, LargeAttemptIsCutAtTheTargetSizeAndKeepsEverything) {
  Judgement judgement = GoodJudgement();
  constexpr int kNumCounters = 40'000;
  for (int i = 0; i < kNumCounters; ++i) {
    v1::Counter* counter = judgement.result.add_counters();
    counter->set_name("pages_allocated_locked");
    counter->set_unit("count");
    counter->set_value(i);
  }

  const auto frames = MakeFrames(std::move(judgement), {Output(64 << 10), Output(64 << 10)});

  EXPECT_GT(frames.size(), 4u);
  int num_counters = 0;
  for (const v1::Frame& frame : frames) {
    EXPECT_LE(frame.ByteSizeLong(), kTargetFrameBytes + 1024);
    for (const v1::Counter& counter : frame.counters()) EXPECT_EQ(counter.value(), num_counters++);
  }
  EXPECT_EQ(num_counters, kNumCounters);
  ExpectSendable(frames);
}

TEST(MakeFrames, ItemThatFitsNoFrameEndsTheAttemptAsFailed) {
  Judgement judgement = GoodJudgement();
  v1::Histogram* histogram = judgement.result.add_histograms();
  histogram->set_name("latency");
  histogram->set_unit("ns");
  for (uint32_t i = 0; i < 400'000; ++i) {
    histogram->add_index(i);
    histogram->add_count(1);
  }

  const auto frames = MakeFrames(std::move(judgement), {Output(10)});

  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].end().outcome(), v1::OUTCOME_FAILED);
  EXPECT_EQ(frames[0].end().reason_code(), kBadResult);
  EXPECT_EQ(frames[0].metrics_size(), 0);
  EXPECT_EQ(frames[0].outputs_size(), 1);
  ExpectSendable(frames);
}

TEST(MakeFrames, MalformedFieldOfTheWorkerEndsTheAttemptAsFailed) {
  Judgement judgement = GoodJudgement();
  judgement.end.set_outcome(v1::OUTCOME_VOID);
  judgement.end.set_reason_code("Not A Code!");

  const auto frames = MakeFrames(std::move(judgement), {});

  EXPECT_EQ(frames[0].end().reason_code(), kBadResult);
  EXPECT_THAT(frames[0].end().reason_text(), HasSubstr("reason_code"));
  ExpectSendable(frames);
}

}  // namespace
}  // namespace pipeyard::runner
