// The loop by itself, over memory that is none: passes, and what ends them before their time.
#include "workloads/load/fault_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>

namespace pipeyard::load {
namespace {

using testing::HasSubstr;

// SHARED. What tasks in any process did.
struct Done {
  std::atomic<int> prepared;
  std::atomic<int> touched;
  std::atomic<int> finished;
  std::atomic<int> of_each[8];
};

// `touch(task index, pass from 0)` is what a task does; 0 or an errno.
class FakeMemory {
 public:
  struct Task {
    int index = 0;
    int pass = 0;
  };
  using TouchBody = std::function<int(int task_index, int pass)>;

  explicit FakeMemory(TouchBody touch) : touch_(std::move(touch)) {
    memory::RegionLayout layout;
    const uint64_t offset = layout.Add(sizeof(Done), 64);
    region_ = std::move(*memory::Region::Create(layout));
    done_ = region_->At<Done>(offset);
  }

  const Done& done() const { return *done_; }

  Task Attach(int task_index) { return {task_index, 0}; }
  int Prepare(Task& /*task*/) {
    done_->prepared.fetch_add(1);
    return 0;
  }
  int Touch(Task& task, TaskProgress progress) {
    progress.See(0);
    // All tasks have prepared this pass before one touches.
    if (done_->prepared.load() < num_tasks * (task.pass + 1)) return EPROTO;
    done_->touched.fetch_add(1);
    done_->of_each[task.index].fetch_add(1);
    return touch_(task.index, task.pass++);
  }
  void CountPages(Task& /*task*/) {}
  BufferPlacement Prove(Task& task) const {
    BufferPlacement placement = {};
    placement.is_known = 1;
    placement.pages_on[task.index] = 1;
    return placement;
  }
  void Finish(Task& /*task*/) { done_->finished.fetch_add(1); }
  Counts ReadCounts() const { return {{"touched", "count", done_->touched.load()}}; }

  int num_tasks = 1;

