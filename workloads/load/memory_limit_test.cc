#include "workloads/load/memory_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "proto/settings/variant.h"
#include "workloads/load/load.h"
#include "workloads/load/machine_files.h"

namespace pipeyard::load {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using MemoryLimits = MachineFiles;

// Of workload transfer.
constexpr int64_t kMaxReaders = 1024;

std::vector<std::string> Told(const std::string& root) {
  std::vector<std::string> told;
  for (const MemoryLimit& limit : ReadMemoryLimits(root)) {
    told.push_back(limit.name + " " + std::to_string(limit.available_bytes));
  }
  return told;
}

TEST_F(MemoryLimits, AreNotTakenFromSwapOrFreeMemory) {
  Write("/proc/meminfo",
        "MemTotal:       1000 kB\nMemFree:          10 kB\nMemAvailable:     600 kB\n"
        "HugePages_Total:       0\nSwapFree:  9000 kB\n");

  EXPECT_THAT(Told(root()), ElementsAre("MemAvailable 614400"));
}

TEST_F(MemoryLimits, OfAGroupAboveHoldToo) {
  Write("/proc/self/cgroup", "0::/a/b\n");
  Write("/sys/fs/cgroup/a/b/memory.max", "max\n");
  Write("/sys/fs/cgroup/a/b/memory.current", "500\n");
  Write("/sys/fs/cgroup/a/memory.max", "1000\n");
  Write("/sys/fs/cgroup/a/memory.current", "700\n");

  EXPECT_THAT(Told(root()), ElementsAre("the memory cgroup's limit 300"));
}

TEST_F(MemoryLimits, DoNotCountFilePagesThatTheKernelWouldDrop) {
  Write("/proc/self/cgroup", "4:memory:/c\n");
  Write("/sys/fs/cgroup/memory/c/memory.limit_in_bytes", "1000\n");
  Write("/sys/fs/cgroup/memory/c/memory.usage_in_bytes", "900\n");
  Write("/sys/fs/cgroup/memory/c/memory.stat",
        "inactive_file 1\nactive_file 1\ntotal_inactive_file 400\ntotal_active_file 200\n");

  EXPECT_THAT(Told(root()), ElementsAre("the memory cgroup's limit 700"));
}

TEST_F(MemoryLimits, WithoutAnyFileLimitNothing) { EXPECT_THAT(Told(root()), ElementsAre()); }

TEST(JudgeMemory, NamesTheLimitAndWhatItIsNeededFor) {
  const std::vector<MemoryLimit> limits = {{"MemAvailable", 4096}, {"the cgroup's limit", 2048}};

  EXPECT_TRUE(JudgeMemory(limits, 2048, "buffers").ok());
  const Judgement judged = JudgeMemory(limits, 3072, "3 buffers of 1KiB");
  EXPECT_EQ(judged.outcome, v1::OUTCOME_NOT_APPLICABLE);
  EXPECT_EQ(judged.reason_code, "memory_limit");
  EXPECT_EQ(judged.reason_text,
            "the cgroup's limit leaves 2KiB, and 3KiB are needed for 3 buffers of 1KiB");
}

// Touching them, the kernel would kill the worker, or something else of the machine.
TEST(JudgeMemory, BuffersBeyondTheMachineAreRefusedBeforeTheyAreTouched) {
  constexpr int64_t kMessageBytes = int64_t{64} << 20;
  const int64_t machine_bytes = ::sysconf(_SC_PHYS_PAGES) * ::sysconf(_SC_PAGESIZE);
  const int64_t readers = machine_bytes / kMessageBytes + 1;
  if (readers > kMaxReaders) GTEST_SKIP() << "this machine has memory for the largest variant";
  for (const char* target : {"engine", "kernel"}) {
    const Result<settings::Variant> variant = settings::MakeVariant(
        "transfer", target, {{"message_bytes", kMessageBytes}, {"readers", readers}});
    ASSERT_TRUE(variant.ok()) << variant.status().ToString();

    const v1::WorkerResult result = RunWorkload(*variant);

    EXPECT_EQ(result.outcome(), v1::OUTCOME_NOT_APPLICABLE) << target;
    EXPECT_EQ(result.reason_code(), "memory_limit") << result.reason_text();
    EXPECT_THAT(result.reason_text(), HasSubstr("message buffers of 64MiB")) << target;
  }
}

}  // namespace
}  // namespace pipeyard::load
