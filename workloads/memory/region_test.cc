#include "workloads/memory/region.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

namespace pipeyard::memory {
namespace {

// Whether /proc/self/smaps says that the mapping which holds `address` has a huge page mapped.
bool IsMappedHuge(const std::byte* address) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  std::ifstream smaps("/proc/self/smaps");
  bool is_within = false;
  for (std::string line; std::getline(smaps, line);) {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    uint64_t kibibytes = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
      is_within = begin <= at && at < end;
    } else if (is_within && std::sscanf(line.c_str(), "ShmemPmdMapped: %lu kB", &kibibytes) == 1) {
      return kibibytes != 0;
    }
  }
  return false;
}

TEST(RegionLayout, PartsFollowTheHeaderAtTheirAlignment) {
  RegionLayout layout;

  EXPECT_EQ(layout.Add(100, 64), 4096u);
  EXPECT_EQ(layout.Add(1, 64), 4224u);
  EXPECT_EQ(layout.Add(0, 4096), 8192u);
  EXPECT_EQ(layout.Add(10, 1), 8192u);
  EXPECT_EQ(layout.size_bytes(), 8202u);
}

TEST(Region, IsZeroedAndAligned) {
  RegionLayout layout;
  const uint64_t offset = layout.Add(1 << 20, RegionLayout::kMaxAlignment);
  const auto region = *Region::Create(layout);

  EXPECT_EQ(reinterpret_cast<uintptr_t>(region->At<char>(offset)) % RegionLayout::kMaxAlignment,
            0u);
  EXPECT_TRUE(region->Populate(offset, 1 << 20).ok());
  EXPECT_EQ(*region->At<uint64_t>(offset), 0u);
  EXPECT_TRUE(region->CheckHeader().ok());
}

TEST(Region, AChildWritesIntoTheParentsMemory) {
  RegionLayout layout;
  const uint64_t offset = layout.Add(8, 8);
  const auto region = *Region::Create(layout);
  const pid_t child = ::fork();
  if (child == 0) {
    *region->At<uint64_t>(offset) = 42;
    ::_exit(region->CheckHeader().ok() ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);

  EXPECT_EQ(status, 0);
  EXPECT_EQ(*region->At<uint64_t>(offset), 42u);
}

TEST(Region, PopulatingKeepsWhatIsThereAndBeyond) {
  constexpr uint64_t kBytes = 2 * RegionLayout::kMaxAlignment;
  RegionLayout layout;
  const uint64_t before = layout.Add(8, 8);
  const uint64_t offset = layout.Add(kBytes, RegionLayout::kMaxAlignment);
  const uint64_t behind = layout.Add(8, 8);
  const auto region = *Region::Create(layout);
  for (const uint64_t at : {before, offset, offset + kBytes - 8, behind}) {
    *region->At<uint64_t>(at) = at;
  }

  EXPECT_TRUE(region->Populate(offset, kBytes).ok());

  for (const uint64_t at : {before, offset, offset + kBytes - 8, behind}) {
    EXPECT_EQ(*region->At<uint64_t>(at), at);
  }
}

// Else each of some hundred worker processes faults on each small page.
TEST(Region, AChildMapsAHugePageWithItsFirstTouch) {
  constexpr uint64_t kBytes = RegionLayout::kMaxAlignment;
  RegionLayout layout;
  const uint64_t offset = layout.Add(kBytes, RegionLayout::kMaxAlignment);
  const auto region = *Region::Create(layout);
  ASSERT_TRUE(region->Populate(offset, kBytes).ok());
  if (region->huge_bytes() == 0) GTEST_SKIP() << "the kernel has no huge page for the region";
  EXPECT_EQ(region->huge_bytes(), kBytes);

  const pid_t child = ::fork();
  if (child == 0) {
    *region->At<uint64_t>(offset) = 1;
    ::_exit(IsMappedHuge(region->At<std::byte>(offset)) ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);

  EXPECT_EQ(status, 0);
}

TEST(Region, AForeignHeaderIsRefused) {
  const auto region = *Region::Create(RegionLayout());
  auto* header = region->At<RegionHeader>(0);
  const RegionHeader good = *header;

  header->magic = 1;
  EXPECT_EQ(region->CheckHeader().code(), StatusCode::kDataLoss);
  *header = good;
  header->version = RegionHeader::kVersion + 1;
  EXPECT_EQ(region->CheckHeader().code(), StatusCode::kDataLoss);
  *header = good;
  header->size_bytes += 1;
  EXPECT_EQ(region->CheckHeader().code(), StatusCode::kDataLoss);
}

TEST(Region, MoreThanTheMachineGivesIsAnError) {
  RegionLayout layout;
  layout.Add(uint64_t{1} << 60, 1);

  EXPECT_EQ(Region::Create(layout).status().code(), StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace pipeyard::memory