 private:
  const TouchBody touch_;
  std::unique_ptr<memory::Region> region_;
  Done* done_ = nullptr;
};

struct Ran {
  Judgement judgement;
  FaultNumbers numbers;
  std::vector<BufferPlacement> placements;
};

Ran RunLoop(FaultParameters parameters, const std::shared_ptr<FakeMemory>& memory,
            const LoopTimeouts& timeouts = {}) {
  memory->num_tasks = parameters.tasks;
  Ran ran;
  ran.judgement = RunFaultLoop(parameters, memory, ran.numbers, ran.placements, timeouts);
  return ran;
}

class FaultLoop : public testing::TestWithParam<WorkerKind> {
 protected:
  static FaultParameters Of(int tasks, Nanos warmup, Nanos duration) {
    return {.tasks = tasks,
            .pages_per_task = 10,
            .warmup = warmup,
            .duration = duration,
            .workers = GetParam()};
  }
  static std::shared_ptr<FakeMemory> Memory(FakeMemory::TouchBody touch) {
    return std::make_shared<FakeMemory>(std::move(touch));
  }
};

TEST_P(FaultLoop, WithoutTimeItMakesOnePass) {
  const auto memory = Memory([](int, int) { return 0; });

  const Ran ran = RunLoop(Of(3, Nanos(0), Nanos(0)), memory);

  ASSERT_TRUE(ran.judgement.ok()) << ran.judgement.reason_text;
  EXPECT_EQ(ran.numbers.passes, 1u);
  EXPECT_EQ(ran.numbers.pages, 30u);
  EXPECT_EQ(memory->done().touched, 3);
  EXPECT_EQ(memory->done().finished, 3);
}

TEST_P(FaultLoop, KeepsNoPassOfTheWarmUp) {
  const auto memory = Memory([](int, int) { return 0; });

  const Ran ran = RunLoop(Of(2, Milliseconds(5), Milliseconds(20)), memory);

  ASSERT_TRUE(ran.judgement.ok()) << ran.judgement.reason_text;
  const auto kept = static_cast<int64_t>(ran.numbers.passes) * 2;
  EXPECT_GT(kept, 0);
  EXPECT_LT(kept, memory->done().touched);
  // What was read while all tasks waited is exact.
  ASSERT_EQ(ran.numbers.counts.size(), 1u);
  EXPECT_EQ(ran.numbers.counts[0].value, kept);
}

TEST_P(FaultLoop, TasksMakeTheSamePasses) {
  const auto memory = Memory([](int, int) { return 0; });

  const Ran ran = RunLoop(Of(4, Milliseconds(1), Milliseconds(20)), memory);

  ASSERT_TRUE(ran.judgement.ok()) << ran.judgement.reason_text;
  for (int i = 1; i < 4; ++i) EXPECT_EQ(memory->done().of_each[i], memory->done().of_each[0]);
}

TEST_P(FaultLoop, APassIsNoLongerThanItsTasksTogetherAndNoShorterThanTheLongest) {
  const auto memory = Memory([](int, int) { return 0; });

  const Ran ran = RunLoop(Of(2, Milliseconds(1), Milliseconds(20)), memory);

  ASSERT_TRUE(ran.judgement.ok()) << ran.judgement.reason_text;
  EXPECT_GE(2 * ran.numbers.wall_ns, ran.numbers.busy_ns);
  EXPECT_GT(ran.numbers.busy_ns, 0u);
}

TEST_P(FaultLoop, BringsEachTasksPlacement) {
  const auto memory = Memory([](int, int) { return 0; });

  const Ran ran = RunLoop(Of(3, Nanos(0), Nanos(0)), memory);

  ASSERT_EQ(ran.placements.size(), 3u);
  EXPECT_EQ(*SumPlacements(ran.placements),
            (std::map<numa::NodeId, int64_t>{{0, 1}, {1, 1}, {2, 1}}));
}

TEST_P(FaultLoop, AnErrorOfOneTaskEndsAll) {
  const auto memory =
      Memory([](int task, int pass) { return task == 1 && pass == 2 ? ENOMEM : 0; });

  const Ran ran = RunLoop(Of(3, Seconds(60), Seconds(60)), memory);

  EXPECT_EQ(ran.judgement.reason_code, "operation_failed");
  EXPECT_THAT(ran.judgement.reason_text, HasSubstr("task 1: ENOMEM"));
  EXPECT_EQ(memory->done().finished, 3);
}

INSTANTIATE_TEST_SUITE_P(Workers, FaultLoop,
                         testing::Values(WorkerKind::kThreads, WorkerKind::kProcesses),
                         [](const auto& tested) {
                           return tested.param == WorkerKind::kThreads ? "Threads" : "Processes";
                         });

TEST(FaultLoopOfProcesses, ATaskThatDiesEndsTheLoop) {
  const auto memory = std::make_shared<FakeMemory>([](int task, int pass) {
    if (task == 1 && pass == 1) ::raise(SIGKILL);
    return 0;
  });

  const Ran ran = RunLoop({.tasks = 2,
                           .warmup = Seconds(60),
                           .duration = Seconds(60),
                           .workers = WorkerKind::kProcesses},
                          memory);

  EXPECT_EQ(ran.judgement.reason_code, "worker_died");
  EXPECT_THAT(ran.judgement.reason_text, HasSubstr("task 1"));
  EXPECT_THAT(ran.judgement.reason_text, HasSubstr("SIGKILL"));
}

TEST(FaultLoopOfProcesses, ATaskThatIsStoppedEndsTheLoop) {
  const auto memory = std::make_shared<FakeMemory>([](int task, int pass) {
    if (task == 0 && pass == 1) ::raise(SIGSTOP);
    return 0;
  });

  const Ran ran = RunLoop({.tasks = 2,
                           .warmup = Seconds(60),
                           .duration = Seconds(60),
                           .workers = WorkerKind::kProcesses},
                          memory, {.drain = Milliseconds(200), .abort = Milliseconds(200)});

  EXPECT_EQ(ran.judgement.reason_code, "worker_stopped");
  EXPECT_THAT(ran.judgement.reason_text, HasSubstr("task 0"));
}

}  // namespace
}  // namespace pipeyard::load
