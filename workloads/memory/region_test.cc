#include "workloads/memory/region.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pipeyard::memory {
namespace {

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
