#include "workloads/load/kernel_pipes.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <string>

namespace pipeyard::load {
namespace {

using testing::HasSubstr;

constexpr uid_t kNobody = 65534;

int64_t MaxSize() {
  int64_t value = 0;
  std::ifstream("/proc/sys/fs/pipe-max-size") >> value;
  return value;
}

// What `body` says in a child that runs as nobody; "" where it said nothing. The child is made by
// fork: the tests have no threads at this point.
std::string AsNobody(const std::function<std::string()>& body) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return "";
  const pid_t child = ::fork();
  if (child == 0) {
    std::string said = "setuid refused";
    if (::setgid(kNobody) == 0 && ::setuid(kNobody) == 0) said = body();
    const ssize_t written = ::write(ends[1], said.data(), said.size());
    ::_exit(written == static_cast<ssize_t>(said.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  std::string said;
  char buffer[1024];
  for (ssize_t got; (got = ::read(ends[0], buffer, sizeof(buffer))) > 0;) {
    said.append(buffer, static_cast<size_t>(got));
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return said;
}

TEST(KernelPipes, HasTheSizeAskedForRoundedUp) {
  std::shared_ptr<KernelPipes> pipe;
  ASSERT_TRUE(KernelPipes::Create(1, 1, pipe).ok());
  EXPECT_EQ(pipe->size_bytes(), ::sysconf(_SC_PAGESIZE));
  ASSERT_TRUE(KernelPipes::Create(1, 100'000, pipe).ok());
  EXPECT_EQ(pipe->size_bytes(), 131'072);
}

TEST(KernelPipes, MovesBytesThenEndsTheFile) {
  std::shared_ptr<KernelPipes> pipe;
  ASSERT_TRUE(KernelPipes::Create(1, 65536, pipe).ok());
  KernelPipes::Worker worker = pipe->Attach(0);
  std::byte sent[5] = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}, std::byte{5}};
  std::byte received[16] = {};

  EXPECT_EQ(pipe->Write(worker, 0, sent, sizeof(sent)), 5);
  EXPECT_EQ(pipe->Read(worker, 0, received, sizeof(received)), 5);
  EXPECT_EQ(std::memcmp(sent, received, sizeof(sent)), 0);
  pipe->CloseWriteEnd(worker, 0);
  EXPECT_EQ(pipe->Read(worker, 0, received, sizeof(received)), 0);
}

TEST(KernelPipes, BeyondPipeMaxSizeIsNotApplicableForTheUnprivileged) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  const int64_t max_size = MaxSize();
  const std::string said = AsNobody([&]() -> std::string {
    std::shared_ptr<KernelPipes> pipe;
    const Judgement judged = KernelPipes::Create(1, max_size + 1, pipe);
    return std::to_string(judged.outcome) + " " + judged.reason_code + " " + judged.reason_text;
  });

  EXPECT_THAT(said, HasSubstr(std::to_string(v1::OUTCOME_NOT_APPLICABLE) + " pipe_size_limit"));
  EXPECT_THAT(said, HasSubstr("fs.pipe-max-size is " + std::to_string(max_size)));
  EXPECT_THAT(said, HasSubstr("at least " + std::to_string(max_size + 1)));
}

TEST(KernelPipes, BeyondTheUsersPagesIsNotApplicableForTheUnprivileged) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  const std::string said = AsNobody([]() -> std::string {
    std::vector<std::shared_ptr<KernelPipes>> pipes;
    // fs.pipe-user-pages-soft is 16,384 pages by default: 64 pipes of 1 MiB.
    for (int i = 0; i < 1000; ++i) {
      std::shared_ptr<KernelPipes> pipe;
      const Judgement judged = KernelPipes::Create(1, MaxSize(), pipe);
      if (!judged.ok()) {
        return std::to_string(judged.outcome) + " " + judged.reason_code + " " + judged.reason_text;
      }
      pipes.push_back(std::move(pipe));
    }
    return "unlimited";
  });

  if (said == "unlimited") GTEST_SKIP() << "this machine limits no user's pipe pages";
  EXPECT_THAT(said, HasSubstr(std::to_string(v1::OUTCOME_NOT_APPLICABLE) + " pipe_size_limit"));
  EXPECT_THAT(said, HasSubstr("fs.pipe-user-pages-soft"));
}

TEST(KernelPipes, BeyondWhatAnyKernelHasIsNotApplicable) {
  std::shared_ptr<KernelPipes> pipe;
  const Judgement judged = KernelPipes::Create(1, int64_t{1} << 40, pipe);

  EXPECT_EQ(judged.outcome, v1::OUTCOME_NOT_APPLICABLE);
  EXPECT_EQ(judged.reason_code, "pipe_size_limit");
}

TEST(KernelPipes, BeyondTheLimitOfOpenFilesIsNotApplicableAndSaysHowManyAreNeeded) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  const std::string said = AsNobody([]() -> std::string {
    const rlimit limit = {50, 100};
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return "setrlimit refused";
    std::shared_ptr<KernelPipes> few;
    const Judgement made = KernelPipes::Create(30, 4096, few);  // above the soft limit
    if (!made.ok()) return made.reason_text;
    std::shared_ptr<KernelPipes> many;
    const Judgement judged = KernelPipes::Create(200, 4096, many);
    return judged.reason_code + " " + judged.reason_text;
  });

  EXPECT_THAT(said, HasSubstr("file_limit RLIMIT_NOFILE is 100 and must be at least "));
  EXPECT_THAT(said, HasSubstr("400 files more"));
}

TEST(NodeStatistics, AreReadPerNode) {
  const std::string root = testing::TempDir() + "/node_statistics";
  ASSERT_EQ(std::system(("mkdir -p " + root + "/node0 " + root + "/node3").c_str()), 0);
  std::ofstream(root + "/node0/numastat")
      << "numa_hit 5\nnuma_miss 1\nnuma_foreign 2\nlocal_node 9\n";
  std::ofstream(root + "/node3/numastat") << "numa_hit 7\nnuma_miss 0\nnuma_foreign 0\n";

  std::vector<std::string> lines;
  for (const Count& count : ReadNodeStatistics(root)) {
    lines.push_back(count.name + "=" + std::to_string(count.value));
  }
  EXPECT_THAT(
      lines, testing::ElementsAre("node0_numa_hit=5", "node0_numa_miss=1", "node0_numa_foreign=2",
                                  "node3_numa_hit=7", "node3_numa_miss=0", "node3_numa_foreign=0"));
  EXPECT_TRUE(ReadNodeStatistics(root + "/absent").empty());
}

}  // namespace
}  // namespace pipeyard::load
