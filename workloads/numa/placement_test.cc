#include "workloads/numa/placement.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "workloads/numa/fake_numa_kernel.h"
#include "workloads/numa/topology.h"

namespace pipeyard::numa {
namespace {

constexpr uint64_t kPage = 4096;

struct Arenas {
  alignas(4096) std::byte memory[8 * kPage];
  std::vector<PageRange> ranges = {{0, memory, 4 * kPage}, {1, memory + 4 * kPage, 4 * kPage}};
};

TEST(VerifyPlacement, CountsOnlyWhatTheMapCallsAllocated) {
  Arenas arenas;
  FakeNumaKernel kernel;
  kernel.bound = arenas.ranges;
  // Pages 1 and 2 of the first arena, page 3 of the second.
  const auto counts = VerifyPlacement(
      kernel, arenas.ranges, kPage,
      [](size_t range, uint64_t page) { return range == 0 ? page == 1 || page == 2 : page == 3; });

  ASSERT_TRUE(counts.ok());
  EXPECT_EQ((*counts)[0].pages_on, (std::map<NodeId, int64_t>{{0, 2}}));
  EXPECT_EQ((*counts)[1].pages_on, (std::map<NodeId, int64_t>{{1, 1}}));
  // A hole must not be populated: that would fill it.
  ASSERT_EQ(kernel.populated.size(), 2u);
  EXPECT_EQ(kernel.populated[0].address, arenas.memory + kPage);
  EXPECT_EQ(kernel.populated[0].size_bytes, 2 * kPage);
}

TEST(VerifyPlacement, TellsMisplacedAbsentAndUnknownPagesApart) {
  Arenas arenas;
  FakeNumaKernel kernel;
  kernel.bound = arenas.ranges;
  kernel.strays = {
      {arenas.memory, 1}, {arenas.memory + kPage, -ENOENT}, {arenas.memory + 2 * kPage, -EFAULT}};
  const auto counts =
      VerifyPlacement(kernel, arenas.ranges, kPage, [](size_t, uint64_t) { return true; });

  ASSERT_TRUE(counts.ok());
  EXPECT_EQ((*counts)[0].misplaced(), 1);
  EXPECT_EQ((*counts)[0].not_present, 1);
  EXPECT_EQ((*counts)[0].unknown, 1);
  EXPECT_EQ((*counts)[1].misplaced(), 0);
}

TEST(VerifyPlacement, SaysWhenTheKernelDoesNotAnswer) {
  Arenas arenas;
  FakeNumaKernel kernel;
  kernel.query_error = EPERM;
  const auto counts =
      VerifyPlacement(kernel, arenas.ranges, kPage, [](size_t, uint64_t) { return true; });

  EXPECT_EQ(counts.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(counts.status().message().find("EPERM"), std::string::npos);
}

// As a thread uses it that nothing ended before the process exits.
TEST(SystemNumaKernel, IsThereWhileTheProcessExits) {
  EXPECT_EXIT(
      {
        std::atexit([] {
          int node = 0;
          void* page = &node;
          SystemNumaKernel().QueryNodes({&page, 1}, {&node, 1});
          ::_exit(7);
        });
        SystemNumaKernel();
        std::exit(0);
      },
      testing::ExitedWithCode(7), "");
}

TEST(CountPages, FindsTouchedMemoryOnThisMachine) {
  const auto page_bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  void* memory =
      ::mmap(nullptr, 4 * page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  static_cast<char*>(memory)[0] = 1;
  static_cast<char*>(memory)[page_bytes] = 1;
  const Result<PlacementCount> count = CountPages(SystemNumaKernel(), memory, 4 * page_bytes, 0);
  ::munmap(memory, 4 * page_bytes);
  if (!count.ok()) GTEST_SKIP() << "this machine forbids move_pages: " << count.status().message();

  int64_t present = 0;
  for (const auto& [node, pages] : count->pages_on) present += pages;
  EXPECT_EQ(present, 2);
  EXPECT_EQ(count->not_present, 2);
}

}  // namespace
}  // namespace pipeyard::numa
