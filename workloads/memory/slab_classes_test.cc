#include "workloads/memory/slab_classes.h"

#include <gtest/gtest.h>

#include "workloads/memory/object_allocator.h"

namespace pipeyard::memory {
namespace {

TEST(SlabClasses, EverySizeIsServedByTheSmallestClassThatHoldsIt) {
  for (const uint64_t page_bytes : {uint64_t{4096}, uint64_t{16384}, uint64_t{65536}}) {
    for (uint32_t size = 1; size <= MaxSlabBytes(page_bytes); ++size) {
      const uint32_t index = SlabClassIndex(size);
      ASSERT_LE(size, SlabClassBytes(index));
      ASSERT_TRUE(index == 0 || SlabClassBytes(index - 1) < size) << size;
    }
    EXPECT_EQ(SlabClassBytes(NumSlabClasses(page_bytes) - 1), MaxSlabBytes(page_bytes));
  }
}

// Rings and pipe infos of kernel-mechanisms.md A8.
TEST(SlabClasses, RingsAndInfosLieInTheKernelsClasses) {
  const struct {
    uint32_t size;
    uint64_t bytes;
  } cases[] = {{168, 192},
               {232, 256},
               {1 * 40, 64},
               {2 * 40, 96},
               {4 * 40, 192},
               {8 * 40, 512},
               {16 * 40, 1024},
               {32 * 40, 2048},
               {64 * 40, 4096},
               {128 * 40, 8192},
               {204 * 40, 8192},
               {205 * 40, 4096 << 2},
               {256 * 40, 4096 << 2},
               {8193, 4096 << 2},
               {16385, 4096 << 3}};
  for (const auto& c : cases) {
    EXPECT_EQ(ObjectAllocator::ClassBytes(c.size, 4096), c.bytes) << c.size;
  }
  EXPECT_EQ(ObjectAllocator::ClassBytes(2048 * 40, 65536), 131072u);
}

TEST(SlabClasses, ASheafHoldsWhatItsSizeClassPermitsAndFillsAKmallocObject) {
  const struct {
    uint32_t bytes;
    uint32_t capacity;
  } cases[] = {{64, 60},  {96, 60},   {128, 60},  {192, 60}, {256, 28},
               {512, 28}, {1024, 12}, {2048, 12}, {4096, 4}, {8192, 4}};
  for (const auto& c : cases) EXPECT_EQ(SheafCapacity(c.bytes, 4096), c.capacity) << c.bytes;
  // 12 where the page is larger.
  EXPECT_EQ(SheafCapacity(8192, 65536), 12u);
  EXPECT_EQ(SheafCapacity(65536, 65536), 4u);
}

// /proc/slabinfo of a machine with two CPUs and 4 KiB pages, and of one with 176.
TEST(SlabClasses, SlabsHaveTheOrdersThatTheKernelChooses) {
  const struct {
    uint32_t bytes;
    uint32_t order_2;
    uint32_t order_176;
  } cases[] = {{64, 0, 0},  {96, 0, 0},   {128, 0, 1},  {192, 0, 1},  {256, 0, 2},
               {512, 1, 3}, {1024, 2, 3}, {2048, 3, 3}, {4096, 3, 3}, {8192, 3, 3}};
  for (const auto& c : cases) {
    EXPECT_EQ(SlabOrder(c.bytes, 4096, 2), c.order_2) << c.bytes;
    EXPECT_EQ(SlabOrder(c.bytes, 4096, 176), c.order_176) << c.bytes;
  }
  EXPECT_EQ(SlabOrder(192, 65536, 2), 0u);
  EXPECT_EQ(SlabOrder(131072, 65536, 2), 3u);
}

TEST(SlabClasses, ANodeKeepsFiveToTenSlabsByTheObjectsSize) {
  EXPECT_EQ(MakeSlabClass(SlabClassIndex(64), 4096, 2).min_partial, 5u);
  EXPECT_EQ(MakeSlabClass(SlabClassIndex(192), 4096, 2).min_partial, 5u);
  EXPECT_EQ(MakeSlabClass(SlabClassIndex(2048), 4096, 2).min_partial, 5u);
  EXPECT_EQ(MakeSlabClass(SlabClassIndex(8192), 4096, 2).min_partial, 6u);
  EXPECT_EQ(MakeSlabClass(SlabClassIndex(131072), 65536, 2).min_partial, 8u);
}

TEST(SlabClasses, TheSmallestOrderHoldsOneObject) {
  EXPECT_EQ(MakeSlabClass(SlabClassIndex(192), 4096, 2).min_order, 0u);
  EXPECT_EQ(MakeSlabClass(SlabClassIndex(4096), 4096, 2).min_order, 0u);
  EXPECT_EQ(MakeSlabClass(SlabClassIndex(8192), 4096, 2).min_order, 1u);
}

}  // namespace
}  // namespace pipeyard::memory
