#include "workloads/load/memory_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST(TakeMemory, NamesTheLimitAndWhatItIsNeededFor) {
  std::vector<MemoryLimit> limits = {{"MemAvailable", 4096}, {"the cgroup's limit", 2048}};

  EXPECT_TRUE(TakeMemory(1024, "one buffer", limits).ok());
  const Judgement judged = TakeMemory(2048, "2 buffers", limits);
  EXPECT_EQ(judged.outcome, v1::OUTCOME_NOT_APPLICABLE);
  EXPECT_EQ(judged.reason_code, "memory_limit");
  EXPECT_EQ(judged.reason_text,
            "the cgroup's limit beside one buffer leaves 1KiB, and 2KiB are needed for 2 buffers");
  EXPECT_EQ(limits[0].available_bytes, 3072);
}

// What does not fit is refused before it is touched: the kernel would kill the worker, or something
// else of the machine.
struct MemoryCase {
  const char* target;
  int64_t available_bytes;
  const char* said;  // "": it runs
};

TEST(MemoryOfAnAttempt, IsJudgedInAllNotPartByPart) {
  // One writer and one reader: 2 MiB of buffers, 1 MiB in a kernel pipe; the region is larger.
  const MemoryCase kCases[] = {
      {"kernel", 1 << 20, "2 message buffers of 1MiB"},
      {"kernel", (2 << 20) + (1 << 19), "beside 2 message buffers of 1MiB leaves 512KiB"},
      {"kernel", 3 << 20, ""},
      {"engine", 1 << 20, "2 message buffers of 1MiB"},
      {"engine", 4 << 20, "beside 2 message buffers of 1MiB leaves 2MiB"},
      {"engine", 1 << 30, ""},
  };
  for (const MemoryCase& c : kCases) {
    const Result<settings::Variant> variant =
        settings::MakeVariant("transfer", c.target,
                              // 513 KiB become 1 MiB.
                              {{"message_bytes", int64_t{1} << 20},
                               {"pipe_bytes", int64_t{513} << 10},
                               {"warmup", int64_t{1'000'000}},
                               {"duration", int64_t{20'000'000}}});
    ASSERT_TRUE(variant.ok()) << variant.status().ToString();
    Surroundings surroundings;
    surroundings.memory_limits = [&] {
      return std::vector<MemoryLimit>{{"the machine", c.available_bytes}};
    };

    const v1::WorkerResult result = RunWorkload(*variant, surroundings);

    EXPECT_EQ(result.reason_code() == "memory_limit", *c.said != '\0')
        << c.target << " " << c.available_bytes << ": " << result.reason_text();
    EXPECT_THAT(result.reason_text(), HasSubstr(c.said));
  }
}

}  // namespace
}  // namespace pipeyard::load
