#include "workloads/load/task_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "workloads/load/machine_files.h"

namespace pipeyard::load {
namespace {

using testing::HasSubstr;

using TaskLimits = MachineFiles;

TEST_F(TaskLimits, TellsTheLimitsThatItHas) {
  Write("/proc/loadavg", "0.20 0.18 0.12 1/80 11206\n");
  Write("/proc/sys/kernel/threads-max", "1000\n");
  Write("/proc/sys/kernel/pid_max", "4194304\n");
  Write("/proc/self/cgroup", "0::/a/b\n4:pids:/c\n");
  Write("/sys/fs/cgroup/a/b/pids.max", "max\n");
  Write("/sys/fs/cgroup/pids/c/pids.max", "300\n");
  Write("/sys/fs/cgroup/pids/c/pids.current", "20\n");

  std::vector<std::string> told;
  for (const TaskLimit& limit : ReadTaskLimits(root())) {
    if (limit.name == "RLIMIT_NPROC") continue;
    told.push_back(limit.name + " " + std::to_string(limit.used) + "/" +
                   std::to_string(limit.limit));
  }

  EXPECT_THAT(told, testing::ElementsAre("kernel.threads-max 80/1000", "kernel.pid_max 80/4194304",
                                         "pids.max of the cgroup 20/300"));
}

TEST_F(TaskLimits, OfAGroupAboveHoldToo) {
  Write("/proc/self/cgroup", "0::/a/b\n");
  Write("/sys/fs/cgroup/a/pids.max", "40\n");
  Write("/sys/fs/cgroup/a/pids.current", "30\n");

  const std::vector<TaskLimit> limits = ReadTaskLimits(root());

  ASSERT_FALSE(limits.empty());
  EXPECT_EQ(limits[0].limit, 40);
  EXPECT_EQ(limits[0].used, 30);
}

TEST_F(TaskLimits, OfControllersThatAreMountedTogetherAreFound) {
  Write("/proc/self/cgroup", "4:cpu,pids:/a\n");
  Write("/sys/fs/cgroup/cpu,pids/a/pids.max", "40\n");

  const std::vector<TaskLimit> limits = ReadTaskLimits(root());

  ASSERT_FALSE(limits.empty());
  EXPECT_EQ(limits[0].limit, 40);
}

TEST_F(TaskLimits, WithoutAnyFileLimitsNothing) {
  for (const TaskLimit& limit : ReadTaskLimits(root())) EXPECT_EQ(limit.name, "RLIMIT_NPROC");
}

TEST(JudgeTasks, NamesTheLimitAndTheNumberNeeded) {
  const std::vector<TaskLimit> limits = {{"kernel.threads-max", 1000, 80},
                                         {"pids.max of the cgroup", 300, 20}};

  EXPECT_TRUE(JudgeTasks(limits, 280).ok());
  const Judgement cgroup = JudgeTasks(limits, 281);
  EXPECT_EQ(cgroup.outcome, v1::OUTCOME_NOT_APPLICABLE);
  EXPECT_EQ(cgroup.reason_code, "task_limit");
  EXPECT_THAT(cgroup.reason_text,
              HasSubstr("pids.max of the cgroup is 300 and must be at least 301"));
  EXPECT_THAT(JudgeTasks(limits, 2000).reason_text, HasSubstr("kernel.threads-max is 1000"));
}

}  // namespace
}  // namespace pipeyard::load
